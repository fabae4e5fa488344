"""A page of tables with a verdict, in the look of ``litecl report``: one file, which fetches nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from litecl.report.draw.layers import layers
from litecl.report.page import environment, look


@dataclass(frozen=True)
class Part:
    """A section: a table, a picture above it, or both. Lines of a cell are separated by line breaks."""

    title: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    lead: str = ""
    picture: Markup | None = None


@dataclass(frozen=True)
class Sheet:
    """The contents of a page: the command that made it, what it is of, its result in lines, and sections."""

    command: str
    title: str
    verdict: tuple[str, ...]
    parts: tuple[Part, ...]


def sheet(contents: Sheet) -> str:
    """Return the page as HTML; parts that have nothing to show are left out."""
    shown = Sheet(contents.command, contents.title, contents.verdict, tuple(filter(_is_filled, contents.parts)))
    return environment().get_template("sheet.html").render(sheet=shown, **look())


def _is_filled(part: Part) -> bool:
    return bool(part.rows or part.picture)


def drawn(rows: Sequence[Mapping[str, Any]], limit: float) -> Markup:
    """Return a picture of errors of nodes, in their order. rows: with ``node``, ``op``, ``name`` and ``error``; limit:
    the error from which on one is red.
    """
    bars = [
        {
            "relative": row["error"],
            "steps": None,
            "departs": row["error"] is None or row["error"] > limit,
            "place": (0, row["node"]),
            "op": row["op"],
            "tensor": {"name": row["name"]},
        }
        for row in rows
    ]
    return Markup(layers(bars, limit))
