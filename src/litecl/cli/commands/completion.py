"""``litecl completion``: what makes a shell complete the command's words."""

import argparse
from importlib import import_module

from rich.text import Text

from litecl.cli.command import Output
from litecl.cli.parser import helps, parser

HELP = "print a script that has a shell complete the words of this command"

_BASH = """_litecl() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" flags=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{commands} --help --version" -- "$word"))
        return
    fi
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
    if [[ "$word" == -* ]]; then
        COMPREPLY=($(compgen -W "$flags" -- "$word"))
    else
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}}
complete -o filenames -F _litecl litecl"""

_FISH_COMMAND = "complete -c litecl -n __fish_use_subcommand -f -a {name} -d {help}"
_FISH_FLAG = "complete -c litecl -n '__fish_seen_subcommand_from {name}' -l {flag}"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "shell",
        choices=("bash", "zsh", "fish"),
        help='the shell: put eval "$(litecl completion bash)" into its .bashrc or .zshrc, '
        "or for fish: litecl completion fish | source",
    )


def run(args: argparse.Namespace) -> Output:
    """Print the script."""
    flags = _flags()
    if args.shell == "fish":
        lines = [_FISH_COMMAND.format(name=name, help=repr(text)) for name, text in helps().items()]
        lines += [_FISH_FLAG.format(name=name, flag=flag[2:]) for name in flags for flag in flags[name]]
        script = "\n".join(lines)
    else:
        cases = "\n".join(f'        {name}) flags="{" ".join(found)}" ;;' for name, found in flags.items())
        script = _BASH.format(commands=" ".join(flags), cases=cases)
        if args.shell == "zsh":
            script = f"autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n{script}"
    return Output({"shell": args.shell, "script": script}, [Text(script)])


def _flags() -> dict[str, list[str]]:
    """Return the long flags of every subcommand."""
    modules = {name: import_module(f"litecl.cli.commands.{name}") for name in helps()}
    (subparsers,) = (a for a in parser(modules)._actions if isinstance(a, argparse._SubParsersAction))
    return {
        name: [flag for action in under._actions for flag in action.option_strings if flag.startswith("--")]
        for name, under in subparsers.choices.items()
    }
