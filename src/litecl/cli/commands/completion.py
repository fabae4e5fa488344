"""``litecl completion``: prints shell completion scripts."""

import argparse
from importlib import import_module

import shtab
from rich.text import Text

from litecl.cli.command import Output
from litecl.cli.parser import helps, parser

HELP = "print a completion script for a shell"
EXAMPLES = """\
litecl completion bash > ~/.local/share/bash-completion/completions/litecl
litecl completion zsh > ~/.zfunc/_litecl
litecl completion fish | source
litecl completion powershell >> profile.ps1
"""
PAGE = False


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "shell",
        choices=shtab.SUPPORTED_SHELLS,
        help='the shell: put eval "$(litecl completion bash)" into its .bashrc or .zshrc, '
        "or for fish: litecl completion fish | source",
    )


def run(args: argparse.Namespace) -> Output:
    """Print the script. Arguments without fixed choices complete as files."""
    whole = parser({name: import_module(f"litecl.cli.commands.{name}") for name in helps()})
    for action in whole.actions():
        if action.choices is None and action.nargs != 0:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    script = shtab.complete(whole, shell=args.shell)
    if args.shell == "zsh":
        script = f"autoload -U +X compinit && compinit\n{script}"
    return Output({"shell": args.shell, "script": script}, [Text(script)])
