"""Shows a profile as tables: device time by operator and by launch, host time by operator."""

from collections import defaultdict

from rich.console import Group, RenderableType
from rich.table import Table

from litecl.cli.tables import milliseconds, table, titled
from litecl.delegate.report_details import kernel_name
from litecl.delegate.tuning import Tiled
from litecl.perf.bench import Profile


def profile_view(profile: Profile, of: str = "") -> RenderableType:
    """Show device time by operator and by launch, then host time by operator. of: begins the titles."""
    views = [_kernels_by_op(profile), _kernels_by_node(profile)] if profile.kernels else []
    return Group(*(titled(of + title, view) for title, view in (*views, _host(profile))))


def _kernels_by_op(profile: Profile) -> tuple[str, Table]:
    groups: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for k in profile.kernels:
        groups[k.op].append((k.duration_ms, k.flops))
    total_ms = sum(k.duration_ms for k in profile.kernels)
    view = table("operator", "launches", "device ms", "%", "GFLOP/s")
    for op, launches in sorted(groups.items(), key=lambda item: -sum(ms for ms, _ in item[1])):
        ms, flops = sum(ms for ms, _ in launches), sum(f for _, f in launches)
        view.add_row(op, str(len(launches)), milliseconds(ms), f"{_percent(ms, total_ms):.1f}", _rate(flops, ms))
    return f"device, {milliseconds(total_ms)} ms by operator", view


def _kernels_by_node(profile: Profile) -> tuple[str, Table]:
    has_tiles = any(k.tiled for k in profile.kernels)
    view = table("subgraph", "node", "operator", "kernel", *(["tile"] if has_tiles else []), "device ms", "GFLOP/s")
    for k in profile.kernels:
        name, tile = kernel_name(k.kernel, k.entry), [_tile(k.tiled)] if has_tiles else []
        rate = _rate(k.flops, k.duration_ms)
        view.add_row(str(k.subgraph), str(k.node), k.op, name, *tile, milliseconds(k.duration_ms), rate)
    return "device, by launch", view


def _host(profile: Profile) -> tuple[str, Table]:
    total_ms = sum(row.total_ms for row in profile.host) / profile.runs
    view = table("operator", "calls", "host ms", "%")
    groups: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for row in profile.host:
        groups[row.op].append((row.calls, row.total_ms))
    for op, rows in sorted(groups.items(), key=lambda item: -sum(ms for _, ms in item[1])):
        calls, ms = sum(c for c, _ in rows) / profile.runs, sum(ms for _, ms in rows) / profile.runs
        view.add_row(op, f"{calls:g}", milliseconds(ms), f"{_percent(ms, total_ms):.1f}")
    return f"host, {milliseconds(total_ms)} ms by operator (per invoke)", view


def _tile(tiled: Tiled | None) -> str:
    """Return a launch's tile and its source; "" without a tile."""
    return "" if tiled is None else f"{tiled.tile} ({tiled.source})"


def _percent(part: float, whole: float) -> float:
    return 100 * part / whole if whole else 0.0


def _rate(flops: int, duration_ms: float) -> str:
    return f"{flops / duration_ms * 1e-6:.1f}" if flops and duration_ms else ""
