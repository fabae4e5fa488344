"""The ``litecl`` command: arguments, subcommands and output. Measures nothing itself."""

from collections.abc import Sequence

__all__ = ["main"]
_INTERRUPTED = 130  # the shell convention: 128 + SIGINT


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command as ``parser.main`` does; return 130 if Ctrl-C interrupts it, as early as while it is imported."""
    try:
        from litecl.cli import parser

        return parser.main(arguments)
    except KeyboardInterrupt:
        return _INTERRUPTED
