"""The files that a command writes: none may be one that it also reads, or writes twice."""

import argparse
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

_STDOUT = Path("/dev/stdout")
_OTHER_MODELS = (".h5", ".hdf5", ".keras", ".onnx", ".pb", ".pbtxt", ".pt", ".pt2", ".pth")


class OutputFile:
    """Parses the path of an output file with one of these suffixes, or any; "-", which has none, is stdout.

    Its folder must exist, so that no long measurement is lost at the end.
    """

    def __init__(self, *endings: str) -> None:
        self.endings = endings

    def __call__(self, text: str) -> Path:
        """Return the path. Raises ArgumentTypeError."""
        path = _STDOUT if text == "-" else Path(text)
        if not path.parent.is_dir():
            raise argparse.ArgumentTypeError(f"{text}: there is not a folder {path.parent}")
        if path.is_dir():
            raise argparse.ArgumentTypeError(f"{text} is a folder, expected a file to write")
        if self.endings and path.suffix.lower() not in self.endings:
            raise argparse.ArgumentTypeError(f"{text}: expected a name that ends in {' or '.join(self.endings)}")
        return path


class ModelOutput(OutputFile):
    """Parses the path of a model to write: a .tflite file or a bundle of them, by any name but another format's."""

    def __call__(self, text: str) -> Path:
        """Return the path. Raises ArgumentTypeError."""
        path = super().__call__(text)
        if path.suffix.lower() in _OTHER_MODELS:
            raise argparse.ArgumentTypeError(f"{text} is the name of another kind of model, expected FILE.tflite")
        return path


def clash_of(actions: Iterable[argparse.Action], args: argparse.Namespace) -> str:
    """Return which output file is also another argument's file, by any name or link; "" if none is."""
    files = [(action, path) for action in actions for path in _paths(getattr(args, action.dest, None))]
    for written, output in files:
        for other, path in files if isinstance(written.type, OutputFile) else ():
            if path is not output and _is_same(output, path, isinstance(other.type, OutputFile)):
                return f"argument {_name(written)}: {output} is the file of {_name(other)} too"
    return ""


def takes_stdout(actions: Iterable[argparse.Action], args: argparse.Namespace) -> bool:
    """Return whether stdout gets an output file, so that what a command prints belongs elsewhere."""
    written = (action for action in actions if isinstance(action.type, OutputFile))
    return any(_STDOUT in _paths(getattr(args, action.dest)) for action in written)


def _name(action: argparse.Action) -> str:
    return "/".join(action.option_strings) or str(action.metavar or action.dest)


def _paths(given: Any) -> Iterator[Path]:
    """Yield what may be paths: a text may be NAME=FILE."""
    if isinstance(given, list | tuple):
        for each in given:
            yield from _paths(each)
    elif isinstance(given, Path):
        yield given
    elif isinstance(given, str):
        yield from map(Path, {given, given.partition("=")[2]} - {""})


def _is_same(output: Path, path: Path, is_output: bool) -> bool:
    """Return whether both are one file; a device or a pipe, such as /dev/stdout, may be written more than once."""
    try:
        return path.samefile(output) and path.is_file()
    except (OSError, ValueError):  # one of them does not exist, or no file can have its name
        return is_output and os.path.realpath(output) == os.path.realpath(path)
