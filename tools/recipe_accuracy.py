"""A table of recipes: accuracy and size beside ai-edge-quantizer's by the same recipes, and searches by size.

    PYTHONPATH=tests python -m tools.recipe_accuracy [MODEL ...] [--recipes NAME ...] [--tested 400]

Networks are trained for about a minute on something made up (``support.trained_models``) and converted to float files.
Both quantizers make files of these by the same recipes and the same samples. LiteRT, with XNNPACK as users get it, runs
them on samples that they have not seen. Then litecl chooses the bits of each layer for the sizes of the peer's files of
8 and of 4 bits, and for that of any other file of the peer's that is smaller or more exact than ours. The exit code is
1 if a file of ours is larger than the peer's and not more exact, or more than half a point less accurate at the same
size, if a budget is exceeded or missed by more than 1 %, or if interpreter or device compute otherwise than LiteRT.
"""

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from rich.console import Console
from rich.table import Table

from litecl import bisect
from litecl.converter import Converter, Quantization
from litecl.converter.quantization.recipes.names import entry, named
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.graph import Array
from support.conversion import invoke, litert
from support.trained_models import TASKS, train
from tools.quantized_accuracy import made_apart, of_one, stored

_POINTS = 0.5
_ALIKE_DB = 0.05
_COMPARED = 2
_SEARCHED = ("dynamic_wi8_afp32", "dynamic_wi4_afp32")
RECIPES: Mapping[str, list[dict[str, Any]]] = {
    name: named(name) or []
    for name in (
        *("dynamic_wi8_afp32", "dynamic_wi4_afp32", "dynamic_wi4b32_afp32", "dynamic_wi2_afp32"),
        *("weight_only_wi8_afp32", "weight_only_wi4_afp32", "static_wi8_ai8", "static_wi8_ai16", "static_wi4_ai8"),
        *("static_wi4_ai16", "dynamic_wi4_hr_afp32"),
    )
} | {
    "4 bits by MSE": [entry(4, algorithm="MSE")],
    "4 bits by OCTAV": [entry(4, algorithm="OCTAV")],
    "4 bits by GPTQ": [entry(4, algorithm="GPTQ")],
    "4 bits by OSCAR": [entry(4, algorithm="OSCAR")],
}


@dataclass(frozen=True)
class Made:
    """A file: its bytes, the share of 100 that it gets right, and the ratio of its signal to its error in decibels."""

    size: int
    accuracy: float
    sqnr_db: float

    def __str__(self) -> str:
        return f"{self.accuracy:.1f} %, {self.sqnr_db:.1f} dB, {self.size / 1000:.1f} kB"


@dataclass(frozen=True)
class Row:
    """A recipe, by both; and the search within the peer's size. unequal: runtimes that differ from LiteRT."""

    model: str
    recipe: str
    real: Made
    ours: Made | None
    peer: Made | None
    searched: Made | None
    unequal: int
    note: str = ""

    @property
    def good(self) -> bool:
        """True if nothing is worse than it may be."""
        return not self.unequal and self._as_good_as_peer and self._in_budget

    @property
    def _as_good_as_peer(self) -> bool:
        if self.ours is None or self.peer is None:
            return self.ours is not None
        near = self.ours.accuracy >= self.peer.accuracy - _POINTS
        return near and (self.ours.size <= self.peer.size * 1.01 or self.ours.sqnr_db > self.peer.sqnr_db)

    @property
    def _in_budget(self) -> bool:
        if self.searched is None or self.peer is None or self.peer.size >= self.real.size:
            return True
        return 0.99 * self.peer.size <= self.searched.size <= self.peer.size


def _below(made: Made | None, peer: Made) -> bool:
    """Return whether the peer's file is smaller by more than a percent, or any of its figures higher."""
    if made is None or made.size > 1.01 * peer.size:
        return True
    return made.accuracy < peer.accuracy or made.sqnr_db < peer.sqnr_db - _ALIKE_DB


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", choices=[*TASKS, []], metavar="MODEL", help=", ".join(TASKS))
    parser.add_argument("--recipes", nargs="+", choices=RECIPES, default=[*RECIPES], metavar="NAME")
    parser.add_argument("--tested", type=int, default=400, help="samples that accuracy is measured on (400)")
    parser.add_argument("--no-search", action="store_true", help="leave out the searches by size")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.folder is not None:
        _convert_as_peer(args.folder, args.recipes[0])
        return 0
    console, rows = Console(width=200), []
    for name in args.models or TASKS:
        for row in measure(name, args.recipes, args.tested, search=not args.no_search):
            rows.append(row)
            console.print(row, highlight=False)
    table = Table(
        "model", "recipe", "float", "litecl", "ai-edge-quantizer", "searched for that size", "unequal", "note"
    )
    for row in rows:
        cells = (
            row.model,
            row.recipe,
            row.real,
            row.ours or "",
            row.peer or "",
            row.searched or "",
            row.unequal,
            row.note,
        )
        table.add_row(*map(str, cells), style=None if row.good else "red")
    console.print(table)
    return int(not all(row.good for row in rows))


