"""Measurements and summaries as tables for people and as plain data for programs."""

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from litecl.delegate import DelegationReport, Tuning
from litecl.delegate.report import NodeRow
from litecl.interpreter.graph import Array
from litecl.perf.measure.bench import BenchResult, Profile
from litecl.perf.measure.coverage import Row as OperatorRow
from litecl.perf.measure.devices import DeviceRow
from litecl.perf.measure.summary import GraphSummary, ModelSummary, NodeLine, SignatureSummary, TensorLine
from litecl.perf.measure.tuning import Tuned


def to_json(data: Any) -> str:
    """Data as standard JSON: numbers that are not finite become null."""
    return json.dumps(_finite(data), indent=2)


def report_data(report: DelegationReport) -> dict[str, Any]:
    """The delegation report as plain data."""
    data: dict[str, Any] = json.loads(report.to_json())
    return data


def bench_data(result: BenchResult, profile: Profile | None) -> dict[str, Any]:
    """Every figure of a benchmark as plain data."""
    return {
        "subjects": [subject.to_dict() for subject in result.subjects],
        "comparison": None if result.comparison is None else asdict(result.comparison),
        "delegation": None if result.report is None else report_data(result.report),
        "profile": None if profile is None else asdict(profile),
    }


def value_data(name: str, value: Array) -> dict[str, Any]:
    """A tensor's name, type, shape, range and first elements."""
    numeric = value.dtype.kind in "fiu" and value.size > 0
    return {
        "name": name,
        "dtype": str(value.dtype),
        "shape": list(value.shape),
        "min": float(value.min()) if numeric else None,
        "max": float(value.max()) if numeric else None,
        "mean": float(value.mean(dtype=np.float64)) if numeric else None,
        "first": [_plain(x) for x in value.reshape(-1)[:8].tolist()],
    }


def devices_table(rows: Sequence[DeviceRow]) -> RenderableType:
    """The OpenCL devices, and which of them litecl takes unasked."""
    columns = ("index", "name", "platform", "type", "compute units", "compiles for", "vector width", "memory")
    table = _table(*columns, "default for")
    for row in rows:
        table.add_row(
            str(row.index),
            row.name,
            row.platform,
            row.type,
            str(row.compute_units),
            row.processor or "",
            str(row.vector_width),
            size(row.memory_bytes),
            row.problem or ", ".join(row.default_for),
        )
    return table


def tuning_view(row: Tuned) -> RenderableType:
    """What litecl is tuned to on a device, beside the defaults and the times that tell why."""
    title = f"tuning of device {row.index}, {row.name}: "
    if not row.timings:
        return Text(title + "there is nothing to choose")
    values, timed = _table("choice", "value", "default"), _table("choice", "timed", "best ms")
    chosen, defaults = asdict(row.tuning), asdict(Tuning())
    for choice in dict.fromkeys(timing.choice for timing in row.timings):
        values.add_row(choice, f"{chosen[choice]:,.0f}", f"{defaults[choice]:,.0f}")
    for timing in row.timings:
        times = (f"{name} {ms:.3f}" for name, ms in timing.times_ms.items())
        timed.add_row(timing.choice, timing.subject, "\n".join(times))
    return Group(Text(f"{title}kept in {row.file}"), values, timed)


def coverage_table(rows: Sequence[OperatorRow]) -> RenderableType:
    """The operators, and what runs them in which types."""
    table = _table("operator", "versions", "CPU", "device", "converter", "cases", "TFLite")
    for row in rows:
        device = " ".join(row.device) or ("yes" if row.on_device else "")
        marks = ["yes" if mark else "" for mark in (row.converter, row.tflite)]
        table.add_row(row.name, row.versions, " ".join(row.cpu), device, marks[0], str(row.cases or ""), marks[1])
    return table


def summary_view(name: str, summary: ModelSummary) -> RenderableType:
    """A model: its interface, and per subgraph its operators and tensors."""
    title = f"{name}: {len(summary.subgraphs)} subgraphs, {sum(summary.operators.values())} nodes, "
    parts: list[RenderableType] = [Text(title + f"{size(summary.constant_bytes)} of constants")]
    if summary.description:
        parts.append(Text(f"description: {summary.description}"))
    if summary.metadata:
        parts.append(Text(f"metadata: {', '.join(summary.metadata)}"))
    parts += [_signature(signature) for signature in summary.signatures]
    for index, graph in enumerate(summary.subgraphs):
        parts.append(_graph(index, graph))
    return Group(*parts)


def nodes_table(lines: Sequence[NodeLine], rows: Sequence[NodeRow] = ()) -> RenderableType:
    """Every node, with the place where it runs if a delegate was asked."""
    placed = {(row.subgraph, row.node): row for row in rows}
    table = _table("subgraph", "node", "operator", "inputs", "outputs", "options", *(("where",) if rows else ()))
    for line in lines:
        row = placed.get((line.subgraph, line.node))
        table.add_row(
            str(line.subgraph),
            str(line.node),
            f"{line.op} v{line.version}",
            "\n".join(line.inputs),
            "\n".join(line.outputs),
            line.options,
            *(() if row is None else (_place(row),)),
        )
    return table


def values_table(title: str, values: Sequence[dict[str, Any]]) -> RenderableType:
    """Tensors as ``value_data`` describes them."""
    table = _table("name", "type", "shape", "min", "max", "mean", "first")
    for value in values:
        table.add_row(
            value["name"],
            value["dtype"],
            _shape(value["shape"]),
            _number(value["min"]),
            _number(value["max"]),
            _number(value["mean"]),
            " ".join(_number(x) for x in value["first"]),
        )
    return _titled(title, table)


