"""``litecl devices``: lists the devices, and litecl's tuning for each."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.text import Text

from litecl.cli.command import Output, progress
from litecl.cli.tables import lines, size, table
from litecl.delegate import disk
from litecl.perf.devices import DeviceRow, device_rows

if TYPE_CHECKING:
    from litecl.perf.tuning import Tuned

HELP = "list the devices of this machine"
EXAMPLES = """\
litecl devices
litecl devices --tuning       # tuned settings; measures devices without any
litecl devices --again        # measures all again
litecl devices --json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "--tuning", action="store_true", help="show each device's tuned settings; measure devices without any"
    )
    parser.add_argument("--again", action="store_true", help="like --tuning, but measure all again")


def run(args: argparse.Namespace) -> Output:
    """List the devices, and measure them if requested."""
    rows = device_rows()
    data: dict[str, Any] = {"devices": [asdict(row) for row in rows]}
    view: list[RenderableType] = [_devices(rows), *_why(rows)]
    if args.tuning or args.again:
        from litecl.perf import tuning  # measuring takes the converter

        with progress("measuring", None) as tick:
            tuned = tuning.tuned(disk.own("auto"), again=args.again, tick=tick)
        data["tuning"] = [row.to_dict() for row in tuned]
        view += [part for row in tuned for part in _tuning(row)]
    return Output(data, view)


def _devices(rows: Sequence[DeviceRow]) -> RenderableType:
    """Return a table of devices, with the models that each is the default for."""
    view = table("index", "name", "type", "units", "memory", "default for")
    for row in rows:
        measured = list[str]()
        compiled = f"vectors of {row.vector_width} floats" + (f", for {row.processor}" if row.processor else "")
        if row.own_memory is not None:
            compiled += f", memory {'of its own' if row.own_memory else 'of the host'}"
        if row.float_speed:
            speeds = (f"{speed / 1e9:,.0f}" for speed in (row.float_speed, row.integer_speed))
            measured.append(f"  measured: {' and '.join(speeds)} Gop/s in floats and int8")
        view.add_row(
            str(row.index),
            lines((row.name, f"  {row.platform}", f"  {compiled}", *measured)),
            row.type,
            str(row.compute_units),
            size(row.memory_bytes),
            row.problem or ", ".join(row.default_for),
        )
    return view


def _why(rows: Sequence[DeviceRow]) -> list[RenderableType]:
    """Explain the default choice among several devices, or among several runtimes for a CPU."""
    if len(rows) > 1 and any(row.type == "GPU" for row in rows):
        return [Text("litecl prefers a GPU, discrete over integrated")]
    if len(rows) > 1 and any(row.name == "native" for row in rows):
        return [Text("litecl prefers native, the processor's own back end, over OpenCL devices of the processor")]
    cpus = [row for row in rows if row.type == "CPU"]
    if len({(row.platform, row.platform_version) for row in cpus}) < 2 or len(cpus) < len(rows):
        return []
    if all(row.float_speed for row in cpus if row.compute_units > 1):
        return [Text("of several runtimes for a processor litecl prefers the fastest that --tuning has measured")]
    reason = "of several runtimes for a processor litecl prefers the compiler with the widest vectors, then one "
    return [Text(f"{reason}with dot products of bytes, then PoCL; measure them: litecl devices --tuning")]


def _tuning(row: "Tuned") -> list[RenderableType]:
    """Return a device's tuned settings with their defaults and the times behind them."""
    title = f"tuning of device {row.index}, {row.name}: "
    if not row.timings:
        return [Text(title + "no settings to choose")]
    values, timed = table("choice", "value", "default"), table("choice", "timed", "best ms")
    for choice, (value, default) in row.choices.items():
        values.add_row(choice, f"{value:,.0f}", f"{default:,.0f}")
    for timing in row.timings:
        times = (f"{name} {ms:.3f}" for name, ms in timing.times_ms.items())
        timed.add_row(timing.choice, timing.subject, lines(times))
    count = len(row.tuning.tiles)
    tiles = [Text(f"and tiles for {count} sizes of products, from litecl tune")] if count else []
    return [Text(f"{title}kept in {row.file}"), values, timed, *tiles]
