"""Parts shared by subcommands: output, common arguments, and progress bars on stderr."""

import argparse
import math
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from rich.console import RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from litecl.cli.entry import Entry
from litecl.cli.hub import is_hub
from litecl.delegate.claim.options import CLOptions, KeptNode
from litecl.delegate.claim.strings import kept_nodes
from litecl.delegate.progress import BuildStep
from litecl.delegate.report import DelegationReport
from litecl.delegate.report_table import PlainConsole
from litecl.delegate.required import require_all
from litecl.interpreter import Interpreter
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array
from litecl.interpreter.numbers import TOLD, Numbers
from litecl.jobs.given import SOUNDS, Media, load_inputs
from litecl.perf.feeds import Runtime, labels, random_inputs

A_MODEL = "a .tflite file, or hf://OWNER/REPOSITORY/FILE"
_FLAGS = [option for option in fields(CLOptions) if "flag" in option.metadata]
_FILES = (".c", ".csv", ".h", ".html", ".json", ".litertlm", ".md", ".npy", ".npz", ".pack", ".raw", ".tflite", ".txt")
_LONG_S = 2.0  # report compiling that takes longer


@dataclass(frozen=True)
class Output:
    """A command's output. data: for programs. view: for people. page: makes its page, by default of the view."""

    data: Any
    view: Sequence[RenderableType]
    exit_code: int = 0
    page: Callable[[], str] | None = None


def model_argument(parser: argparse.ArgumentParser) -> None:
    """Declare the model file, ``args.model``."""
    parser.add_argument("model", type=model_file, metavar="MODEL", help=A_MODEL)


def model_file(text: str) -> Path | str:
    """Return a path; a Hub name stays text until the command runs (``cli/hub.py``)."""
    return text if is_hub(text) else Path(text)


def folder(text: str) -> Path:
    """Parse the path of a folder, which need not exist. A file of that name, or a file's name, is an error at once, and
    so are "-", which elsewhere is stdout, and "", of a shell's variable that is not set.
    """
    if text in ("", "-"):
        raise argparse.ArgumentTypeError(f"expected a folder, got {text!r}; {f'./{text}'!r} is one")
    if Path(text).suffix.lower() in _FILES and not Path(text).exists():
        raise argparse.ArgumentTypeError(f"{text} is the name of a file, expected a folder")
    if Path(text).exists() and not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"{text} is a file, expected a folder")
    return Path(text)


def _folder_or_auto(text: str) -> str:  # not a Path: argparse would also convert the default "auto"
    return text if text == "auto" else str(folder(text))


def input_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags for shapes and values of a model's inputs, for ``inputs``."""
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="the value of an input: a .npy, .npz or .raw file, an image, a sound "
        f"({', '.join(SOUNDS)}), or a folder with one per input; may be repeated (default: random)",
    )
    shape_argument(parser, "--shape")
    parser.add_argument(
        "--mean",
        type=finite,
        metavar="MEAN",
        help="number to subtract from an image's pixels for a float input (default: by the file's metadata, or 127.5)",
    )
    parser.add_argument("--std", type=_divisor, help="number to divide the pixels by (default: like the mean)")
    parser.add_argument(
        "--rate",
        type=positive,
        metavar="HZ",
        help="sample rate of the sound that the model takes (default: by the file's metadata, or 16000)",
    )
    parser.add_argument(
        "--features", metavar="FILE", help="a .tflite model that makes the features of a sound, window by window"
    )
    parser.add_argument(
        "--hop-ms", type=milliseconds, default=20.0, metavar="MS", help="time from one window to the next (default: 20)"
    )
    parser.add_argument("--random", type=count, default=0, metavar="SEED", help="seed of random inputs (default: 0)")


def shape_argument(parser: argparse.ArgumentParser, flag: str) -> None:
    """Declare a flag for input shapes, parsed as pairs of name and shape."""
    parser.add_argument(
        flag,
        action="append",
        default=[],
        type=_named_shape,
        metavar="NAME=D,D,...",
        help="the shape of an input, such as image=1,224,224,3; may be repeated",
    )


def _named_shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, separator, dimensions = text.rpartition("=")
    parts = [part for part in dimensions.split(",") if part]
    if not (separator and name) or not all(part.isdecimal() or part == "-1" for part in parts):
        raise argparse.ArgumentTypeError(f"expected NAME=D,D,... with numbers for D, got {text!r}")
    return name, tuple(int(part) for part in parts)


