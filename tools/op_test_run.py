"""One of TensorFlow Lite's operator tests in three ways: TensorFlow, its converter with LiteRT, and litecl."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from litecl import comparison
from litecl.converter import Converter, Quantization
from litecl.interpreter import Interpreter
from litecl.interpreter.file.reader import read
from litecl.interpreter.graph import Array
from litecl.perf.feeds import difference
from support.conversion import litert
from tools.op_test_folder import OpTest

_V1 = tf.compat.v1
_SAMPLES = 20
_RELATIVE = 1e-4
_STEP = {"int8": 0.04, "int16": 0.002}
"""The largest error, as a share of the outputs' range, of an integer model; up to one and a half times the peer's."""


@dataclass(frozen=True)
class Result:
    """What became of a test.

    tensorflow, peer, ours, litert: "ok", or what was wrong; "" where it did not come to that. peer: TFLiteConverter's
        file in LiteRT; ours: our file in litecl; litert: our file in LiteRT. In LiteRT the reference or the optimised
        kernels must be right.
    peer_ops, ours_ops: operators of the files' main subgraphs.
    """

    label: str
    tensorflow: str = ""
    peer: str = ""
    ours: str = ""
    litert: str = ""
    peer_ops: tuple[str, ...] = ()
    ours_ops: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Saved:
    """A test's graph as a SavedModel, and what TensorFlow computes."""

    folder: str
    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]
    specs: Mapping[str, tuple[list[int] | None, Any]]


def run(test: OpTest) -> Result:
    """Run one test."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            saved = _saved(test, Path(folder) / "model")
        except Exception as error:
            return Result(test.label, tensorflow=_said(error))
        peer, peer_ops, worst = _judged(lambda: _peer(test, saved), _LITERT, saved, _step(test))
        held: list[bytes] = []

        def convert() -> bytes:
            held.append(_ours(test, saved))
            return held[0]

        allowed = max(_step(test), 1.5 * worst) if _step(test) else 0.0
        ours, ours_ops, _ = _judged(convert, (_litecl,), saved, allowed)
        builtin = held and not _custom(held[0])
        again = _judged(lambda: held[0], _LITERT, saved, allowed)[0] if builtin else ""
    return Result(test.label, "ok", peer, ours, again, peer_ops, ours_ops)


def _saved(test: OpTest, folder: Path) -> _Saved:
    np.random.seed(342)
    tf.random.set_seed(342)
    with tf.Graph().as_default(), tf.device("/cpu:0"), _V1.Session() as session:
        inputs, outputs = test.build(test.parameters)
        session.run(_V1.tables_initializer())
        values, expected = test.feed(test.parameters, session, inputs, outputs)
        session.run([v.initializer for v in _V1.global_variables() if not session.run(_V1.is_variable_initialized(v))])
        names = {tensor.op.name: tensor for tensor in inputs}
        results = {f"output_{i}": tensor for i, tensor in enumerate(outputs)}
        builder = _V1.saved_model.Builder(str(folder))
        signature = _V1.saved_model.predict_signature_def(names, results)
        builder.add_meta_graph_and_variables(
            session, ["serve"], {"serving_default": signature}, main_op=_V1.tables_initializer()
        )
        builder.save()
        shapes = {name: (t.shape.as_list() if t.shape.rank is not None else None, t.dtype) for name, t in names.items()}
        fed = {n: _array(v, t.dtype) for (n, t), v in zip(names.items(), values, strict=True)}
    return _Saved(str(folder), fed, {k: np.asarray(v) for k, v in zip(results, expected, strict=True)}, shapes)


def _array(value: Any, dtype: Any) -> Array:
    """Return a value to feed. LiteRT's Python reads a single string of NumPy's type ``object`` as its address."""
    array = np.asarray(value, dtype.as_numpy_dtype)
    return array if array.ndim or dtype != tf.string else np.asarray(array.item())


def _judged(
    convert: Callable[[], bytes], runtimes: Sequence[Callable[[bytes], Any]], saved: _Saved, step: float
) -> tuple[str, tuple[str, ...], float]:
    """Return a word on a conversion and its results, the file's operators, and the worst error of a quantized one.

    It is good if one of the runtimes is right.
    """
    try:
        content = convert()
    except Exception as error:
        return f"conversion: {_said(error)}", (), 0.0
    names = tuple(node.op.name for node in read(content).subgraphs[0].nodes)
    words = [_compared(content, runtimes[0], saved, step)]
    for runtime in runtimes[1:]:
        if words[-1][0] != "ok":
            words.append(_compared(content, runtime, saved, step))
    word, worst = words[-1] if words[-1][0] == "ok" else words[0]
    return word, names, worst


def _compared(content: bytes, runtime: Callable[[bytes], Any], saved: _Saved, step: float) -> tuple[str, float]:
    try:
        got = _results(runtime(content), saved.inputs)
    except Exception as error:
        return f"running: {_said(error)}", 0.0
    worst = 0.0
    for name, wanted in saved.outputs.items():
        value = np.asarray(got[name])
        if (value.shape, value.dtype.kind) != (wanted.shape, "S" if value.dtype.kind == "S" else wanted.dtype.kind):
            return f"shape or type: {value.dtype}{value.shape}, not {wanted.dtype}{wanted.shape}", worst
        error_ = _error(value, wanted)
        worst = max(worst, error_)
        if error_ > (step or _RELATIVE):
            return f"values: error {error_:.3g}", worst
    return "ok", worst


def _results(interpreter: Any, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
    """Return the results by name. LiteRT's Python does not hand out empty tensors, only their shapes."""
    runner = interpreter.get_signature_runner("serving_default")
    try:
        results: Mapping[str, Array] = runner(**inputs)
    except ValueError as error:
        if "Invalid tensor size" not in str(error):
            raise
        details = runner.get_output_details()
        return {
            name: np.empty(d["shape"], d["dtype"]) if 0 in d["shape"] else interpreter.get_tensor(d["index"])
            for name, d in details.items()
        }
    return results