def bench_view(result: BenchResult) -> RenderableType:
    """Times of every subject, and how they compare."""
    table = _table("runtime", "threads", "prepare ms", "first ms", "median ms", "p10-p90 ms", "min ms", "runs")
    for s in result.subjects:
        table.add_row(
            s.name,
            "auto" if s.num_threads is None else str(s.num_threads),
            f"{s.prepare_ms:.1f}",
            f"{s.first_ms:.3f}",
            f"{s.stats.median_ms:.3f}",
            f"{s.stats.p10_ms:.3f}-{s.stats.p90_ms:.3f}",
            f"{s.stats.min_ms:.3f}",
            str(len(s.stats.times_ms)),
        )
    if result.comparison is None:
        return table
    c = result.comparison
    against = result.subjects[1].name
    line = (
        f"{against} / litecl: median x{c.median_ratio:.2f}, min x{c.min_ratio:.2f} (above 1: litecl is faster); "
        f"largest difference {c.difference:.1e} of the output's magnitude"
    )
    return Group(table, Text(line))


def profile_view(profile: Profile) -> RenderableType:
    """Device time by operator and by launch, then host time by node."""
    parts = [_kernels_by_op(profile), _kernels_by_node(profile)] if profile.kernels else []
    return Group(*parts, _host(profile))


def size(size_bytes: int) -> str:
    """A size in the largest binary unit that leaves at least one: ``1.5 MiB``."""
    value, units = float(size_bytes), ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.0f} {units[0]}" if units[0] == "B" else f"{value:.1f} {units[0]}"


def _kernels_by_op(profile: Profile) -> RenderableType:
    groups: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for k in profile.kernels:
        groups[k.op].append((k.duration_ms, k.flops))
    total_ms = sum(k.duration_ms for k in profile.kernels)
    table = _table("operator", "launches", "device ms", "%", "GFLOP/s")
    for op, launches in sorted(groups.items(), key=lambda item: -sum(ms for ms, _ in item[1])):
        ms, flops = sum(ms for ms, _ in launches), sum(f for _, f in launches)
        table.add_row(op, str(len(launches)), f"{ms:.3f}", f"{_percent(ms, total_ms):.1f}", _rate(flops, ms))
    return _titled(f"device, {total_ms:.3f} ms by operator", table)


def _kernels_by_node(profile: Profile) -> RenderableType:
    table = _table("subgraph", "node", "operator", "kernel", "device ms", "GFLOP/s")
    for k in profile.kernels:
        name = k.kernel if k.kernel == k.entry else f"{k.kernel}:{k.entry}"
        table.add_row(str(k.subgraph), str(k.node), k.op, name, f"{k.duration_ms:.4f}", _rate(k.flops, k.duration_ms))
    return _titled("device, by launch", table)


def _host(profile: Profile) -> RenderableType:
    total_ms = sum(row.total_ms for row in profile.host) / profile.runs
    table = _table("operator", "calls", "host ms", "%")
    groups: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for row in profile.host:
        groups[row.op].append((row.calls, row.total_ms))
    for op, rows in sorted(groups.items(), key=lambda item: -sum(ms for _, ms in item[1])):
        calls, ms = sum(c for c, _ in rows) / profile.runs, sum(ms for _, ms in rows) / profile.runs
        table.add_row(op, f"{calls:g}", f"{ms:.3f}", f"{_percent(ms, total_ms):.1f}")
    return _titled(f"host, {total_ms:.3f} ms by operator (per invoke)", table)


def _signature(signature: SignatureSummary) -> Text:
    arguments, results = ", ".join(signature.inputs), ", ".join(signature.outputs)
    return Text(f"signature {signature.key} (subgraph {signature.subgraph}): {arguments} -> {results}")


def _graph(index: int, graph: GraphSummary) -> RenderableType:
    table = _table("", "name", "type", "shape")
    for kind, lines in (("input", graph.inputs), ("output", graph.outputs)):
        for tensor in lines:
            table.add_row(kind, tensor.name, tensor.type, _tensor_shape(tensor))
    operators = ", ".join(f"{count} {name}" for name, count in graph.operators.items()) or "none"
    tensors = ", ".join(f"{count} {name}" for name, count in graph.tensors.items())
    counts = Text(f"operators: {operators}\ntensors: {tensors}")
    return Group(Text(f"subgraph {index} {graph.name}"), table, counts)


def _titled(title: str, table: Table) -> RenderableType:
    """A title of its own, which a narrow table does not break."""
    return Group(Text(title), table)


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for column in columns:
        numeric = column == "%" or column.endswith((" ms", "/s")) or column in ("index", "node", "calls", "launches")
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    return table


def _place(row: NodeRow) -> str:
    place = "device" if row.claimed else "CPU"
    return f"{place}: {row.reason}" if row.reason else place


def _tensor_shape(tensor: TensorLine) -> str:
    return "?" if tensor.shape is None else _shape(tensor.shape)


def _shape(shape: Sequence[int]) -> str:
    return f"[{','.join(map(str, shape))}]"


def _number(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _percent(part: float, whole: float) -> float:
    return 100 * part / whole if whole else 0.0


def _rate(flops: int, duration_ms: float) -> str:
    return f"{flops / duration_ms * 1e-6:.1f}" if flops and duration_ms else ""


def _plain(value: Any) -> Any:
    """An element that JSON can hold."""
    return value if isinstance(value, bool | int | float) else str(value)


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
