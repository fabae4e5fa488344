"""Renders a report's data through a template, with pictures, as one self-contained page."""

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from litecl.interpreter.visible import visible, visible_lines
from litecl.report.draw import arena, graph, latency, layers, parts, roofline, timeline, units

_TEMPLATES = Path(__file__).parent / "templates"
_COLOURS = 6  # the costliest operators have their own colours
_UNITS: dict[str, Callable[[float], str]] = {
    "ms": units.ms,
    "seconds": units.seconds,
    "size": units.size,
    "percent": units.percent,
    "count": lambda value: f"{value:,}",
    "flops": partial(units.scaled, unit="op"),
    "flops_per_s": partial(units.scaled, unit="op/s"),
    "bytes_per_s": partial(units.scaled, unit="B/s"),
    "digits": units.digits,
    "tiny": lambda value: "0" if not value else f"{value:.1e}",
}


def page(data: Mapping[str, Any]) -> str:
    """Return a report as HTML. data: ``document.Report`` as JSON."""
    templates = environment()
    templates.filters["shape"] = units.shape
    templates.filters["breaks"] = lambda name: Markup("_<wbr>").join(name.split("_"))
    templates.globals |= {
        "n": partial(figure, data),
        "draw_histogram": _marked(latency.histogram),
        "draw_series": _marked(latency.series),
        "draw_contenders": _marked(latency.contenders),
        "draw_parts": _marked(parts.stacked),
        "draw_roofline": _marked(roofline.roofline),
        "draw_timeline": _marked(timeline.timeline),
        "draw_arena": _marked(arena.arena),
        "draw_layers": _marked(layers.layers),
        "draw_graph": _graph,
        "colours_of": colours,
        "constants_of": _constants,
        "digits": units.digits,
        "percent": units.percent,
        "place": place,
        "sections_of": sections,
        "size": units.size,
        "start_parts": _start_parts,
        "start_rows": start_rows,
        "subgraphs_of": _subgraphs,
        "worst_of": _worst,
    }
    return templates.get_template("report.html").render(
        report=data, graph_data=_for_script(_graph_data(data)), graph_script=_template("graph.js"), **look()
    )


def environment() -> Environment:
    """Return a template environment that escapes all text and rejects unknown names."""
    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_written_out,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _written_out(value: Any) -> Any:
    """Escape characters that would hide or reorder text: names come from models. Markup is litecl's own."""
    return visible_lines(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def look() -> dict[str, Markup]:
    """Return the style and the script of every page."""
    return {"style": _template("style.css"), "script": _template("script.js")}


def _template(name: str) -> Markup:
    return Markup((_TEMPLATES / name).read_text(encoding="utf-8"))


def _for_script(data: Any) -> Markup:
    """Return data as JSON that can't close its script element."""
    return Markup(json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"))


def _graph_data(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return each run's data for the graph's script, which also compares it with another report."""
    return [
        {
            "median": run["latency"]["median_ms"],
            "nodes": [
                {
                    "place": ":".join(map(str, node["place"])),
                    "name": visible(node["outputs"][0]["name"]) if node["outputs"] else "",
                    "kernels": list(dict.fromkeys(name.partition(":")[0] for name in node["kernels"])),
                    "op": visible(node["op"]),
                    **{key: node[key] for key in ("where", "ms")},
                }
                for node in run["nodes"]
            ],
        }
        for run in data["runs"]
    ]


def figure(data: Mapping[str, Any], path: str, unit: str) -> Markup:
    """Format the number at a path in the data (keys joined by dots), with the raw number for programs."""
    value: Any = data
    for key in path.split("."):
        value = value[int(key)] if isinstance(value, list | tuple) else value[key]
    if value is None:
        return Markup(units.NOTHING)
    return Markup('<data value="{}" data-path="{}">{}</data>').format(value, path, _UNITS[unit](value))


def colours(run: Mapping[str, Any]) -> dict[str, str]:
    """Return CSS classes for a run's costliest operators on the device."""
    ops = dict.fromkeys(row["op"] for row in run["operators"] if row["where"] == "device")
    return {op: f"c{i + 1}" for i, op in enumerate(ops) if i < _COLOURS}


def place(at: Sequence[int]) -> str:
    """Return a node's position, prefixed by its subgraph unless that is the main one."""
    subgraph, position = at
    return f"{subgraph}:{position}" if subgraph else str(position)


def sections(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the sections for navigation: anchors and titles."""
    run = data["runs"][0]
    rows = (
        ("beside", "Side by side", len(data["runs"]) + len(data["peers"]) > 1),
        ("earlier", "Since then", data["earlier"]),
        ("d0-latency", "Latency", True),
        ("d0-time", "Time", True),
        ("d0-cpu", "CPU", True),
        ("d0-roofline", "Roofline", run["roofs"]),
        ("d0-graph", "Graph", True),
        ("d0-fused", "Fusion", run["merged"]),
        ("d0-memory", "Memory", run["regions"]),
        ("d0-start", "Start", run["starts"]),
        ("d0-accuracy", "Accuracy", True),
        ("model", "Model", True),
        ("machine", "Machine", True),
        ("d0-nodes", "Nodes", True),
        ("kernels", "Kernels", data["sources"]),
    )
    return [(name, words) for name, words, shown in rows if shown]


def start_rows(starts: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[int | None]]]:
    """Return every phase with its position in each start, None if a start lacks it."""
    names = [[phase["name"] for phase in start["phases"]] for start in starts]
    every = dict.fromkeys(name for own in names for name in own)
    order = sorted(every, key=lambda name: max(own.index(name) if name in own else 0 for own in names))
    return [(name, [own.index(name) if name in own else None for own in names]) for name in order]


def _start_parts(starts: Sequence[Mapping[str, Any]], start: Mapping[str, Any]) -> list[tuple[str, float, str]]:
    colour = {name: f"p{i}" for i, (name, _) in enumerate(start_rows(starts))}
    return [(phase["name"], 1000 * phase["seconds"], colour[phase["name"]]) for phase in start["phases"]]


def _constants(run: Mapping[str, Any]) -> int:
    return sum(size for region in run["regions"] for size in region["constants"].values())


def _worst(outputs: Sequence[Mapping[str, Any]]) -> int:
    """Return the output with the largest difference; a non-finite one counts as the largest."""
    far = [math.inf if row["relative"] is None else row["relative"] for row in outputs]
    return far.index(max(far))


def _subgraphs(run: Mapping[str, Any]) -> list[dict[str, int]]:
    counts = Counter(node["place"][0] for node in run["nodes"])
    return [{"number": number, "nodes": nodes} for number, nodes in sorted(counts.items())]


def _marked(draw: Any) -> Any:
    return lambda *args, **named: Markup(draw(*args, **named))


def _graph(run: Mapping[str, Any], subgraph: int) -> Markup:
    most = max((node["share"] for node in run["nodes"]), default=0.0)
    return Markup(graph.graph([node for node in run["nodes"] if node["place"][0] == subgraph], most))
