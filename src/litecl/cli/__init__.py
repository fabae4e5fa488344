"""The ``litecl`` command: arguments, subcommands and output. Measures nothing itself."""

from litecl.cli.parser import main

__all__ = ["main"]
