"""The HTML page of a bisection."""

from collections.abc import Mapping
from typing import Any

from litecl.report.sheet import Part, Sheet, drawn, sheet

_VERDICTS = {
    "right": "All outputs are right.",
    "fault": "{nodes} {is_are} wrong given right inputs{where}.",
    "rounding": "Every node is right by itself: small errors grow from node to node.",
}


def page(model: str, data: Mapping[str, Any]) -> str:
    """Return a bisection's result as HTML. data: the command's JSON."""
    growth = [{**point, "name": ""} for point in data["growth"]]
    parts = (
        *_fault(data["fault"]),
        Part(
            "Growth of errors",
            ("node", "operator", "error"),
            tuple((str(point["node"]), point["op"], _number(point["error"])) for point in growth),
            "Behind each node, with all nodes before it on the suspect.",
            drawn(growth, data["relative"]) if growth else None,
        ),
        *_halves(data["halves"]),
        Part("Notes", ("what could not be looked at",), tuple((note,) for note in data["notes"])),
    )
    return sheet(Sheet("litecl bisect", f"{data['suspect']} against {data['reference']}", (*_lead(data), model), parts))


def _lead(data: Mapping[str, Any]) -> tuple[str, ...]:
    fault, output, halves = data["fault"] or {}, data["output"], data["halves"]
    names = [f"{op} (node {node})" for op, node in zip(fault.get("ops", ()), fault.get("nodes", ()), strict=True)]
    loop = f", in iteration {'.'.join(map(str, fault['iterations']))}" if fault.get("iterations") else ""
    words = {"nodes": ", ".join(names), "is_are": "is" if len(names) == 1 else "are", "where": loop}
    lines = [_VERDICTS[data["verdict"]].format(**words)]
    lines += [] if output is None else [f"Output {output['index']}: {output['worst']}."]
    if halves is not None and halves["keep_float"]:
        kept = ", ".join(node if isinstance(node, str) else ":".join(map(str, node)) for node in halves["keep_float"])
        lines.append(f"Right with these nodes in float32 (error {_number(halves['kept_error'])}): {kept}")
    return tuple(lines)


def _fault(fault: Mapping[str, Any] | None) -> tuple[Part, ...]:
    if fault is None:
        return ()
    bounds = [["" if x[end] is None else _number(x[end]) for end in ("min", "max")] for x in fault["inputs"]]
    rows = tuple(
        (str(position), x["dtype"], str(x["shape"]), *ends)
        for position, (x, ends) in enumerate(zip(fault["inputs"], bounds, strict=True))
    )
    columns = "operand", "type", "shape", "min", "max"
    return (Part("What the wrong nodes are given", columns, rows, f"{fault['tensor']}: {fault['worst']}"),)


def _halves(halves: Mapping[str, Any] | None) -> tuple[Part, ...]:
    if halves is None:
        return ()
    columns = "node", "operator", "name", "error", "in halves"
    rows = [
        (f"{f['subgraph']}:{f['node']}", f["op"], f["name"], _number(f["error"]), "\n".join(f["what"]))
        for f in halves["findings"]
        if f["what"]
    ]
    lead = f"Each node with right inputs, in halves ({halves['mode']}), relative to its largest result."
    picture = drawn(halves["findings"], halves["share"]) if halves["findings"] else None
    return (Part("Half precision", columns, tuple(rows), lead, picture),)


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.4g}"
