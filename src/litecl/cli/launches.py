"""Launches as planned for a GPU: data for programs, and a table for people."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from litecl.cli.tables import size, table
from litecl.delegate.backend.absent import AbsentDevice
from litecl.delegate.gpu.profiles import Profile
from litecl.delegate.plan.gpu.estimate import LaunchRow, host_waits, launch_rows
from litecl.delegate.report_details import kernel_name
from litecl.delegate.tuning import Tiled


def launch_data(device: AbsentDevice) -> dict[str, Any]:
    """Return every launch of what was planned for a GPU, their times at its peak together, how often the host waits at
    least, and the GPU.
    """
    rows = launch_rows(device.plans, device.profile)
    return {
        "launches": [asdict(row) for row in rows],
        "roofline_us": sum(row.roofline_us for row in rows),
        "waits": host_waits(device.plans),
        "launch_us": len(rows) * device.profile.launch_us,
        "profile": {"name": device.name, **asdict(device.profile)},
    }


def launch_view(device: AbsentDevice) -> RenderableType:
    """Return the same for people."""
    rows, profile = launch_rows(device.plans, device.profile), device.profile
    made = table("node", "kernel", "tile", "groups", "items", "flops", "bytes", "bound", "roofline us", "busy")
    for row in rows:
        made.add_row(
            f"{row.subgraph}:{row.node}",
            kernel_name(row.kernel, row.entry),
            tile_view(row.tiled),
            f"{row.groups} x {row.group}",
            *(str(row.work_items), str(row.flops), size(row.bytes), row.bound),
            f"{row.roofline_us:.2f}",
            f"{row.busy:.0%}",
        )
    return Group(made, Text(_summary(device.name, rows, profile)))


def tile_view(tiled: Tiled | None) -> str:
    """Return the tile of a launch, and where it comes from; "" where it has none."""
    return "" if tiled is None else f"{tiled.tile} ({tiled.source})"


def _summary(name: str, rows: Sequence[LaunchRow], profile: Profile) -> str:
    units = f" ({profile.matrix_tflops:g} by matrix units)" if any(row.matrix for row in rows) else ""
    units = f" ({profile.half_tflops:g} in halves)" if any(row.halves for row in rows) else units
    total, idle = sum(row.roofline_us for row in rows), sum(row.busy < 1 for row in rows)
    return (
        f"{name} ({profile.product}): {len(rows)} launches, estimated from its peaks of {profile.tflops} TFLOP/s"
        f"{units} and {profile.gb_per_s:g} GB/s: {total:.1f} us at the roofline, and "
        f"{len(rows) * profile.launch_us:.0f} us to launch. {idle} launches leave some of {profile.cores} "
        "slots for groups idle."
    )
