"""The command ``litecl``: its arguments, subcommands and output. Nothing is measured here."""

from litecl.cli.parser import main

__all__ = ["main"]
