"""The command ``litecl``: its arguments, its subcommands, and how they show what they found. No measuring."""

from litecl.perf.cli.parser import main

__all__ = ["main"]
