"""The HTML page of a comparison of two models."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from litecl.report.sheet import Part, Sheet, drawn, sheet

_LIMIT = 0.01  # the relative error from which a layer is red, unless the data sets one
_LONG = 20  # most rows to show unasked


def page(data: Mapping[str, Any]) -> str:
    """Return a difference as HTML. data: the command's JSON."""
    errors = [{**layer, "node": layer["a"], "error": layer["relative"]} for layer in data["layers"]]
    limit = data["relative"] or _LIMIT
    parts = (
        Part("Error of each layer", lead="On the same inputs, relative RMS.", picture=drawn(errors, limit))
        if any(layer["relative"] != 0 for layer in data["layers"])
        else Part(""),
        Part("Inputs, outputs and signatures", ("what differs, A → B",), tuple((text,) for text in data["ends"])),
        Part("Operators", ("operator", "A", "B"), tuple((op, str(a), str(b)) for op, (a, b) in data["counts"].items())),
        Part("Fused, split or replaced", ("nodes of A", "operators", "nodes of B", "operators"), _replaced(data)),
        Part("Only in A", ("node", "operator"), tuple(data["only_a"].items())),
        Part("Only in B", ("node", "operator"), tuple(data["only_b"].items())),
        _folded("Changed", ("node", "operator", "name", "what differs, A → B"), tuple(map(_changed, data["changed"]))),
        _folded("Layers", ("node of A", "node of B", "operator", "name", "relative error"), _layers(data["layers"])),
    )
    lead = tuple(f"{line[0].upper()}{line[1:]}." for line in verdict(data))
    title = " → ".join(Path(data[side]).name for side in "ab")
    return sheet(Sheet("litecl diff", title, (*lead, f"A: {data['a']}", f"B: {data['b']}"), parts))


def _folded(title: str, columns: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> Part:
    return Part(title, columns, rows, is_folded=len(rows) > _LONG)


def verdict(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the outcome as phrases, for the structure and for the outputs."""
    counts = {
        "changed": len(data["changed"]),
        "fused, split or replaced": len(data["replaced"]),
        "only in A": len(data["only_a"]),
        "only in B": len(data["only_b"]),
    }
    changes = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    structure = (
        "the same structure" if data["same_structure"] else f"structures differ: {changes or 'inputs or outputs'}"
    )
    outputs = ", ".join(error(value) for value in data["outputs"])
    return structure, f"relative errors of the outputs: {outputs or 'none'}"


def error(value: float | None) -> str:
    """Format a relative error. JSON has None for one that isn't finite."""
    return "not comparable" if value is None or value == float("inf") else f"{value:.4g}"


def numbers(nodes: Sequence[int], subgraph: int) -> str:
    """Format nodes of a subgraph, adjacent ones as a range."""
    prefix = f"{subgraph}:" if subgraph else ""
    adjacent = len(nodes) > 2 and nodes[-1] - nodes[0] == len(nodes) - 1
    return f"{prefix}{nodes[0]} to {nodes[-1]}" if adjacent else ", ".join(f"{prefix}{node}" for node in nodes)


def _replaced(data: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (
            numbers(row["a"], row["subgraphs"][0]),
            ", ".join(row["ops_a"]),
            numbers(row["b"], row["subgraphs"][1]),
            ", ".join(row["ops_b"]),
        )
        for row in data["replaced"]
    )


def _changed(row: Mapping[str, Any]) -> tuple[str, ...]:
    pair = [numbers([row[side]], subgraph) for side, subgraph in zip("ab", row["subgraphs"], strict=True)]
    return " → ".join(dict.fromkeys(pair)), row["op"], row["name"], "\n".join(row["what"])


def _layers(rows: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, ...], ...]:
    differing = (row for row in rows if row["relative"] != 0)
    return tuple((str(r["a"]), str(r["b"]), r["op"], r["name"], error(r["relative"])) for r in differing)
