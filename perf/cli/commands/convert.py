"""``litecl convert``: a Keras file or a SavedModel folder as a ``.tflite`` file."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from litecl.interpreter.errors import ConversionError
from litecl.interpreter.file.reader import read
from litecl.perf.cli.command import Output
from litecl.perf.cli.summaries import summary_view
from litecl.perf.cli.tables import size
from litecl.perf.measure.summary import summarize

HELP = "convert a Keras file or a SavedModel folder to a .tflite file"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("source", type=Path, metavar="SRC", help="a .keras or .h5 file, or a SavedModel folder")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="OUT", help="the .tflite file to write")
    parser.add_argument(
        "--input-shape",
        action="append",
        default=[],
        type=_named_shape,
        metavar="NAME=D,D,...",
        help="the shape of an input, such as image=1,224,224,3, with -1 for an open dimension; once for each input",
    )
    parser.add_argument(
        "--signature", action="append", metavar="KEY", help="a signature of a SavedModel (default: serving_default)"
    )
    parser.add_argument(
        "--lstm", choices=("fused", "while"), default="fused", help="recurrent layers as operators (default) or loops"
    )
    parser.add_argument("--quantize", choices=("float16", "int8"), help="store weights with fewer bits")
    parser.add_argument("--dump-passes", type=Path, metavar="DIR", help="write the graph as it is after every pass")


def run(args: argparse.Namespace) -> Output:
    """Convert, and summarize what was made."""
    with _passes() as told:
        content, conversion = _converted(args, told)
        args.output.write_bytes(content)
    summary = summarize(read(content))
    data = {"output": str(args.output), "size_bytes": len(content), **asdict(summary)}
    data["conversion"] = conversion.to_dict()
    line = Text(f"{args.output}: {size(len(content))}")
    fusions = [Text(str(fusion)) for fusion in conversion.fusions]
    return Output(data, [line, *fusions, summary_view(args.output.name, summary)])


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


def _named_shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, separator, dimensions = text.rpartition("=")
    parts = [part for part in dimensions.split(",") if part]
    if not (separator and name) or not all(part.isdecimal() or part == "-1" for part in parts):
        raise argparse.ArgumentTypeError(f"expected NAME=D,D,... with numbers for D, got {text!r}")
    return name, tuple(int(part) for part in parts)
