"""A table of quantized models: accuracy beside the model in float, TFLiteConverter's and ai-edge-quantizer's.

    PYTHONPATH=tests python -m tools.quantized_accuracy [MODEL ...] [--kinds int8 int16] [--tested 400] [--layers]

Networks are trained for about a minute on something made up (classes of stripes, of signals, of sentences), quantized
by both converters, and by ai-edge-quantizer's recipes from litecl's float file, with the same samples, and tested on
samples that they have not seen. The exit code is 1 if a model
of ours is more than half a point below the one in float or below the peer's, if a node is left to the CPU, or if
LiteRT's reference kernels compute other integers than litecl's interpreter and device from our file.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import keras
import numpy as np
import tensorflow as tf
from rich.console import Console
from rich.table import Table

from litecl.converter import Converter, Quantization
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.file.reader import read
from litecl.interpreter.graph import Array
from support.conversion import invoke, litert
from support.trained_models import TASKS, Trained, train

_Kind = Literal["int8", "int16"]
_COMPARED = 3
_POINTS = 0.5


@dataclass(frozen=True)
class Row:
    """What became of one model. Accuracies are shares of 100, ratios in decibels.

    ours, peer, recipe: all files in LiteRT's optimised kernels. device: ours, on the device. agree: the share of
    samples for which ours and the model in float say the same class. sqnr_db: the median of samples. unequal: outputs
    that differ between LiteRT's reference kernels, the interpreter and the device. claimed, nodes: of our file. floats:
    our nodes that compute with floats.
    """

    name: str
    kind: _Kind
    real: float
    ours: float
    device: float
    peer: float | None
    recipe: float | None
    agree: float
    sqnr_db: float
    worst: str
    claimed: int
    nodes: int
    floats: int
    unequal: int
    note: str = ""

    @property
    def good(self) -> bool:
        """True if nothing is worse than it may be."""
        near = min(self.ours, self.device) >= self.real - _POINTS and (self.peer is None or self.ours >= self.peer)
        return near and self.claimed == self.nodes and not self.unequal


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", choices=[*TASKS, []], metavar="MODEL", help=", ".join(TASKS))
    parser.add_argument("--kinds", nargs="+", choices=["int8", "int16"], default=["int8", "int16"])
    parser.add_argument("--tested", type=int, default=400, help="samples that accuracy is measured on (400)")
    parser.add_argument("--layers", action="store_true", help="print every layer's scale and ratios too")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--by", choices=_OTHERS, help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.folder is not None:
        _OTHERS[args.by](args.folder, args.kinds[0])
        return 0
    console, rows = Console(width=200), []
    for name in args.models or TASKS:
        trained = train(TASKS[name], args.tested)
        for kind in args.kinds:
            row, report = measure(trained, kind)
            rows.append(row)
            console.print(row, highlight=False)
            if args.layers:
                print(report)
    columns = ("model", "kind", "float", "litecl", "device", "TFLiteConverter", "ai-edge-quantizer", "same class")
    table = Table(*columns, "SQNR", "worst layer", "claimed", "in float", "unequal", "note")
    for r in rows:
        cells = (r.name, r.kind, r.real, r.ours, r.device, r.peer, r.recipe, r.agree, f"{r.sqnr_db:.1f} dB", r.worst)
        table.add_row(*map(str, cells), f"{r.claimed}/{r.nodes}", str(r.floats), str(r.unequal), r.note)
    console.print(table)
    return int(not all(row.good for row in rows))


def measure(trained: Trained, kind: _Kind) -> tuple[Row, Any]:
    """Return the row of a trained model, and the converter's report on its layers."""
    samples = [[x[None]] for x in trained.calibration]
    model = of_one(trained.model)
    converter = Converter.from_keras_model(model, quantize=Quantization(activations=kind, data=samples))
    content = converter.convert()
    report = converter.report.quantization
    assert report is not None
    device = Interpreter(model_content=content, delegates=[CLDelegate(dynamic_range="reference")])
    ours, on_device = _outputs(litert(content), trained.images), _outputs(device, trained.images)
    real = np.asarray(trained.model.predict(trained.images, verbose=0))
    alone = min((x for x in report.layers if x.own_sqnr_db is not None), key=lambda x: x.own_sqnr_db or 0.0)
    delegated = device.delegation_report().nodes
    row = Row(
        name=trained.task.name,
        kind=kind,
        real=_accuracy(real, trained),
        ours=_accuracy(ours, trained),
        device=_accuracy(on_device, trained),
        peer=None,
        recipe=None,
        agree=round(100 * float(np.mean(real.argmax(-1) == ours.argmax(-1))), 2),
        sqnr_db=float(np.median(10 * np.log10(np.square(real).sum(-1) / np.square(real - on_device).sum(-1)))),
        worst=f"{alone.op} {alone.own_sqnr_db:.1f} dB",
        claimed=sum(node.claimed for node in delegated),
        nodes=len(delegated),
        floats=_floats(content),
        unequal=_unequal(content, trained.images),
    )
    for name in _OTHERS:
        try:
            outputs = _outputs(litert(_by(name, model, trained.calibration, kind)), trained.images)
            row = replace(row, **{name: _accuracy(outputs, trained)})
        except Exception as error:  # of many kinds
            row = replace(row, note=f"{row.note} {name}: {' '.join(str(error).split())[:60]}".strip())
    return row, report


