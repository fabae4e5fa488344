"""What each subcommand of ``litecl`` does: arguments in, data and a view of it out."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from litecl.delegate import CLDelegate, DelegationReport, disk
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.file.reader import read
from litecl.interpreter.graph import Array
from litecl.perf.cli import tables as report
from litecl.perf.measure import bench as benchmark
from litecl.perf.measure import coverage as operators
from litecl.perf.measure import tuning
from litecl.perf.measure.devices import device_rows
from litecl.perf.measure.feeds import load_inputs, outputs_of, prepare, random_inputs, save_outputs
from litecl.perf.measure.summary import node_lines, summarize
from litecl.perf.measure.timing import Tick

_PROFILE_RUNS = 10


@dataclass(frozen=True)
class Output:
    """What a command has found: for programs, and for people."""

    data: Any
    view: Sequence[RenderableType]
    exit_code: int = 0


def devices(args: argparse.Namespace) -> Output:
    """The OpenCL devices, and what litecl is tuned to on each."""
    rows = device_rows()
    data: dict[str, Any] = {"devices": [asdict(row) for row in rows]}
    view = [report.devices_table(rows)]
    if args.tuning or args.again:
        with _progress("measuring", None) as tick:
            tuned = tuning.tuned(disk.default_folder(), again=args.again, tick=tick)
        data["tuning"] = [row.to_dict() for row in tuned]
        view += [report.tuning_view(row) for row in tuned]
    return Output(data, view)


def inspect(args: argparse.Namespace) -> Output:
    """The contents of a model, and what the delegate makes of it."""
    model = read(args.model)
    summary = summarize(model)
    data: dict[str, Any] = {"model": str(args.model), **asdict(summary)}
    view = [report.summary_view(args.model.name, summary)]
    delegation = None
    if args.delegate:
        interpreter = Interpreter(model, delegates=[_delegate(args)])
        interpreter.allocate_tensors()
        delegation = DelegationReport.of(interpreter)
        data["delegation"] = report.report_data(delegation)
    if args.nodes:
        lines = node_lines(model)
        data["nodes"] = [asdict(line) for line in lines]
        view.append(report.nodes_table(lines, () if delegation is None else delegation.nodes))
    if delegation is not None:
        view.append(Text(str(delegation)))
    return Output(data, view)


def convert(args: argparse.Namespace) -> Output:
    """Converts a Keras file or a SavedModel folder."""
    with _passes() as told:
        content, conversion = _converted(args, told)
        args.output.write_bytes(content)
    summary = summarize(read(content))
    data = {"output": str(args.output), "size_bytes": len(content), **asdict(summary)}
    data["conversion"] = conversion.to_dict()
    line = Text(f"{args.output}: {report.size(len(content))}")
    fusions = [Text(str(fusion)) for fusion in conversion.fusions]
    return Output(data, [line, *fusions, report.summary_view(args.output.name, summary)])


def run(args: argparse.Namespace) -> Output:
    """Runs a model once."""
    interpreter = Interpreter(args.model, delegates=[] if args.cpu else [_delegate(args)])
    with _progress("preparing and running", None):
        prepare(interpreter, _inputs(args, interpreter))
        interpreter.invoke()
    names = [details["name"] for details in interpreter.get_output_details()]
    values = [report.value_data(n, value) for n, value in zip(names, outputs_of(interpreter), strict=True)]
    data: dict[str, Any] = {"model": str(args.model), "outputs": values, "delegation": None, "files": []}
    view = [report.values_table("outputs", values)]
    if args.output is not None:
        data["files"] = [str(path) for path in save_outputs(interpreter, args.output)]
        view += [Text(path) for path in data["files"]]
    if not args.cpu:
        delegation = DelegationReport.of(interpreter)
        data["delegation"] = report.report_data(delegation)
        view.append(Text(str(delegation)))
    return Output(data, view)


def bench(args: argparse.Namespace) -> Output:
    """Measures a model."""
    content = args.model.read_bytes()
    inputs = _inputs(args, Interpreter(content))
    options = benchmark.BenchOptions(
        device=args.device,
        num_threads=args.threads,
        precision=args.precision,
        cpu=args.cpu,
        runs=args.runs,
        warmup=args.warmup,
        against=args.against,
    )
    with _progress("measuring", args.runs + args.warmup) as tick:
        result = benchmark.bench(content, inputs, options, tick)
    profile = None
    if args.profile:
        with _progress("profiling", _PROFILE_RUNS) as tick:
            profile = benchmark.profile(content, inputs, options, _PROFILE_RUNS, tick)
    view = [report.bench_view(result)]
    view += [] if profile is None else [report.profile_view(profile)]
    view += [] if result.report is None else [Text(str(result.report))]
    return Output({"model": str(args.model), **report.bench_data(result, profile)}, view)


def coverage(args: argparse.Namespace) -> Output:
    """The operators."""
    rows = operators.rows()
    if args.output is not None:
        args.output.write_text(operators.markdown(rows))
    data = {"operators": [asdict(row) for row in rows], "missing": operators.missing()}
    return Output(data, [report.coverage_table(rows)])


def _delegate(args: argparse.Namespace) -> CLDelegate:
    return CLDelegate(args.device, num_threads=args.threads, precision=args.precision)


def _inputs(args: argparse.Namespace, interpreter: Interpreter) -> dict[str, Array]:
    details = interpreter.get_input_details()
    return random_inputs(details, args.random) | load_inputs(args.input, details)


def _converted(args: argparse.Namespace, told: Callable[[str], None]) -> tuple[bytes, Any]:
    """The .tflite file of a source and what converting did. Raises ConversionError where there is no TensorFlow."""
    source, shapes = args.source, dict(args.input_shape)
    if not source.exists():
        raise FileNotFoundError(f"{source}: no such file or folder")
    if source.is_file() and source.suffix not in (".keras", ".h5", ".hdf5"):
        raise ConversionError(f"{source}: expected a .keras or .h5 file, or a SavedModel folder")
    from litecl.converter import Converter
    from litecl.converter.dump import Dump
    from litecl.perf.measure.keras_models import load

    dump = None if args.dump_passes is None else Dump(args.dump_passes)

    def observe(name: str, module: Any) -> None:
        told(name)
        if dump is not None:
            dump(name, module)

    options: dict[str, Any] = {"lstm": args.lstm, "quantize": args.quantize}
    try:
        if source.is_dir():
            converter = Converter.from_saved_model(source, args.signature, input_shapes=shapes, **options)
        else:
            converter = Converter.from_keras_model(load(source), input_shapes=shapes, **options)
        return converter.convert(observe), converter.report
    except ModuleNotFoundError as error:
        raise ConversionError(f"converting needs TensorFlow ({error}): pip install 'litecl[convert]'") from error


@contextmanager
def _passes() -> Iterator[Callable[[str], None]]:
    """A bar on stderr that says which pass has run; the function that it yields is told so."""
    console = Console(stderr=True)
    columns = [TextColumn("converting"), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn()]
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("loading", total=None)
        yield lambda name: progress.update(task, description=name)


@contextmanager
def _progress(doing: str, total: int | None) -> Iterator[Tick]:
    """A bar on stderr; the function that it yields moves it on by one."""
    console = Console(stderr=True)
    columns = [TextColumn("{task.description}"), BarColumn(), *([MofNCompleteColumn()] if total else [])]
    with Progress(
        *columns, TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task(doing, total=total)
        yield lambda: progress.advance(task)