def inputs(args: argparse.Namespace, runtime: Entry | Interpreter) -> dict[str, Array]:
    """Resize inputs as requested, and return all their values: those given, else random ones."""
    given, details = given_inputs(args, runtime), runtime.get_input_details()
    return given if given.keys() >= {*labels(details)} else random_inputs(details, args.random) | given


def given_inputs(args: argparse.Namespace, runtime: Entry | Interpreter) -> dict[str, Array]:
    """Resize inputs as requested, and return the values given."""
    resize(runtime, args.shape)
    return load_inputs(args.input, runtime.get_input_details(), media_of(args, runtime))


def media_of(args: argparse.Namespace, runtime: Entry | Interpreter | None = None) -> Media:
    """Return how to read images and sounds, by the flags or the metadata of the runtime's model."""
    entry = Entry(runtime) if isinstance(runtime, Interpreter) else runtime
    source = (None, 0) if entry is None else (entry.interpreter.model, entry.subgraph)
    return Media(args.mean, args.std, args.rate, args.features, args.hop_ms, *source)


def read_view(read: Sequence[Mapping[str, Any]]) -> list[RenderableType]:
    """Return a line for each image and sound that was read. read: from ``how_read``."""
    lines = []
    for each in read:
        if "rate" in each:
            how = f"{each['rate']} samples a second"
        elif each["mean"] is None:
            how = f"pixels {each['pixels']}"
        else:
            mean, std = (_shortest(each[name]) for name in ("mean", "std"))
            how = f"(pixel - {mean}) / {std}, by {each['pixels']}"
        lines.append(Text(f"{each['input']}: {each['file']}, {how}"))
    return [*lines]


def _shortest(values: Sequence[float]) -> str:
    """Format numbers by channel, or a single one if all are equal."""
    return ", ".join(f"{n:g}" for n in (values[:1] if len({*values}) == 1 else values))


def resize(runtime: Runtime, shapes: Sequence[tuple[str, tuple[int, ...]]]) -> None:
    """Resize inputs by label. Raises ModelError for an unknown name."""
    details = runtime.get_input_details()
    known = dict(zip(labels(details), details, strict=True))
    for name, shape in shapes:
        if name not in known:
            raise ModelError(f"--shape: there is no input {name!r}; the model has {[*known]}")
        runtime.resize_tensor_input(known[name]["index"], shape)


def numbers_argument(parser: argparse.ArgumentParser) -> None:
    """Declare ``--numbers``, whose integers litecl computes: ``Interpreter``'s ``numbers``."""
    parser.add_argument(
        "--numbers",
        choices=get_args(Numbers),
        default="reference",
        help="whose bits integers have: LiteRT's reference kernels (default), or tflite-micro's (tflm)",
    )


def numbers_view(numbers: str) -> list[RenderableType]:
    """Return a line that says whose integers were computed, unless they are the default's."""
    return [] if numbers == "reference" else [Text(f"numbers: {TOLD[numbers]}")]


def device_arguments(
    parser: argparse.ArgumentParser, *, cpu: bool = False, several: Collection[str] = (), without: Collection[str] = ()
) -> None:
    """Declare flags for those delegate options that define one.

    cpu: also ``--cpu``, instead of a device. several: options whose flags may be repeated. without: options that the
    command doesn't take.
    """
    runtime = parser if "device" in without and not cpu else parser.add_mutually_exclusive_group()  # none may be empty
    hints = get_type_hints(CLOptions)
    for option in [option for option in _FLAGS if option.name not in without]:
        kind, default = _kind(hints[option.name], option.metadata["file"]), option.default
        group = runtime if option.name == "device" else parser
        if option.name in several:
            kind, default = kind | {"action": "append"}, []
        flag, text = option.metadata["flag"], option.metadata["help"]
        text += "; may be repeated" if option.name in several else ""
        group.add_argument(flag, dest=option.name, default=default, help=text, **kind)
    if cpu:
        runtime.add_argument("--cpu", action="store_true", help="run the numpy reference, without a delegate")
        parser.add_argument("--require-device", action="store_true", help="fail unless the device runs every node")