def of_one(model: Any) -> Any:
    """Return a model for batches of one: the peer makes no integers of shapes that are open."""
    x = keras.Input(model.inputs[0].shape[1:], batch_size=1, dtype=model.inputs[0].dtype)
    return keras.Model(x, model(x))


def _by(name: str, model: Any, samples: Array, kind: _Kind) -> bytes:
    """Return another converter's file, made in a process of its own: some models end it."""
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        model.save(folder / "model.keras")
        (folder / "model.tflite").write_bytes(Converter.from_keras_model(model).convert())
        np.save(folder / "samples.npy", samples)
        return made_apart("tools.quantized_accuracy", folder, "--by", name, "--kinds", kind)


def made_apart(module: str, folder: Path, *arguments: str) -> bytes:
    """Return ``made.tflite``, which a tool writes to a folder in a process of its own. Raises RuntimeError."""
    command = [sys.executable, "-m", module, "--folder", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        raise RuntimeError(last if done.returncode > 0 else f"ends its process with signal {-done.returncode}")
    return (folder / "made.tflite").read_bytes()


def _convert_as_peer(folder: Path, kind: _Kind) -> None:
    samples = np.load(folder / "samples.npy")
    converter = tf.lite.TFLiteConverter.from_keras_model(keras.models.load_model(folder / "model.keras"))
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([x[None]] for x in samples)
    if kind == "int16":
        sets = tf.lite.OpsSet
        wide = sets.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
        converter.target_spec.supported_ops = [wide, sets.TFLITE_BUILTINS]
    (folder / "made.tflite").write_bytes(converter.convert())


def _convert_by_recipe(folder: Path, kind: _Kind) -> None:
    from ai_edge_quantizer import quantizer, recipe

    content = str(folder / "model.tflite")
    runner = Interpreter(content).get_signature_runner()
    (name,) = runner.get_input_details()
    samples = [{name: x[None]} for x in np.load(folder / "samples.npy")]
    work = quantizer.Quantizer(content)
    work.load_quantization_recipe(recipe.static_wi8_ai16() if kind == "int16" else recipe.static_wi8_ai8())
    made = work.quantize(work.calibrate({"serving_default": samples}))
    (folder / "made.tflite").write_bytes(bytes(made.quantized_model))


_OTHERS: Mapping[str, Callable[[Path, _Kind], None]] = {"peer": _convert_as_peer, "recipe": _convert_by_recipe}


def _outputs(runtime: Any, images: Array) -> Array:
    """Return the results of images; some files want these, and give them, as integers."""
    runtime.allocate_tensors()
    (details,) = runtime.get_input_details()
    return np.concatenate([invoke(runtime, [stored(image[None], details)])[0] for image in images])


def stored(image: Array, details: Any) -> Array:
    """Return an image as an input wants it, which may be in integers."""
    scale, zero = details["quantization"]
    if not scale:
        return image
    limits = np.iinfo(details["dtype"])
    return np.clip(np.rint(image / scale) + zero, limits.min, limits.max).astype(details["dtype"])


def _accuracy(outputs: Array, trained: Trained) -> float:
    return round(100 * float(np.mean(outputs.argmax(-1) == trained.classes)), 2)


def _floats(content: bytes) -> int:
    """Return how many nodes compute with floats, not counting where floats begin and end."""
    (graph, *_) = read(content).subgraphs
    computing = [node for node in graph.nodes if node.op.name not in ("QUANTIZE", "DEQUANTIZE")]
    return sum(any(graph.tensors[t].type.name == "FLOAT32" for t in node.outputs) for node in computing)


def _unequal(content: bytes, images: Array) -> int:
    """Return how many outputs of the first samples differ from LiteRT's reference kernels, here or on the device."""
    count, delegates = 0, [CLDelegate(dynamic_range="reference")]
    runtimes = [Interpreter(model_content=content), Interpreter(model_content=content, delegates=delegates)]
    reference = litert(content, "reference")
    for image in images[:_COMPARED]:
        (wanted,) = invoke(reference, [image[None]])
        count += sum(int(np.sum(invoke(runtime, [image[None]])[0] != wanted)) for runtime in runtimes)
    return count


if __name__ == "__main__":
    tf.get_logger().setLevel("ERROR")
    sys.exit(main())
