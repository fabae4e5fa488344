"""Prints the command's errors: for people on stderr, and with ``--json`` also for programs on stdout."""

import json
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import litecl

FAILED, USAGE = 1, 2  # exit codes
_SCHEMA = 1
_MOST, _MOST_NOTE = 4000, 1000  # most characters of a message and of a note, which may contain user data


def tell(error: Exception, exit_code: int, *, as_json: bool) -> None:
    """Print a failure of the command: type, message and notes."""
    from rich.text import Text

    from litecl.cli.console import console_of, print_text
    from litecl.interpreter.errors import brief

    console = console_of(sys.stderr)
    text = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
    message, notes = brief(text, _MOST), [brief(note, _MOST_NOTE) for note in getattr(error, "__notes__", ())]
    print_text(console, Text.assemble((type(error).__name__, "bold red"), f": {message}"))
    for note in notes:
        print_text(console, Text(f"  {note}"))
    if as_json:
        _print_json(type(error).__name__, message, notes, exit_code)


def refuse(usage: str, command: str, fault: str, *, as_json: bool) -> NoReturn:
    """Print a usage error and exit."""
    from litecl.interpreter.errors import brief
    from litecl.interpreter.visible import visible_lines

    message = brief(fault, _MOST)
    print(visible_lines(f"{usage}{command}: error: {message}"), file=sys.stderr)
    if as_json:
        _print_json("UsageError", f"{command}: {message}", (), USAGE)
    raise SystemExit(USAGE)


def discard_output() -> None:
    """Redirect stdout to nowhere: Python flushes it again at exit, which would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_json(kind: str, message: str, notes: Sequence[str], exit_code: int) -> None:
    error = {"type": kind, "message": message, "notes": list(notes), "exit_code": exit_code}
    head = {"schema": _SCHEMA, "kind": "litecl error", "litecl": litecl.__version__}
    try:
        print(json.dumps(head | {"error": error}, indent=2), flush=True)
    except OSError:  # the error is already on stderr
        discard_output()
