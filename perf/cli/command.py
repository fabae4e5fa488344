"""Parts that subcommands share: their output, common arguments, and progress bars on stderr."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from litecl.delegate.claim.options import CLOptions
from litecl.delegate.progress import BuildStep
from litecl.delegate.report import DelegationReport
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.graph import Array
from litecl.perf.measure.feeds import load_inputs, random_inputs

_FLAGS = [field for field in fields(CLOptions) if "flag" in field.metadata]


@dataclass(frozen=True)
class Output:
    """The findings of a command: for programs, and for people."""

    data: Any
    view: Sequence[RenderableType]
    exit_code: int = 0


def model_argument(parser: argparse.ArgumentParser) -> None:
    """Take a model file, as ``args.model``."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="a .tflite file")


def input_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the values of a model's inputs, for ``inputs``."""
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=FILE.npy",
        help="the value of an input; other inputs are random",
    )
    parser.add_argument("--random", type=int, default=0, metavar="SEED", help="seed of random inputs (default: 0)")


def inputs(args: argparse.Namespace, interpreter: Interpreter) -> dict[str, Array]:
    """Return the values of all inputs: those given, and random ones."""
    details = interpreter.get_input_details()
    return random_inputs(details, args.random) | load_inputs(args.input, details)


def device_arguments(parser: argparse.ArgumentParser, *, cpu: bool = False) -> None:
    """Take the options of the delegate that are declared with a flag; cpu: also ``--cpu``, in place of a device."""
    place = parser.add_mutually_exclusive_group()
    hints = get_type_hints(CLOptions)
    for field in _FLAGS:
        kind = _kind(hints[field.name])
        group = place if field.name == "device" else parser
        group.add_argument(
            field.metadata["flag"], dest=field.name, default=field.default, help=field.metadata["help"], **kind
        )
    if cpu:
        place.add_argument("--cpu", action="store_true", help="run the numpy reference, without a delegate")
        parser.add_argument("--require-device", action="store_true", help="fail unless the device runs every node")


def device_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the keywords of ``CLDelegate`` that the arguments give."""
    return {field.name: getattr(args, field.name) for field in _FLAGS}


def _kind(hint: Any) -> dict[str, Any]:
    """Return what argparse needs to know of an option's type."""
    if hint is bool:
        return {"action": "store_true"}
    if get_origin(hint) is Literal:
        return {"choices": get_args(hint)}
    if int in get_args(hint):
        return {"type": positive, "metavar": "N"}
    if str in get_args(hint):
        return {"type": Path, "metavar": "DIR"}
    return {"type": _device_name, "metavar": "DEVICE"}


def _device_name(text: str) -> str | int:
    return int(text) if text.isdecimal() else text


def positive(text: str) -> int:
    """Parse a number above 0."""
    value = count(text)
    if value == 0:
        raise argparse.ArgumentTypeError("expected at least 1, got 0")
    return value


def count(text: str) -> int:
    """Parse a number that is not negative."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number, got {text!r}")
    return int(text)


def require_device(args: argparse.Namespace, report: DelegationReport | None) -> None:
    """Raise DelegateError if ``--require-device`` is given and the CPU runs a node. report: None means it runs all."""
    if not args.require_device:
        return
    if report is None:
        raise DelegateError("--require-device: no device was asked for (--cpu)")
    left = [row for row in report.nodes if not row.claimed]
    if left:
        ops = {row.reason: sorted({other.op for other in left if other.reason == row.reason}) for row in left}
        reasons = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in ops.items())
        raise DelegateError(f"--require-device: the CPU runs {len(left)} of {len(report.nodes)} nodes. {reasons}")


@dataclass(frozen=True)
class Bar:
    """A progress bar on stderr; calling it advances it by one. ``building`` is the progress callback of a
    ``CLDelegate``.
    """

    bar: Progress
    task: TaskID
    doing: str

    def __call__(self) -> None:
        self.bar.advance(self.task)

    def building(self, step: BuildStep) -> None:
        """Show what is being compiled."""
        going_on = f"compiling {step.what} ({step.done + 1} of {step.total})"
        self.bar.update(self.task, description=self.doing if step.done == step.total else going_on)


@contextmanager
def progress(doing: str, total: int | None) -> Iterator[Bar]:
    """Show a bar on stderr, if that is a terminal."""
    console = Console(stderr=True)
    columns = [TextColumn("{task.description}"), BarColumn(), *([MofNCompleteColumn()] if total else [])]
    with Progress(
        *columns, TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(doing, total=total)
        yield Bar(bar, task, doing)
