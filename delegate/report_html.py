"""The delegation report as HTML without scripts, for notebooks."""

from collections.abc import Sequence
from typing import Any

from litecl.delegate.naming import counted
from litecl.interpreter.html import block, folded, paragraph, table

_OPEN_UP_TO = 60  # nodes; longer lists start folded


def html(report: Any) -> str:  # a DelegationReport, whose module imports this one
    """Return a report as HTML: a summary, warnings, regions, nodes on the CPU with reasons, and every node."""
    cost = report.counters
    head = (
        f"{report.claimed} of {counted(len(report.nodes), 'node')} in {counted(len(report.partitions), 'partition')} "
        f"on {report.placed}; built in {report.build_s:.2f} s, {counted(report.cache_hits, 'program')} from the cache"
    )
    invoke = (
        f"last invoke: {counted(cost.kernel_launches, 'launch')}, {counted(cost.host_syncs, 'host sync')}, "
        f"{_size(cost.bytes_to_device)} to the device, {_size(cost.bytes_to_host)} to the host, "
        f"{_size(cost.bytes_on_device)} on the device; {_size(cost.bytes_given)} from a call's arguments, "
        f"{_size(cost.bytes_returned)} to its results"
    )
    return block(
        paragraph(head),
        *(paragraph(line, "warning") for line in report.warnings),
        *((paragraph(invoke),) if cost.any else ()),
        table(_REGION, map(_region, report.partitions)),
        _nodes("Nodes on the CPU", [row for row in report.nodes if not row.claimed]),
        _nodes("All nodes", report.nodes),
    )


_REGION = ("partition", "nodes", "launches", "arena", "constants", "operations", "runs as", "loops", "kernels")
_NODE = ("node", "operator", "where", "reason", "kernels", "inputs", "outputs")


def _region(row: Any) -> Sequence[object]:
    sizes = _size(row.arena_bytes), _size(row.constant_bytes), f"{row.flops:,}"
    texts = row.manner, "; ".join(row.loops), ", ".join(row.kernels)
    return f"{row.partition} (subgraph {row.subgraph})", len(row.nodes), row.launches, *sizes, *texts


def _nodes(title: str, rows: Sequence[Any]) -> str:
    if not rows:
        return ""
    body = table(_NODE, map(_node, rows), ["" if row.claimed else "cpu" for row in rows])
    return folded(f"{title} ({len(rows)})", body, opened=len(rows) <= _OPEN_UP_TO)


def _node(row: Any) -> Sequence[object]:
    where = "CPU" if not row.claimed else "device" if row.partition is None else f"partition {row.partition}"
    tensors = ("\n".join(map(_tensor, each)) for each in (row.inputs, row.outputs))
    return f"{row.subgraph}:{row.node}", row.op, where, row.reason, ", ".join(row.kernels), *tensors


def _tensor(row: Any) -> str:
    shape = "?" if row.shape is None else ",".join(map(str, row.shape))
    constant = ", constant" if row.constant else ""
    return f"{row.name or row.tensor} {row.type}[{shape}], {_size(row.size_bytes)}{constant}"


def _size(size_bytes: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if size_bytes < 1024:
            return f"{size_bytes:.4g} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.4g} GiB"
