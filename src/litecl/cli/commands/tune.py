"""``litecl tune``: measures tiles for a model's products on a GPU once, and saves the fastest."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from litecl.cli.command import (
    A_MODEL,
    Output,
    device_arguments,
    device_options,
    input_arguments,
    inputs,
    model_file,
    progress,
)
from litecl.cli.tables import table
from litecl.delegate import disk
from litecl.delegate.tuning import file_of
from litecl.interpreter import Interpreter
from litecl.perf.tiles import TunedModel, TunedProducts, tuned_model

HELP = "measure the fastest tiles of a GPU for a model's products, and keep them"
EXAMPLES = """\
litecl tune model.tflite
litecl tune a.tflite b.tflite --device 1
litecl tune model.tflite --precision fp16
litecl tune model.tflite --shape x=8,512 --again
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("models", type=model_file, nargs="+", metavar="MODEL", help=A_MODEL)
    input_arguments(parser)
    device_arguments(parser)
    parser.add_argument("--again", action="store_true", help="measure again what was measured before")


def run(args: argparse.Namespace) -> Output:
    """Measure every model's products not yet measured on the device."""
    folder = disk.own(args.cache_dir)
    data, view = [], []
    for path in args.models:
        with progress("measuring", None) as bar:
            values = inputs(args, Interpreter(path))
            tuned = tuned_model(path, values, device_options(args), folder, again=args.again, tick=bar)
        file = file_of(folder, tuned.device.identity)
        data.append(_data(path, tuned, file))
        view += _view(path, tuned, file)
    return Output({"models": data}, view)


def _data(path: Path, tuned: TunedModel, file: Path) -> dict[str, Any]:
    products = [one.to_dict() for one in tuned.products]
    kept = {"model": str(path), "device": tuned.device.name, "file": str(file)}
    return {**kept, "products": products, "problems": list(tuned.problems)}


def _view(path: Path, tuned: TunedModel, file: Path) -> list[RenderableType]:
    """Show the measurements, longest time first."""
    title = f"{Path(path).name} on {tuned.device.name}: "
    if not tuned.products:
        return [Text(f"{title}all of its products were measured before (--again), or it has none in tiles")]
    view = table("products", "launches", "usual tile", "ms", "fastest", "ms")
    for one in sorted(tuned.products, key=lambda one: -one.usual_ms):
        changed = [str(one.tile), f"{one.ms:.4f}"] if one.tile != one.usual else ["", ""]
        view.add_row(str(one.products), str(one.launches), str(one.usual), f"{one.usual_ms:.4f}", *changed)
    return [Text(title + _sum(tuned.products)), view, *map(Text, tuned.problems), Text(f"kept in {file}")]


def _sum(products: Sequence[TunedProducts]) -> str:
    before, after = sum(one.usual_ms for one in products), sum(one.ms for one in products)
    return f"{before:.3f} ms in the estimated tiles, {after:.3f} ms in the fastest"
