"""``litecl coverage``: lists operators and where they run with which types."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from litecl.cli.command import Output
from litecl.cli.outputs import OutputFile
from litecl.cli.tables import lines, table
from litecl.interpreter.whole_files import put_text

if TYPE_CHECKING:
    from litecl.verify.coverage import Row

HELP = "list operators, their types, and verification results of devices"
EXAMPLES = """\
litecl coverage
litecl coverage --output operators.md
litecl coverage --results gpu.json cpu.json --output devices.html
litecl coverage --json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "-o",
        "--output",
        type=OutputFile(),
        metavar="FILE",
        help="write the table to this file (.md; with results also .html, a page of devices)",
    )
    parser.add_argument(
        "--results",
        nargs="+",
        type=Path,
        default=[],
        metavar="FILE.json",
        help="add a column of passed checks per device, from `litecl verify -o FILE.json`",
    )


def run(args: argparse.Namespace) -> Output:
    """List the operators."""
    from litecl.report.board import board
    from litecl.verify import coverage  # which imports the converter
    from litecl.verify.record import load

    results = [load(path) for path in args.results]
    rows = coverage.rows(results)
    if args.output is not None:
        as_page = bool(results) and args.output.suffix.lower() == ".html"
        put_text(args.output, board(results) if as_page else coverage.markdown(rows))
    data = {"operators": [asdict(row) for row in rows], "missing": coverage.missing()}
    devices = coverage.devices_of(rows)
    view = table(*coverage.COLUMNS, *devices)
    for row in rows:
        view.add_row(*coverage.cells(row, devices))
    return Output(data, [view, _refusals(rows)])


def _refusals(rows: Sequence["Row"]) -> RenderableType:
    view = table("operator", "left to the CPU")
    for row in rows:
        if row.refused:
            view.add_row(row.name, lines(row.refused))
    return Group(Text("Whatever their types:"), view)
