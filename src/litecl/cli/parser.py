"""The ``litecl`` command: finds its subcommands, runs one, and prints its output.

Imports only the requested subcommand, so that ``--version`` and ``--help`` are fast.
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path
from textwrap import indent
from typing import Any, NoReturn

import litecl
from litecl.cli.errors import FAILED, discard_output, refuse, tell
from litecl.cli.outputs import OutputFile, clash_of, takes_stdout

_COMMANDS = Path(__file__).parent / "commands"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand and return the exit code: its own, or its code for an error (usually 1).

    Raises SystemExit(2) for wrong usage, and SystemExit(0) after help, which no arguments ask for too. Errors go to
    stderr, and with ``--json`` also to stdout as JSON.
    """
    given = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    named = next((word for word in given if not word.startswith("-")), "")
    try:
        whole = parser({name: import_module(f"litecl.cli.commands.{name}") for name in [named] if name in helps()})
        args = whole.parse_args(given)
        own = vars(args).pop("parser")  # other processes get the arguments, without a parser
        if clash := clash_of(own.actions(), args):
            own.error(clash)
        return _run(args, own)
    except _Usage as wrong:
        refuse(*wrong.args, as_json="--json" in given)
    except OSError as error:  # of a path that no file can have
        tell(error, FAILED, as_json="--json" in given)
        return FAILED


def _run(args: argparse.Namespace, own: "Parser") -> int:
    from litecl.interpreter.errors import LiteclError

    try:
        _fetch(args)
        output = args.run(args)
        if page := getattr(args, "page", None):
            output = _with_page(output, page, own, args)
    except BrokenPipeError:  # the reader of a streaming command has closed the pipe
        discard_output()
        return FAILED
    except (LiteclError, OSError) as error:
        tell(error, args.failed, as_json=args.json)
        return int(args.failed)
    try:
        with redirect_stdout(sys.stderr) if takes_stdout(own.actions(), args) else nullcontext():
            _print(output, json=args.json)
    except OSError as error:
        error.filename = error.filename or "stdout"
        discard_output()
        if not isinstance(error, BrokenPipeError):  # a reader such as `head` may close the pipe early
            tell(error, FAILED, as_json=False)
        return FAILED
    return int(output.exit_code)


def _with_page(output: Any, path: Path, own: "Parser", args: argparse.Namespace) -> Any:
    """Write an ``Output`` as a page, and return it with a line that says so."""
    from dataclasses import replace

    from rich.text import Text

    from litecl.cli.pages import page
    from litecl.interpreter.whole_files import put_text

    if output.page is not None:
        content = output.page()
    else:
        files = [vars(args)[action.dest] for action in own.actions() if not action.option_strings]
        named = [Path(file).name for each in files for file in (each if isinstance(each, list) else [each])]
        content = page(own.prog, ", ".join(named) or str(own.description), output.view)
    put_text(path, content)
    return replace(output, view=[*output.view, Text(f"{path} is written.")])


def _print(output: Any, *, json: bool) -> None:
    """Print an ``Output``. Raises OSError if stdout can't be written."""
    from litecl.cli.tables import to_json

    if sys.stdout is None:  # closed by the shell
        return
    if json:
        print(to_json(output.data))
    else:
        _show(output.view)
    sys.stdout.flush()


def _fetch(args: argparse.Namespace) -> None:
    """Fetch models named on the Hub and replace them by local files."""
    from litecl.cli.hub import fetched, is_hub

    for name, given in vars(args).items():
        if name in ("model", "models"):
            named = given if isinstance(given, list) else [given]
            local = [fetched(each) if isinstance(each, str) and is_hub(each) else each for each in named]
            setattr(args, name, local if isinstance(given, list) else local[0])


def _show(view: Sequence[Any]) -> None:
    from rich.text import Text

    from litecl.cli.console import console_of, print_text

    console = console_of(sys.stdout)
    for part in view:
        if isinstance(part, Text):
            print_text(console, part)
        else:
            console.print(part, markup=False, highlight=False)


@cache
def helps() -> Mapping[str, str]:
    """Return each subcommand's HELP by name, without importing it."""
    files = {path.stem: path for path in sorted(_COMMANDS.glob("*.py")) if path.stem != "__init__"}
    return {name: _help(path) for name, path in files.items()}


def _help(path: Path) -> str:
    declared = re.search("^HELP = (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert declared is not None, f"{path.name}: expected HELP = a sentence, in one line"
    return str(ast.literal_eval(declared[1]))


class _Usage(Exception):
    """Raised for wrong usage. Its arguments are those of ``refuse``."""


class _Formatter(argparse.HelpFormatter):
    """Wraps paragraphs, but keeps text that has line breaks."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


class Parser(argparse.ArgumentParser):
    """A parser that raises errors for ``main`` to print, with a usage that lists only required arguments."""

    def actions(self) -> Iterator[argparse.Action]:
        """Yield the arguments of the parser and its subcommands, for which argparse has no public name."""
        for action in self._actions:
            yield action
            for own in action.choices.values() if isinstance(action.choices, Mapping) else ():
                yield from own.actions()

    def format_usage(self) -> str:
        formatter = self.formatter_class(prog=f"{self.prog} [OPTIONS]")
        asked = [action for action in self._actions if action.required or not action.option_strings]
        formatter.add_usage(None, asked, [])
        return formatter.format_help()

    def error(self, message: str) -> NoReturn:
        raise _Usage(self.format_usage(), self.prog, message + self._suggested(message))

    def _suggested(self, message: str) -> str:
        """Return a question about the command or option that a misspelt one is like; "" if there is none."""
        if " invalid choice: " in message:
            wrong, *known = re.findall(r"'([^']*)'", message)
        elif options := re.findall(r"^unrecognized arguments: .*?(--[\w-]+)", message):
            wrong = options[0]
            known = [text for action in self.actions() for text in action.option_strings if text[1] == "-"]
        else:
            return ""
        like = get_close_matches(wrong, known, 1)
        return f"; did you mean {like[0]}?" if like else ""


def parser(commands: Mapping[str, Any]) -> Parser:
    """Return a parser with the names of all subcommands, and the arguments of the imported ones.

    An imported command has ``EXAMPLES``, one per line, which end its help, and may have ``FAILED``, its exit code for
    errors, and ``PAGE``, False if it prints no result that could be a page.
    """
    whole = Parser(
        prog="litecl", description="Convert, inspect, run and measure TensorFlow Lite models on GPUs and processors."
    )
    whole.add_argument("--version", action="version", version=f"litecl {litecl.__version__}")
    subparsers = whole.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, text in helps().items():
        under = subparsers.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.", formatter_class=_Formatter
        )
        under.add_argument("--json", action="store_true", help="print JSON instead of tables")
        if name in commands:
            under.epilog = f"examples:\n{indent(commands[name].EXAMPLES, '  ')}"
            if getattr(commands[name], "PAGE", True):
                under.add_argument(
                    "--page", type=OutputFile(".html"), metavar="FILE.html", help="write the result as a page"
                )
            commands[name].arguments(under)
            failed = getattr(commands[name], "FAILED", FAILED)
            under.set_defaults(run=commands[name].run, failed=failed, parser=under)
    return whole