def measure(name: str, recipes: Sequence[str], tested: int, *, search: bool) -> Any:
    """Yield the rows of a model."""
    trained = train(TASKS[name], tested)
    content = Converter.from_keras_model(of_one(trained.model)).convert()
    data = [[x[None]] for x in trained.calibration]
    wanted = _outputs(content, trained.images)

    def made(file: bytes) -> Made:
        got = _outputs(file, trained.images)
        accuracy = round(100 * float(np.mean(got.argmax(-1) == trained.classes)), 2)
        noise = np.square(wanted - got).sum()
        ratio = 10 * np.log10(np.square(wanted).sum() / noise) if noise else np.inf
        return Made(len(file), accuracy, float(ratio))

    real = made(content)
    for recipe in recipes:
        ours, unequal, notes = None, 0, []
        try:
            file = Converter.from_tflite(content, Quantization(recipe=RECIPES[recipe], data=data)).convert()
            ours, unequal = made(file), _unequal(file, trained.images)
        except ConversionError as error:
            notes.append(str(error))
        try:
            peer = made(_by_peer(content, trained.calibration, recipe))
        except Exception as error:  # of many kinds
            peer = None
            notes.append(f"peer: {' '.join(str(error).split())[-60:]}")
        searched = None
        if search and peer is not None and (recipe in _SEARCHED or _below(ours, peer)):
            try:
                how = Quantization(budget=peer.size, data=data)
                searched = made(Converter.from_tflite(content, how).convert())
            except ConversionError as error:
                notes.append(str(error)[:60])
        yield Row(name, recipe, real, ours, peer, searched, unequal, "; ".join(notes))


def _by_peer(content: bytes, samples: Array, recipe: str) -> bytes:
    """Return the peer's file, made in a process of its own: some models end it."""
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        (folder / "model.tflite").write_bytes(content)
        np.save(folder / "samples.npy", samples)
        return made_apart("tools.recipe_accuracy", folder, "--recipes", recipe)


def _convert_as_peer(folder: Path, recipe: str) -> None:
    from ai_edge_quantizer import quantizer

    content = str(folder / "model.tflite")
    (name,) = Interpreter(content).get_signature_runner().get_input_details()
    samples = [{name: x[None]} for x in np.load(folder / "samples.npy")]
    work = quantizer.Quantizer(content)
    work.load_quantization_recipe(RECIPES[recipe])
    ranges = work.calibrate({"serving_default": samples}) if work.need_calibration else None
    (folder / "made.tflite").write_bytes(bytes(work.quantize(ranges).quantized_model))


def _outputs(content: bytes, images: Array) -> Array:
    """Return the results of images in LiteRT as floats; some files want these, and give them, as integers."""
    runtime = litert(content, "default")
    runtime.allocate_tensors()
    (given,), (made,) = runtime.get_input_details(), runtime.get_output_details()
    results = [invoke(runtime, [stored(image[None], given)])[0] for image in images]
    scale, zero = made["quantization"]
    joined = np.concatenate(results)
    return (joined.astype(np.float64) - zero) * scale if scale else joined.astype(np.float64)


def _unequal(content: bytes, images: Array) -> int:
    """Return how often interpreter and device differ from both LiteRT's reference kernels, which know no blocks, and
    its optimised ones, because of an operator: a value near a tie may be rounded either way.
    """
    given = Interpreter(model_content=content).get_input_details()[0]
    runtimes = {
        "interpreter": Interpreter(model_content=content),
        "device": Interpreter(model_content=content, delegates=[CLDelegate(dynamic_range="reference")]),
    }
    references = [litert(content, "reference"), litert(content)]
    count = 0
    for name, runtime in runtimes.items():
        for image in images[:_COMPARED]:
            feed = stored(image[None], given)
            (got,) = invoke(runtime, [feed])
            wanted = [invoke(reference, [feed])[0] for reference in references]
            if min(_distance(got, of) for of in wanted) > 1e-3:
                found = (bisect(content, name, peer, {given["name"]: feed}) for peer in ("litert-reference", "litert"))
                count += all(bisection.verdict == "fault" for bisection in found)
    return count


def _distance(got: Array, wanted: Array) -> float:
    difference = np.abs(got.astype(np.float64) - wanted).max()
    return float(difference / max(np.abs(wanted.astype(np.float64)).max(), 1e-30))


if __name__ == "__main__":
    tf.get_logger().setLevel("ERROR")
    sys.exit(main())
