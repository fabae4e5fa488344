"""The delegation report as HTML without scripts, for notebooks."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from litecl.delegate.naming import counted

_STYLE = """<style>
.litecl table{border-collapse:collapse;margin:.3em 0 .8em}
.litecl th,.litecl td{border:1px solid #8886;padding:.15em .5em;text-align:left;vertical-align:top}
.litecl .warning{color:#b00;font-weight:bold}
.litecl .cpu td{background:#f802}
</style>"""
_OPEN_UP_TO = 60  # nodes: longer lists are folded


def html(report: Any) -> str:  # a DelegationReport, whose module imports this one
    """Return a report as HTML: a summary, warnings, regions, nodes on the CPU with reasons, and every node."""
    cost = report.counters
    head = (
        f"{report.claimed} of {counted(len(report.nodes), 'node')} in {counted(len(report.partitions), 'region')} on "
        f"<b>{escape(report.device)}</b>; built in {report.build_s:.2f} s, {counted(report.cache_hits, 'program')} "
        "from the cache"
    )
    invoke = (
        f"<p>last invoke: {counted(cost.kernel_launches, 'launch')}, {counted(cost.host_syncs, 'wait')}, "
        f"{_size(cost.bytes_to_device)} to the device, {_size(cost.bytes_to_host)} to the host</p>"
    )
    warnings = "".join(f'<p class="warning">{escape(line)}</p>' for line in report.warnings)
    left = [row for row in report.nodes if not row.claimed]
    return (
        f'{_STYLE}<div class="litecl"><p>{head}</p>{warnings}{invoke if cost.any else ""}'
        f"{_partitions(report.partitions)}"
        f"{_nodes('Nodes on the CPU', left)}{_nodes('All nodes', report.nodes)}</div>"
    )


def _partitions(rows: Sequence[Any]) -> str:
    columns = ("region", "nodes", "launches", "arena", "constants", "operations", "runs as", "loops", "kernels")
    return _table(
        columns,
        (
            (
                "",
                (
                    f"{row.partition} (subgraph {row.subgraph})",
                    str(len(row.nodes)),
                    str(row.launches),
                    _size(row.arena_bytes),
                    _size(row.constant_bytes),
                    f"{row.flops:,}",
                    str(row.manner),
                    "; ".join(row.loops),
                    ", ".join(row.kernels),
                ),
            )
            for row in rows
        ),
    )


def _nodes(title: str, rows: Sequence[Any]) -> str:
    if not rows:
        return ""
    columns = ("node", "operator", "where", "reason", "kernels", "inputs", "outputs")
    lines = (
        (
            "" if row.claimed else "cpu",
            (
                f"{row.subgraph}:{row.node}",
                row.op,
                "CPU" if not row.claimed else "device" if row.partition is None else f"region {row.partition}",
                row.reason,
                ", ".join(row.kernels),
                "\n".join(map(_tensor, row.inputs)),
                "\n".join(map(_tensor, row.outputs)),
            ),
        )
        for row in rows
    )
    opened = " open" if len(rows) <= _OPEN_UP_TO else ""
    return f"<details{opened}><summary>{title} ({len(rows)})</summary>{_table(columns, lines)}</details>"


def _tensor(row: Any) -> str:
    shape = "?" if row.shape is None else ",".join(map(str, row.shape))
    constant = ", constant" if row.constant else ""
    return f"{row.name or row.tensor} {row.type}[{shape}], {_size(row.size_bytes)}{constant}"


def _table(columns: Sequence[str], lines: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Return a table. lines: the class of a row and its cells, whose line breaks stay."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f'<tr class="{kind}">{"".join(map(_cell, cells))}</tr>' for kind, cells in lines)
    return f"<table><tr>{head}</tr>{body}</table>"


def _cell(text: str) -> str:
    return f"<td>{escape(text).replace(chr(10), '<br>')}</td>"


def _size(size_bytes: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if size_bytes < 1024:
            return f"{size_bytes:.4g} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.4g} GiB"
