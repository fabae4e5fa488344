"""The command ``litecl``: finds its subcommands, runs one, and prints what it found."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

import litecl
from litecl.interpreter.errors import LiteclError
from litecl.perf.cli import commands
from litecl.perf.cli.command import Output
from litecl.perf.cli.tables import to_json

_PIPED_WIDTH = 160  # if there is no terminal


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand and return the exit code: 0, 1 for an error (told on stderr), 130 when interrupted."""
    args = _parser().parse_args(arguments)
    try:
        output: Output = args.run(args)
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
        prog="litecl", description="TensorFlow Lite models on OpenCL devices: inspect, convert, run and measure them."
    )
    parser.add_argument("--version", action="version", version=f"litecl {litecl.__version__}")
    subparsers = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for info in iter_modules(commands.__path__):
        _add(subparsers, info.name, import_module(f"{commands.__name__}.{info.name}"))
    return parser


def _add(subparsers: Any, name: str, command: Any) -> None:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name, help=command.HELP, description=f"{command.HELP[0].upper()}{command.HELP[1:]}."
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    command.arguments(parser)
    parser.set_defaults(run=command.run)