def device_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return keywords of ``CLDelegate`` from the arguments."""
    return {field.name: getattr(args, field.name) for field in _FLAGS if hasattr(args, field.name)}


def _kind(hint: Any, file: str) -> dict[str, Any]:
    """Return argparse keywords for an option's type. file: the metavar of a path."""
    if hint is bool:
        return {"action": "store_true"}
    if get_origin(hint) is Literal:
        return {"choices": get_args(hint)}
    if int in get_args(hint):
        return {"type": positive, "metavar": "N"}
    if float in get_args(hint):
        return {"type": seconds, "metavar": "S"}
    if Collection[KeptNode] in get_args(hint):
        return {"type": kept_nodes, "metavar": file}
    if str in get_args(hint):
        return {"metavar": file} | ({"type": _folder_or_auto} if file == "DIR" else {})
    return {"type": _device_name, "metavar": "DEVICE"}


def _device_name(text: str) -> str | int:
    return int(text) if text.isdecimal() else text


def positive(text: str) -> int:
    """Parse a whole number above 0."""
    return _whole(text, 1)


def count(text: str) -> int:
    """Parse a non-negative whole number."""
    return _whole(text, 0)


def _whole(text: str, least: int) -> int:
    if not text.removeprefix("-").isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number, got {text!r}")
    if int(text) < least:
        raise argparse.ArgumentTypeError(f"expected at least {least}, got {text}")
    return int(text)


def number(text: str, expected: str, fits: Callable[[float], bool]) -> float:
    """Parse a number that fits. expected: describes such numbers."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}") from None
    if not fits(value):
        raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}")
    return value


def _divisor(text: str) -> float:
    return number(text, "a number other than 0", lambda value: value != 0 and math.isfinite(value))


def finite(text: str) -> float:
    """Parse a finite number."""
    return number(text, "a finite number", math.isfinite)


def tolerance(text: str) -> float:
    """Parse an allowed error."""
    return number(text, "a number of 0 or more", lambda value: value >= 0)


def seconds(text: str) -> float:
    """Parse a time in seconds, above 0."""
    number(text, "a number of seconds", lambda value: True)
    return number(text, "a number of seconds above 0", lambda value: 0 < value < math.inf)


def milliseconds(text: str) -> float:
    """Parse a time in milliseconds, above 0."""
    return number(text, "milliseconds above 0", lambda value: 0 < value < math.inf)


def require_device(args: argparse.Namespace, report: DelegationReport | None) -> None:
    """Raise DelegateError if ``--require-device`` is given and the CPU runs a node. report: None means it runs all."""
    if args.require_device:
        require_all("--require-device", report)


@dataclass(frozen=True)
class Bar:
    """A progress bar on stderr; calling it advances it by one. ``building`` is the progress callback of a
    ``CLDelegate``. If stderr isn't a terminal, it prints one line when compiling takes long.
    """

    bar: Progress
    task: TaskID
    doing: str
    messages: list[str] = field(default_factory=list)
    start_s: float = field(default_factory=time.monotonic)

    def __call__(self) -> None:
        self.bar.advance(self.task)

    def reached(self, done: int, total: int) -> None:
        """Show the completed number out of a total."""
        self.bar.update(self.task, completed=done, total=total)

    def now(self, doing: str) -> None:
        """Show the current activity."""
        self.bar.update(self.task, description=doing)

    def building(self, step: BuildStep) -> None:
        """Show the current compilation."""
        going_on = f"compiling {step.what} ({step.done + 1} of {step.total})"
        self.bar.update(self.task, description=self.doing if step.done == step.total else going_on)
        is_slow = step.done < step.total and time.monotonic() - self.start_s > _LONG_S
        if self.bar.disable and not self.messages and is_slow:
            self.messages.append(going_on)
            print(f"{going_on}; this happens once", file=sys.stderr)


@contextmanager
def progress(doing: str, total: int | None) -> Iterator[Bar]:
    """Show a progress bar on stderr, if that is a terminal."""
    console = PlainConsole(stderr=True)
    columns = [TextColumn("{task.description}", markup=False), BarColumn(), *([MofNCompleteColumn()] if total else [])]
    with Progress(
        *columns, TimeElapsedColumn(), console=console, transient=True, disable=not console.file.isatty()
    ) as bar:
        task = bar.add_task(doing, total=total)
        yield Bar(bar, task, doing)