def _error(value: Array, wanted: Array) -> float:
    """Return the largest difference, in the largest magnitude; infinite where anything but a finite float differs."""
    if wanted.dtype.kind in "fc":
        return difference([value], [wanted])
    return np.inf if comparison.difference(value.astype(wanted.dtype), wanted).exceeds(0) else 0.0


def _step(test: OpTest) -> float:
    if test.parameters.get("fully_quantize"):
        return _STEP["int16" if test.parameters.get("quant_16x8") else "int8"]
    return _STEP["int8"] if test.parameters.get("dynamic_range_quantize") else 0.0


def _samples(test: OpTest, saved: _Saved) -> Iterator[dict[str, Array]]:
    low, high = test.parameters.get("input_range", (-1, 1))
    random = np.random.default_rng(5)
    for _ in range(_SAMPLES):
        yield {
            name: random.uniform(low, high, [1 if d is None else d for d in shape or ()]).astype(dtype.as_numpy_dtype)
            for name, (shape, dtype) in saved.specs.items()
        }


def _peer(test: OpTest, saved: _Saved) -> bytes:
    converter = tf.lite.TFLiteConverter.from_saved_model(saved.folder, ["serving_default"])
    converter.allow_custom_ops = bool(test.extra.allow_custom_ops)
    if test.parameters.get("dynamic_range_quantize"):
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if test.parameters.get("fully_quantize"):
        sets = tf.lite.OpsSet
        sixteen = sets.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.target_spec.supported_ops = [
            sixteen if test.parameters.get("quant_16x8") else sets.TFLITE_BUILTINS_INT8
        ]
        converter.representative_dataset = lambda: _samples(test, saved)
    content: bytes = converter.convert()
    return content


def _ours(test: OpTest, saved: _Saved) -> bytes:
    how: Quantization | None = None
    if test.parameters.get("dynamic_range_quantize"):
        how = Quantization(weights="int8")
    if test.parameters.get("fully_quantize"):
        kind = "int16" if test.parameters.get("quant_16x8") else "int8"
        how = Quantization(activations=kind, data=lambda: _samples(test, saved), strict=True)  # type: ignore[arg-type]
    return Converter.from_saved_model(saved.folder, ["serving_default"], quantize=how).convert()


def _reference(content: bytes) -> Any:
    return litert(content, "reference")


def _optimised(content: bytes) -> Any:
    return litert(content, "optimised")


def _litecl(content: bytes) -> Any:
    return Interpreter(model_content=content)


_LITERT = (_reference, _optimised)
"""A few operators have no reference kernel, or a wrong one (LOCAL_RESPONSE_NORMALIZATION)."""


def _custom(content: bytes) -> bool:
    """Return whether some operators are litecl's own."""
    return any(node.op.custom for graph in read(content).subgraphs for node in graph.nodes)


def _said(error: BaseException) -> str:
    notes = " ".join(getattr(error, "__notes__", ()))
    return " ".join(f"{type(error).__name__}: {error} {notes}".split())[:400]
