"""``litecl bench``: how long a model takes, and where the time goes."""

import argparse
import hashlib
from collections import defaultdict
from dataclasses import asdict, replace
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from litecl.interpreter import Interpreter
from litecl.perf.cli.command import (
    Output,
    count,
    device_arguments,
    device_options,
    input_arguments,
    inputs,
    model_argument,
    positive,
    progress,
    require_device,
)
from litecl.perf.cli.tables import report_data, table, titled
from litecl.perf.measure.bench import PEERS, BenchOptions, BenchResult, Profile, bench, profile
from litecl.perf.measure.environment import header, named

HELP = "measure how long a model takes"

_PROFILE_RUNS = 10


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    model_argument(parser)
    input_arguments(parser)
    device_arguments(parser, cpu=True)
    parser.add_argument("--runs", type=positive, default=50, metavar="N", help="timed invokes (default: 50)")
    parser.add_argument("--warmup", type=count, default=3, metavar="N", help="warm-up invokes before them (default: 3)")
    parser.add_argument(
        "--against",
        choices=list(PEERS),
        help="measure this runtime too, in turns, with equally many threads (every core if --threads is not given)",
    )
    parser.add_argument("--profile", action="store_true", help="show device time by launch and host time by operator")


def run(args: argparse.Namespace) -> Output:
    """Measure a model."""
    content = args.model.read_bytes()
    values = inputs(args, Interpreter(content))
    options = BenchOptions(
        delegate=device_options(args), cpu=args.cpu, runs=args.runs, warmup=args.warmup, against=args.against
    )
    with progress("measuring", args.runs + args.warmup) as bar:
        told = replace(options, delegate={**options.delegate, "progress": bar.building})
        result = bench(content, values, told, bar)
    require_device(args, result.report)
    profiled = None
    if args.profile:
        with progress("profiling", _PROFILE_RUNS) as tick:
            profiled = profile(content, values, options, _PROFILE_RUNS, tick)
    view = [_times(result)]
    view += [] if profiled is None else [_profile(profiled)]
    view += [] if result.report is None else [result.report]
    data = header("litecl bench") | {"model": str(args.model), "sha256": hashlib.sha256(content).hexdigest()}
    data["device"] = None if result.report is None else named(result.report.device)
    return Output(data | _data(result, profiled), view)


def _data(result: BenchResult, profile: Profile | None) -> dict[str, Any]:
    """Return every figure of a benchmark as plain data."""
    return {
        "subjects": [subject.to_dict() for subject in result.subjects],
        "comparison": None if result.comparison is None else asdict(result.comparison),
        "delegation": None if result.report is None else report_data(result.report),
        "profile": None if profile is None else asdict(profile),
    }


def _times(result: BenchResult) -> RenderableType:
    """Times of every subject, and how they compare."""
    made = table("runtime", "threads", "prepare ms", "first ms", "median ms", "p10-p90 ms", "min ms", "runs")
    for s in result.subjects:
        made.add_row(
            s.name,
            "auto" if s.num_threads is None else str(s.num_threads),
            f"{s.prepare_ms:.1f}",
            f"{s.first_ms:.3f}",
            f"{s.stats.median_ms:.3f}",
            f"{s.stats.p10_ms:.3f}-{s.stats.p90_ms:.3f}",
            f"{s.stats.min_ms:.3f}",
            str(len(s.stats.times_ms)),
        )
    if result.comparison is None:
        return made
    c = result.comparison
    against = result.subjects[1].name
    line = (
        f"{against} / litecl: median x{c.median_ratio:.2f}, min x{c.min_ratio:.2f} (above 1: litecl is faster); "
        f"largest difference {c.difference:.1e} of the output's magnitude"
    )
    if c.steps is not None:
        line += f", {c.steps} steps of its quantization"
    if c.steps and against == "litert":
        line += " (LiteRT's default kernels round differently from its reference kernels: --against litert-reference)"
    return Group(made, Text(line))


def _profile(profile: Profile) -> RenderableType:
    """Show device time by operator and by launch, then host time by node."""
    parts = [_kernels_by_op(profile), _kernels_by_node(profile)] if profile.kernels else []
    return Group(*parts, _host(profile))


def _kernels_by_op(profile: Profile) -> RenderableType:
    groups: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for k in profile.kernels:
        groups[k.op].append((k.duration_ms, k.flops))
    total_ms = sum(k.duration_ms for k in profile.kernels)
    made = table("operator", "launches", "device ms", "%", "GFLOP/s")
    for op, launches in sorted(groups.items(), key=lambda item: -sum(ms for ms, _ in item[1])):
        ms, flops = sum(ms for ms, _ in launches), sum(f for _, f in launches)
        made.add_row(op, str(len(launches)), f"{ms:.3f}", f"{_percent(ms, total_ms):.1f}", _rate(flops, ms))
    return titled(f"device, {total_ms:.3f} ms by operator", made)


def _kernels_by_node(profile: Profile) -> RenderableType:
    made = table("subgraph", "node", "operator", "kernel", "device ms", "GFLOP/s")
    for k in profile.kernels:
        name = k.kernel if k.kernel == k.entry else f"{k.kernel}:{k.entry}"
        made.add_row(str(k.subgraph), str(k.node), k.op, name, f"{k.duration_ms:.4f}", _rate(k.flops, k.duration_ms))
    return titled("device, by launch", made)


def _host(profile: Profile) -> RenderableType:
    total_ms = sum(row.total_ms for row in profile.host) / profile.runs
    made = table("operator", "calls", "host ms", "%")
    groups: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for row in profile.host:
        groups[row.op].append((row.calls, row.total_ms))
    for op, rows in sorted(groups.items(), key=lambda item: -sum(ms for _, ms in item[1])):
        calls, ms = sum(c for c, _ in rows) / profile.runs, sum(ms for _, ms in rows) / profile.runs
        made.add_row(op, f"{calls:g}", f"{ms:.3f}", f"{_percent(ms, total_ms):.1f}")
    return titled(f"host, {total_ms:.3f} ms by operator (per invoke)", made)


def _percent(part: float, whole: float) -> float:
    return 100 * part / whole if whole else 0.0


def _rate(flops: int, duration_ms: float) -> str:
    return f"{flops / duration_ms * 1e-6:.1f}" if flops and duration_ms else ""
