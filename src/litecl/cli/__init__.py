"""The command ``litecl``: its arguments, its subcommands, and how they show results. Nothing is measured here."""

from litecl.cli.parser import main

__all__ = ["main"]
