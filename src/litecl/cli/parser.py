"""The command ``litecl``: finds its subcommands, runs one, and prints what it found.

Only the subcommand that is asked for is imported, so that ``--version`` and ``--help`` are quick.
"""

import argparse
import ast
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import litecl

_COMMANDS = Path(__file__).parent / "commands"
_PIPED_WIDTH = 160  # if there is no terminal
_MOST_TOLD = 20_000  # characters of an error
_INTERRUPTED = 130  # as shells number it: 128 + SIGINT


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand and return the exit code: 0, 1 for an error (told on stderr), 130 when interrupted."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    named = next((word for word in given if not word.startswith("-")), "")
    try:
        args = parser({name: import_module(f"litecl.cli.commands.{name}") for name in [named] if name in helps()})
        return _run(args.parse_args(given))
    except KeyboardInterrupt:
        return _INTERRUPTED


def _run(args: argparse.Namespace) -> int:
    from litecl.interpreter.errors import LiteclError

    try:
        _fetch(args)
        output = args.run(args)
    except BrokenPipeError:  # a command that writes as it goes, and a reader that has enough
        _discard_output()
        return 1
    except (LiteclError, OSError) as error:
        _tell(error)
        return 1
    try:
        _print(output, json=args.json)
    except OSError as error:
        _discard_output()
        if not isinstance(error, BrokenPipeError):  # a reader such as `head` that has enough is no fault
            _tell(error)
        return 1
    return int(output.exit_code)


def _print(output: Any, *, json: bool) -> None:
    """Print an ``Output``. Raises OSError where stdout cannot be written."""
    from litecl.cli.tables import to_json

    if sys.stdout is None:  # closed by the shell
        return
    if json:
        print(to_json(output.data))
    else:
        _show(output.view)
    sys.stdout.flush()


def _discard_output() -> None:
    """Send what stdout still holds nowhere: Python writes it once more at exit, and would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fetch(args: argparse.Namespace) -> None:
    """Put local files in the place of models that are named as on the Hub."""
    from litecl.cli.hub import fetched, is_hub

    for name, given in vars(args).items():
        if name in ("model", "models"):
            named = given if isinstance(given, list) else [given]
            local = [fetched(each) if isinstance(each, str) and is_hub(each) else each for each in named]
            setattr(args, name, local if isinstance(given, list) else local[0])


def _show(view: Sequence[Any]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else _PIPED_WIDTH)
    for part in view:
        console.print(part, markup=False, highlight=False, soft_wrap=isinstance(part, Text))


def _tell(error: Exception) -> None:
    from rich.console import Console
    from rich.markup import escape

    from litecl.interpreter.errors import brief

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    message = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
    console.print(f"[bold red]{type(error).__name__}[/]: {escape(brief(message, _MOST_TOLD))}")
    for note in getattr(error, "__notes__", ()):
        console.print(f"  {note}", markup=False)


def helps() -> dict[str, str]:
    """Return what each subcommand is for, which its file says as ``HELP``, by name."""
    files = {path.stem: path for path in sorted(_COMMANDS.glob("*.py")) if path.stem != "__init__"}
    return {name: _help(path) for name, path in files.items()}


def _help(path: Path) -> str:
    for statement in ast.parse(path.read_bytes()).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "HELP":
            return str(ast.literal_eval(statement.value))
    raise AssertionError(f"{path.name}: expected HELP = a sentence")


def parser(commands: Mapping[str, Any]) -> argparse.ArgumentParser:
    """Return a parser that knows the names of all subcommands, and the arguments of those that have been imported."""
    made = argparse.ArgumentParser(
        prog="litecl", description="Convert, inspect, run and measure TensorFlow Lite models on GPUs and processors."
    )
    made.add_argument("--version", action="version", version=f"litecl {litecl.__version__}")
    subparsers = made.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, text in helps().items():
        under = subparsers.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        under.add_argument("--json", action="store_true", help="print JSON instead of tables")
        if name in commands:
            commands[name].arguments(under)
            under.set_defaults(run=commands[name].run)
    return made
