"""``litecl bench``: how long a model takes, and where the time goes."""

import argparse
import hashlib
from collections import defaultdict
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from litecl.cli import benches
from litecl.cli.command import (
    A_MODEL,
    Output,
    count,
    device_arguments,
    device_options,
    input_arguments,
    inputs,
    model_file,
    output_file,
    positive,
    progress,
    require_device,
    seconds,
)
from litecl.cli.launches import tile_view
from litecl.cli.tables import report_data, table, titled
from litecl.delegate.report_details import kernel_name
from litecl.interpreter import Interpreter
from litecl.perf.bench import BenchOptions, BenchResult, Profile, bench, profile
from litecl.perf.contenders import PEERS
from litecl.perf.doubts import busy, load
from litecl.perf.environment import header, named

HELP = "measure how long a model takes"

_PROFILE_RUNS = 10
_RUNS, _LEAST_RUNS = 50, 5
_LEAST_S = 0.5  # unless a number of runs is given: what disturbs a machine for some milliseconds is then a part of it


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("model", type=model_file, nargs="+", metavar="MODEL", help=f"{A_MODEL}, or several")
    input_arguments(parser)
    device_arguments(parser, cpu=True, several=("device", "num_threads"))
    parser.add_argument(
        "--runs", type=positive, metavar="N", help="timed invokes (default: at least 50, for half a second)"
    )
    parser.add_argument("--seconds", type=seconds, default=0.0, metavar="S", help="go on until so long has passed")
    parser.add_argument("--warmup", type=count, default=3, metavar="N", help="invokes before them (default: 3)")
    parser.add_argument(
        "--against",
        choices=list(PEERS),
        help="measure this runtime too, in turns, with one thread and with as many as litecl may take",
    )
    parser.add_argument(
        "--streams",
        action="append",
        default=[],
        type=positive,
        metavar="N",
        help="also measure the throughput of N interpreters, each in a thread of its own; may be repeated",
    )
    parser.add_argument("--memory", action="store_true", help="also measure the host's memory, in processes (Linux)")
    parser.add_argument("--profile", action="store_true", help="show device time by launch and host time by operator")
    parser.add_argument(
        "-o",
        "--output",
        action="append",
        default=[],
        type=output_file,
        metavar="FILE",
        help=f"write the table there, by the ending ({', '.join(benches.FORMATS)}); may be repeated",
    )


def run(args: argparse.Namespace) -> Output:
    """Measure every model on every device with every number of threads that was asked for."""
    benches.check(args.output)
    load_before = load()
    told = header("litecl bench")
    given = device_options(args)
    choices = product(args.model, given["device"] or [None], given["num_threads"] or [None])
    cases, views = [], []
    for path, device, threads in choices:
        delegate = {**given, "device": device, "num_threads": threads}
        case, view = _case(args, path, delegate)
        cases.append(case)
        views += view
    rows = benches.rows(cases)
    warnings = [*busy(load_before), *benches.warnings(rows)]
    for path in args.output:
        benches.write(rows, told | {"cases": cases}, path)
    data = told | {"warnings": warnings} | (cases[0] if len(cases) == 1 else {"cases": cases})
    lines = [Text(line) for case in cases for line in benches.comparisons(case, named=len(cases) > 1)]
    return Output(data, [benches.view(rows), *lines, *(Text(f"WARNING: {line}") for line in warnings), *views])


def _case(
    args: argparse.Namespace, path: Path, delegate: dict[str, Any]
) -> tuple[dict[str, Any], list[RenderableType]]:
    """Measure a model on a device; return the figures, and what else is shown of them."""
    content = path.read_bytes()
    values = inputs(args, Interpreter(path))
    runs = args.runs or (_LEAST_RUNS if args.seconds else _RUNS)
    streams = tuple(dict.fromkeys(args.streams))
    least_s = args.seconds or (0.0 if args.runs else _LEAST_S)
    options = BenchOptions(delegate, args.cpu, runs, least_s, args.warmup, args.against, streams, args.memory)
    with progress("measuring", None if least_s else runs + args.warmup) as bar:
        result = bench(content, values, replace(options, delegate={**delegate, "progress": bar.building}), bar)
    require_device(args, result.report)
    profiled = None
    if args.profile:
        with progress("profiling", _PROFILE_RUNS) as tick:
            profiled = profile(content, values, options, _PROFILE_RUNS, tick)
    view = [] if profiled is None else [_profile(profiled)]
    view += [] if result.report is None else [result.report]
    case = {"model": str(path), "sha256": hashlib.sha256(content).hexdigest()}
    return case | _data(result, profiled), view


def _data(result: BenchResult, profile: Profile | None) -> dict[str, Any]:
    """Return every figure of a benchmark as plain data."""
    return {
        "device": None if result.report is None else named(result.report.device),
        "subjects": [subject.to_dict() for subject in result.subjects],
        "comparisons": [asdict(comparison) for comparison in result.comparisons],
        "delegation": None if result.report is None else report_data(result.report),
        "profile": None if profile is None else asdict(profile),
    }


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
    has_tiles = any(k.tiled for k in profile.kernels)
    made = table("subgraph", "node", "operator", "kernel", *(["tile"] if has_tiles else []), "device ms", "GFLOP/s")
    for k in profile.kernels:
        name, tile = kernel_name(k.kernel, k.entry), [tile_view(k.tiled)] if has_tiles else []
        rate = _rate(k.flops, k.duration_ms)
        made.add_row(str(k.subgraph), str(k.node), k.op, name, *tile, f"{k.duration_ms:.4f}", rate)
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
