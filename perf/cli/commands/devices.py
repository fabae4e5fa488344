"""``litecl devices``: the OpenCL devices, and litecl's tuning for each."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from litecl.delegate import disk
from litecl.perf.cli.command import Output, progress
from litecl.perf.cli.tables import size, table
from litecl.perf.measure import tuning
from litecl.perf.measure.devices import DeviceRow, device_rows
from litecl.perf.measure.tuning import Tuned

HELP = "list the OpenCL devices of this machine"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "--tuning", action="store_true", help="show litecl's tuning for each, and measure those without one"
    )
    parser.add_argument("--again", action="store_true", help="like --tuning, but measure all anew")


def run(args: argparse.Namespace) -> Output:
    """List the devices, and measure them if asked to."""
    rows = device_rows()
    data: dict[str, Any] = {"devices": [asdict(row) for row in rows]}
    view = [_devices(rows)]
    if args.tuning or args.again:
        with progress("measuring", None) as tick:
            tuned = tuning.tuned(disk.default_folder(), again=args.again, tick=tick)
        data["tuning"] = [row.to_dict() for row in tuned]
        view += [_tuning(row) for row in tuned]
    return Output(data, view)


def _devices(rows: Sequence[DeviceRow]) -> RenderableType:
    """Return the OpenCL devices, and which of them litecl uses by default."""
    columns = ("index", "name", "platform", "type", "compute units", "compiles for", "vector width", "memory")
    made = table(*columns, "default for")
    for row in rows:
        made.add_row(
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
    return made


def _tuning(row: Tuned) -> RenderableType:
    """Return a device's tuning, with the defaults and the times that led to it."""
    title = f"tuning of device {row.index}, {row.name}: "
    if not row.timings:
        return Text(title + "there is nothing to choose")
    values, timed = table("choice", "value", "default"), table("choice", "timed", "best ms")
    for choice, (value, default) in row.choices.items():
        values.add_row(choice, f"{value:,.0f}", f"{default:,.0f}")
    for timing in row.timings:
        times = (f"{name} {ms:.3f}" for name, ms in timing.times_ms.items())
        timed.add_row(timing.choice, timing.subject, "\n".join(times))
    return Group(Text(f"{title}kept in {row.file}"), values, timed)
