"""Tables for people and data for programs."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from litecl.delegate import DelegationReport
from litecl.delegate.report_table import FittingTable
from litecl.interpreter.visible import visible
from litecl.perf.environment import plain
from litecl.report.draw.units import digits

_WIDTH = 120
_FIGURES = ("index", "node", "calls", "launches", "bytes", "multiply-adds")


def to_json(data: Any) -> str:
    """Return data as standard JSON, in lines of at most 120 characters but for lists of plain values, and long values.

    Dataclasses become objects, and non-finite numbers null.
    """
    return _indented(plain(data), "")


def _indented(data: Any, indent: str, key: str = "") -> str:
    flat, inner = json.dumps(data), f"{indent}  "
    if len(inner) + len(key) + len(flat) <= _WIDTH or not data or not isinstance(data, dict | list):
        return key + flat
    if isinstance(data, dict):
        parts = [_indented(value, inner, f"{json.dumps(str(name))}: ") for name, value in data.items()]
        return key + "{" + ",".join(f"\n{inner}{part}" for part in parts) + f"\n{indent}}}"
    if not any(isinstance(each, dict | list) for each in data):
        return key + flat
    return key + "[" + ",".join(f"\n{inner}{_indented(each, inner)}" for each in data) + f"\n{indent}]"


def report_data(report: DelegationReport) -> dict[str, Any]:
    """Return the delegation report as plain data."""
    data: dict[str, Any] = json.loads(report.to_json())
    return data


def table(*columns: str) -> Table:
    """Return an empty table that fits narrow terminals. Columns of figures align right."""
    view = FittingTable(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    for column in columns:
        numeric = column == "%" or column.endswith((" ms", "/s")) or column in _FIGURES
        view.add_column(column, justify="right" if numeric else "left", overflow="fold")
    return view


def line(text: str, style: str = "") -> Text:
    """Return a text that stays on one line, whatever model names it contains."""
    return Text(visible(text), style)


def lines(texts: Iterable[str]) -> Text:
    """Return texts as a cell, one per line."""
    return Text("\n".join(map(visible, texts)))


def titled(title: str, content: Table) -> RenderableType:
    """Return a table under a title that doesn't wrap to the table's width."""
    return Group(line(title), content)


def size(size_bytes: int) -> str:
    """Format a size in the largest binary unit with a value of at least one: ``1.5 MiB``."""
    value, units = float(size_bytes), ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.0f} {units[0]}" if units[0] == "B" else f"{value:.1f} {units[0]}"


def milliseconds(value: float | None) -> str:
    """Format a time with three decimals, or with three digits if there are fewer; nothing for None."""
    return "" if value is None else digits(value) if value < 0.1 else f"{value:.3f}"


def shape(dimensions: Sequence[int]) -> str:
    """Format a shape as ``[1,2,3]``."""
    return f"[{','.join(map(str, dimensions))}]"


def placed(claimed: bool, reason: str = "") -> Text:
    """Return where a node runs, coloured, and why."""
    text = Text("device", "green") if claimed else Text("CPU", "yellow")
    return text.append(f": {visible(reason)}", "default") if reason else text


def number(value: Any) -> str:
    """Format a number with four digits; nothing for None."""
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
