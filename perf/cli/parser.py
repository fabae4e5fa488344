"""The command ``litecl``: devices, inspect, convert, run, bench."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from rich.console import Console
from rich.markup import escape
from rich.text import Text

import litecl
from litecl.delegate.claim.options import Precision
from litecl.interpreter.errors import LiteclError
from litecl.perf.cli import commands
from litecl.perf.cli.tables import to_json
from litecl.perf.measure.bench import PEERS

_PIPED_WIDTH = 160  # where no terminal tells


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one subcommand and returns the exit code: 0, 1 for an error (told on stderr), 130 when interrupted."""
    args = _parser().parse_args(arguments)
    try:
        output: commands.Output = args.command(args)
    except (LiteclError, OSError) as error:
        _tell(error)
        return 1
    except KeyboardInterrupt:
        return 130
    if args.json:
        print(to_json(output.data))
        return output.exit_code
    console = Console(width=None if sys.stdout.isatty() else _PIPED_WIDTH)
    for part in output.view:
        console.print(part, markup=False, highlight=False, soft_wrap=isinstance(part, Text))
    return output.exit_code


def _tell(error: Exception) -> None:
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    message = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
    console.print(f"[bold red]{type(error).__name__}[/]: {escape(message)}")
    for note in getattr(error, "__notes__", ()):
        console.print(f"  {note}", markup=False)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="litecl", description="TensorFlow Lite models on OpenCL devices: look at them, convert, run and measure."
    )
    parser.add_argument("--version", action="version", version=f"litecl {litecl.__version__}")
    subparsers = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add in (_devices, _inspect, _convert, _run, _bench, _coverage):
        add(subparsers)
    return parser


def _devices(subparsers: Any) -> None:
    parser = _command(subparsers, "devices", commands.devices, "list the OpenCL devices of this machine")
    parser.add_argument(
        "--tuning", action="store_true", help="show what was measured to tune litecl to them; measure where nothing was"
    )
    parser.add_argument("--again", action="store_true", help="as --tuning, and measure anew")


def _inspect(subparsers: Any) -> None:
    parser = _command(subparsers, "inspect", commands.inspect, "show what is in a model")
    _model(parser)
    parser.add_argument("--nodes", action="store_true", help="list every node with its tensors and options")
    parser.add_argument(
        "--delegate", action="store_true", help="show which nodes the device takes, and why not the others"
    )
    _device(parser)


def _convert(subparsers: Any) -> None:
    parser = _command(
        subparsers, "convert", commands.convert, "convert a Keras file or a SavedModel folder to a .tflite file"
    )
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


def _run(subparsers: Any) -> None:
    parser = _command(subparsers, "run", commands.run, "run a model once and show its outputs")
    _model(parser)
    _inputs(parser)
    parser.add_argument("--output", type=Path, metavar="DIR", help="write every output there as a .npy file")
    _device(parser, cpu=True)


def _bench(subparsers: Any) -> None:
    parser = _command(subparsers, "bench", commands.bench, "measure how long a model takes")
    _model(parser)
    _inputs(parser)
    _device(parser, cpu=True)
    parser.add_argument("--runs", type=_positive, default=50, metavar="N", help="timed invokes (default: 50)")
    parser.add_argument("--warmup", type=_count, default=3, metavar="N", help="invokes before them (default: 3)")
    parser.add_argument(
        "--against",
        choices=list(PEERS),
        help="measure this runtime too, in turns, with as many threads (every core if --threads is not given)",
    )
    parser.add_argument("--profile", action="store_true", help="show device time by launch and host time by operator")


def _coverage(subparsers: Any) -> None:
    parser = _command(subparsers, "coverage", commands.coverage, "list the operators and their types")
    parser.add_argument("--output", type=Path, metavar="FILE.md", help="write the table there as Markdown")


def _command(subparsers: Any, name: str, command: Any, help_: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name, help=help_, description=help_[0].upper() + help_[1:] + "."
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.set_defaults(command=command)
    return parser


def _model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="a .tflite file")


def _inputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=FILE.npy",
        help="the value of an input; inputs not given are random",
    )
    parser.add_argument("--random", type=int, default=0, metavar="SEED", help="seed of random inputs (default: 0)")


def _device(parser: argparse.ArgumentParser, *, cpu: bool = False) -> None:
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        "--device",
        type=_device_name,
        metavar="DEVICE",
        help="an index or a fragment of a name from `litecl devices` (default: chosen by the model's size)",
    )
    if cpu:
        place.add_argument("--cpu", action="store_true", help="run the numpy reference, without a delegate")
    parser.add_argument("--threads", type=_positive, metavar="N", help="threads on a CPU device (default: chosen)")
    parser.add_argument(
        "--precision", choices=get_args(Precision), default="fp32", help="fp16 stores large weights as halves"
    )


def _device_name(text: str) -> str | int:
    return int(text) if text.isdecimal() else text


def _positive(text: str) -> int:
    value = _count(text)
    if value == 0:
        raise argparse.ArgumentTypeError("expected at least 1, got 0")
    return value


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number, got {text!r}")
    return int(text)


def _named_shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, separator, dimensions = text.rpartition("=")
    parts = [part for part in dimensions.split(",") if part]
    if not (separator and name) or not all(part.isdecimal() or part == "-1" for part in parts):
        raise argparse.ArgumentTypeError(f"expected NAME=D,D,... with numbers for D, got {text!r}")
    return name, tuple(int(part) for part in parts)
