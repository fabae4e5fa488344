"""Exports where nodes run and their times as Model Explorer node data, which it overlays on a model's graph.

Graphs are named after subgraphs, or else their signatures or numbers; a node's identifier is its position.
"""

from collections.abc import Callable, Mapping
from typing import Any

from litecl.delegate.report import DelegationReport, NodeRow
from litecl.interpreter.graph import Model

_DEVICE, _CPU, _SLOW = "#a5d6a7", "#ffcc80", "#ef5350"  # backgrounds, under black text

GraphData = dict[str, Any]  # Model Explorer's GraphNodeData


def places(model: Model, report: DelegationReport) -> dict[str, GraphData]:
    """Return every node's region, or the reason why the CPU runs it, by graph name."""
    values = {(row.subgraph, row.node): _where(row) for row in report.nodes}
    return _by_graph(model, values, {"name": f"litecl: {report.device}"})


def _where(row: NodeRow) -> dict[str, Any]:
    if not row.claimed:
        return {"value": f"CPU: {row.reason}", "bgColor": _CPU}
    return {"value": row.reason if row.partition is None else f"region {row.partition}", "bgColor": _DEVICE}


def times(model: Model, report: DelegationReport) -> dict[str, GraphData]:
    """Return every node's device time in milliseconds, by graph name. The run needs ``profile=True``."""
    values: dict[tuple[int, int], dict[str, Any]] = {}
    for row in report.kernels:
        value = values.setdefault((row.subgraph, row.node), {"value": 0.0})
        value["value"] += row.duration_ms
    gradient = [{"stop": 0, "bgColor": "white"}, {"stop": 1, "bgColor": _SLOW}]
    return _by_graph(model, values, {"name": f"ms on {report.device}", "gradient": gradient})


KINDS: Mapping[str, Callable[[Model, DelegationReport], dict[str, GraphData]]] = {"places": places, "times": times}


def _by_graph(model: Model, values: Mapping[tuple[int, int], Any], rest: GraphData) -> dict[str, GraphData]:
    keys = {signature.subgraph: signature.key for signature in reversed(model.signatures)}
    graphs: dict[str, GraphData] = {}
    for index, graph in enumerate(model.subgraphs):
        results = {str(node): value for (subgraph, node), value in sorted(values.items()) if subgraph == index}
        graphs[graph.name or keys.get(index) or (f"subgraph_{index}" if index else "main")] = {
            "results": results,
            **rest,
        }
    return graphs
