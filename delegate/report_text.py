"""The delegation report as text, for terminals."""

import io
from collections import Counter
from typing import Any

from rich.console import Group
from rich.text import Text

from litecl.delegate.report_table import FittingTable, PlainConsole
from litecl.interpreter.visible import visible


def text(report: Any) -> str:  # a DelegationReport, whose module imports this one
    """Return a report as plain text, 120 columns wide."""
    out = io.StringIO()
    PlainConsole(file=out, width=120, highlight=False).print(renderable(report))
    return out.getvalue()


def renderable(report: Any) -> Group:
    """Return warnings, the cost of the last invoke, and a table of operators by where they run and why."""
    warnings = (Text(f"WARNING: {visible(line)}", "bold yellow") for line in report.warnings)
    return Group(*warnings, *(Text(visible(line)) for line in report.lines), _table(report))


def _table(report: Any) -> FittingTable:
    """Count nodes by operator, place and reason."""
    rows = Counter((row.op, row.claimed, row.reason) for row in report.nodes)
    table = FittingTable("operator", "nodes", "where", "reason")
    device, cpu = Text("device", "green"), Text("CPU", "yellow")
    for (op, claimed, reason), count in sorted(rows.items(), key=lambda item: (-item[1], item[0])):
        table.add_row(op, str(count), device if claimed else cpu, Text(visible(reason)))
    return table
