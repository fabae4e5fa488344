"""``litecl bench``: measures a model's speed, and profiles it."""

import argparse
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from litecl.cli import benches, generation, peers
from litecl.cli.command import (
    A_MODEL,
    Output,
    count,
    device_arguments,
    device_options,
    input_arguments,
    inputs,
    model_file,
    numbers_argument,
    numbers_view,
    positive,
    progress,
    require_device,
    seconds,
)
from litecl.cli.outputs import OutputFile
from litecl.cli.profiles import profile_view
from litecl.cli.tables import line, report_data
from litecl.delegate.report import DelegationReport
from litecl.interpreter import Interpreter
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import LiteclError, ModelError, brief
from litecl.interpreter.file.reader import content_of
from litecl.perf.bench import BenchOptions, BenchResult, Profile, bench, profile
from litecl.perf.doubts import busy, load
from litecl.perf.environment import header, named
from litecl.perf.isolated import isolated
from litecl.perf.peers import ALL, PEERS, chosen
from litecl.perf.peers.litert import peer_name

HELP = "measure a model's speed, also against LiteRT, OpenVINO and ONNX Runtime"
EXAMPLES = """\
litecl bench model.tflite
litecl bench model.tflite --against litert --threads 1 --threads 2
litecl bench model.tflite --against openvino --against onnxruntime --threads 1
litecl bench model.tflite --device 0 --device 1 --profile
litecl bench models/ --against litert --require-device -o table.csv     # every file of a folder
litecl bench model.tflite --json > new.json                             # for litecl compare
"""

_PROFILE_RUNS = 10
_RUNS, _LEAST_RUNS = 50, 5
_LEAST_S = 0.5  # unless --runs is given: long enough to average over short disturbances


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "model", type=model_file, nargs="+", metavar="MODEL", help=f"{A_MODEL}, or a folder of files; may be repeated"
    )
    input_arguments(parser)
    numbers_argument(parser)
    device_arguments(parser, cpu=True, several=("device", "num_threads"))
    parser.add_argument(
        "--runs", type=positive, metavar="N", help="timed invokes (default: at least 50, for half a second)"
    )
    parser.add_argument("--seconds", type=seconds, default=0.0, metavar="S", help="measure for S seconds")
    parser.add_argument("--warmup", type=count, default=3, metavar="N", help="untimed invokes first (default: 3)")
    parser.add_argument(
        "--against",
        action="append",
        default=[],
        type=peer_name,
        choices=[*PEERS, ALL],
        help="measure this runtime too, or all that are installed, in turns, with one thread and with as many as "
        "litecl; may be repeated",
    )
    parser.add_argument(
        "--streams",
        action="append",
        default=[],
        type=positive,
        metavar="N",
        help="also measure the throughput of N interpreters in N threads; may be repeated",
    )
    parser.add_argument("--memory", action="store_true", help="also measure host memory, in separate processes (Linux)")
    parser.add_argument("--profile", action="store_true", help="show device time by launch and host time by operator")
    parser.add_argument(
        "-o",
        "--output",
        action="append",
        default=[],
        type=OutputFile(*benches.FORMATS),
        metavar="FILE",
        help=f"write the table to this file ({', '.join(benches.FORMATS)}); may be repeated",
    )
    generation.arguments(parser)


def run(args: argparse.Namespace) -> Output:
    """Measure every model on every requested device with every requested number of threads.

    If there are several models, those that can't be measured are skipped and reported; the exit code is then 1.
    """
    if generation.is_asked_for(args):
        return generation.run(args)
    load_before, head, given = load(), header("litecl bench"), device_options(args)
    chosen(args.against)  # before anything is measured, raises for one that isn't installed
    files = _files(args.model)
    choices = [
        Choice(path, {**given, "device": device, "num_threads": threads})
        for path, device, threads in product(files, given["device"] or [None], given["num_threads"] or [None])
    ]
    outcomes = _each(args, choices) if len(files) > 1 else [_measured(args, choice) for choice in choices]
    measured = [one for one in outcomes if isinstance(one, Measured)]
    left_out = [one for one in outcomes if isinstance(one, LeftOut)]
    cases = [one.case for one in measured]
    rows = benches.rows(cases)
    warnings = [*busy(load_before), *benches.warnings(rows)]
    data = head | {"warnings": warnings, "numbers": args.numbers}
    data |= cases[0] if len(choices) == 1 else {"cases": cases}
    if len(files) > 1:
        data |= {"left_out": [asdict(one) for one in left_out], "peers": [asdict(one) for one in peers.peers(cases)]}
    for path in args.output:
        benches.write(rows, head | {"cases": cases}, path)
    doubtful = [Text(f"WARNING: {line}") for line in warnings]
    skipped = [Text(f"left out: {one.text}") for one in left_out]
    shown = measured if len(files) == 1 or args.profile else []
    views = [view for one in shown for view in _views(one, several=len(measured) > 1)]
    view = [*numbers_view(args.numbers), benches.view(rows), *doubtful, *peers.comparisons(cases), *skipped, *views]
    return Output(data, view, int(bool(left_out)))


