"""``litecl coverage``: the operators, and what runs them in which types."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import RenderableType

from litecl.perf.cli.command import Output
from litecl.perf.cli.tables import table
from litecl.perf.measure import coverage

HELP = "list the operators and their types"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("--output", type=Path, metavar="FILE.md", help="write the table there as Markdown")


def run(args: argparse.Namespace) -> Output:
    """List the operators."""
    rows = coverage.rows()
    if args.output is not None:
        args.output.write_text(coverage.markdown(rows))
    data = {"operators": [asdict(row) for row in rows], "missing": coverage.missing()}
    return Output(data, [_operators(rows)])


def _operators(rows: Sequence[coverage.Row]) -> RenderableType:
    """The operators, and what runs them in which types."""
    made = table("operator", "versions", "CPU", "device", "converter", "cases", "TFLite")
    for row in rows:
        device = " ".join(row.device) or ("yes" if row.on_device else "")
        marks = ["yes" if mark else "" for mark in (row.converter, row.tflite)]
        made.add_row(row.name, row.versions, " ".join(row.cpu), device, marks[0], str(row.cases or ""), marks[1])
    return made
