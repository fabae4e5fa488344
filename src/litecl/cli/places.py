"""What runtimes do with a model's nodes, for ``litecl where`` and ``litecl convert --check``."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.table import Table as RichTable

from litecl.cli.command import progress
from litecl.cli.tables import line, lines, number, table, titled
from litecl.interpreter.errors import ModelError
from litecl.where.places import Place, runtimes_of
from litecl.where.table import Table

if TYPE_CHECKING:
    from litecl.where.measure import Measured

_MOST = 4  # nodes to name
_SHORT = {"tflm": "tflite_micro"}


def full_name(name: str) -> str:
    """Return a runtime's name for one that may be short."""
    return _SHORT.get(name, name)


def names_of(given: Sequence[str], known: Table) -> list[str]:
    """Return runtimes of a table and of lists by name, all by default. Raises ModelError for another name."""
    names = [full_name(name) for name in given]
    if unknown := [name for name in names if name not in runtimes_of(known)]:
        raise ModelError(f"runtime {unknown[0]}: expected one of {', '.join(runtimes_of(known))}")
    return [*dict.fromkeys(names)] or [*runtimes_of(known)]


def shown_nodes(nodes: Sequence[str]) -> str:
    """Return nodes as text; the first ones and their number if there are many."""
    return " ".join(nodes if len(nodes) <= _MOST else [*nodes[: _MOST - 1], f"... ({len(nodes)} in all)"])


def notes(places: Sequence[Place], names: Sequence[str]) -> list[RenderableType]:
    """Return what is refused and computed otherwise, with reasons and what to change."""
    view = table("runtime", "nodes", "operator", "what", "it runs with")
    rows: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        for place in places:
            verdict = place.verdicts[name]
            if name in place.changes:
                answer = f"{verdict}{f': {verdict.reason}' if verdict.reason else ''}"
                key = (name, place.kind.op, answer, "\n".join(place.changes[name]))
                rows.setdefault(key, []).append(place.label)
    for (name, op, answer, changes), nodes in rows.items():
        view.add_row(name, shown_nodes(nodes), op, line(answer), lines(changes.splitlines()))
    title = "refused, computed otherwise or left to the CPU, and the nearest nodes that run"
    return [titled(title, view)] if rows else []


def measured(content: bytes, names: Sequence[str], seed: int, timeout_s: float) -> list["Measured"]:
    """Run a model in runtimes, those that are installed."""
    from litecl.where.measure import measure

    results = []
    with progress("measuring", len(names)) as tick:
        for name in names:
            results.append(measure(content, name, seed, timeout_s))
            tick()
    return results


def measured_view(measured: Sequence["Measured"]) -> RichTable:
    """Return what runtimes did with a whole model."""
    view = table("runtime", "output", "differing", "steps", "relative", "remark")
    for one in measured:
        if one.refused is not None:
            view.add_row(one.runtime, "", "", "", "", line(one.refused))
        if one.placed:
            view.add_row(one.runtime, "", "", "", "", line(one.placed))
        for name, apart in one.outputs.items():
            view.add_row(one.runtime, line(name), *_figures(apart), line(str(apart["wrong"])))
    return view


def _figures(apart: Mapping[str, Any]) -> tuple[str, str, str]:
    share = apart["differing"] / apart["numbers"] if apart["numbers"] else 0.0
    return f"{share:.1%}", number(apart["steps"]), number(apart["relative"])