@dataclass(frozen=True)
class Choice:
    """A measurement: a model, and the keywords of ``CLDelegate``."""

    path: Path
    delegate: Mapping[str, Any]


@dataclass(frozen=True)
class Measured:
    """A model's figures on a device, as plain data and for display."""

    case: dict[str, Any]
    profile: Profile | None
    report: DelegationReport | None


@dataclass(frozen=True)
class LeftOut:
    """A model that couldn't be measured, and why."""

    model: str
    device: str | int | None
    num_threads: int | None
    reason: str

    @staticmethod
    def of(choice: Choice, reason: str) -> "LeftOut":
        """Return the record for a choice that was left out."""
        return LeftOut(str(choice.path), choice.delegate["device"], choice.delegate["num_threads"], reason)

    @property
    def text(self) -> str:
        """The record as a line of text."""
        words = [f"device {self.device}"] if self.device is not None else []
        words += [f"threads {self.num_threads}"] if self.num_threads is not None else []
        return ", ".join([self.model, *words]) + f": {brief(self.reason)}"


def _files(models: Sequence[Path]) -> list[Path]:
    """Return the given files and those in given folders. Raises ModelError for a folder without models."""
    files: list[Path] = []
    for path in models:
        inside = sorted(path.rglob("*.tflite")) if path.is_dir() else [path]
        if not inside:
            raise ModelError(f"{path}: expected .tflite files in this folder, found none")
        files += inside
    return files


def _each(args: argparse.Namespace, choices: Sequence[Choice]) -> Sequence[Measured | LeftOut]:
    """Measure all in another process, leaving out models that fail or kill that process."""
    tried = isolated(partial(_tried, args, choice, f"{i} of {len(choices)}") for i, choice in enumerate(choices, 1))
    return [one or LeftOut.of(choice, "the process died") for one, choice in zip(tried, choices, strict=True)]


def _tried(args: argparse.Namespace, choice: Choice, number: str) -> Measured | LeftOut:
    """Measure a model, or return why that failed."""
    try:
        return _measured(args, choice, f"{number}: {choice.path.name}")
    except (LiteclError, OSError) as error:
        return LeftOut.of(choice, f"{type(error).__name__}: {error}")


def _measured(args: argparse.Namespace, choice: Choice, doing: str = "measuring") -> Measured:
    """Measure a model on a device."""
    content = bytes(content_of(choice.path))
    values = inputs(args, Interpreter(choice.path))
    runs = args.runs or (_LEAST_RUNS if args.seconds else _RUNS)
    streams = tuple(dict.fromkeys(args.streams))
    least_s = args.seconds or (0.0 if args.runs else _LEAST_S)
    against = chosen(args.against)
    options = BenchOptions(
        choice.delegate, args.cpu, runs, least_s, args.warmup, against, streams, args.memory, args.numbers
    )
    with progress(doing, None if least_s else runs + args.warmup) as bar:
        watched = {**choice.delegate, "progress": bar.building}
        result = bench(content, values, replace(options, delegate=watched), bar)
    require_device(args, result.report)
    profiled = None
    if args.profile:
        with progress("profiling", _PROFILE_RUNS) as tick:
            profiled = profile(content, values, options, _PROFILE_RUNS, tick)
    case = {"model": str(choice.path), "sha256": hashlib.sha256(content).hexdigest()}
    return Measured(case | _data(result, profiled), profiled, result.report)


def _views(one: Measured, *, several: bool) -> Iterator[RenderableType]:
    """Yield the profile and the delegation report, under the model's name if there are several."""
    name = f"{Path(one.case['model']).name}: " if several else ""
    if one.profile is not None:
        yield profile_view(one.profile, name)
    if one.report is not None:
        yield from [line(f"{name}where nodes run")] if several else []
        yield one.report


def _data(result: BenchResult, profile: Profile | None) -> dict[str, Any]:
    """Return all figures of a benchmark as plain data."""
    return {
        "device": None if result.report is None else named(result.report.device),
        "subjects": [subject.to_dict() for subject in result.subjects],
        "comparisons": [asdict(comparison) for comparison in result.comparisons],
        "refusals": [asdict(refusal) for refusal in result.refusals],
        "fastest": None if result.fastest is None else asdict(result.fastest),
        "delegation": None if result.report is None else report_data(result.report),
        "profile": None if profile is None else asdict(profile),
    }
