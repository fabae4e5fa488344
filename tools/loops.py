"""Measures loops that TensorFlow's converter makes, on the device and in LiteRT.

``python -m tools.loops docs/control_flow.md`` writes the table into that document.

Every loop is built from a TensorFlow function or a Keras layer, converted by ``tf.lite.TFLiteConverter``, run by both
with one thread each, in turns, and their outputs compared. ONNX Runtime runs the functions too, as far as tf2onnx (of
PyPI) converts them. This module alone needs TensorFlow, and is not imported by others.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
import onnxruntime
import tensorflow as tf
import tf2onnx
from ai_edge_litert.interpreter import Interpreter as LiteRT
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from litecl.converter import Converter
from litecl.delegate import CLDelegate
from litecl.delegate.report import DelegationReport
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array
from litecl.perf.feeds import outputs_of
from litecl.perf.timing import in_turns
from support.tf_scans import selective_scan
from tools.peers import turn

_ROUNDS = 15
_OPSET = 18  # the newest of tf2onnx 1.17
_FLOAT = tf.float32


@dataclass(frozen=True)
class Subject:
    """A loop to measure: what builds its file, and how many iterations its innermost body runs. function: what
    tf2onnx converts, if anything, and the shapes of its inputs.
    """

    name: str
    build: Callable[[], bytes]
    iterations: int
    function: tuple[Callable[..., Any], Sequence[Sequence[int]]] | None = None


@dataclass(frozen=True)
class Row:
    """Figures of one subject; times of whole invokes in microseconds, None for a runtime that has no such file."""

    name: str
    iterations: int
    ours_us: float
    litert_us: float
    onnx_us: float | None
    difference: float
    report: DelegationReport


def _traced(function: Callable[..., Any], shapes: Sequence[Sequence[int]]) -> Any:
    signature = [tf.TensorSpec(shape, _FLOAT) for shape in shapes]
    return tf.function(function, input_signature=signature, autograph=False)


def _function(name: str, function: Callable[..., Any], iterations: int, *shapes: Sequence[int]) -> Subject:
    def build() -> bytes:
        converter = tf.lite.TFLiteConverter.from_concrete_functions(
            [_traced(function, shapes).get_concrete_function()], tf.Module()
        )
        content: bytes = converter.convert()
        return content

    return Subject(name, build, iterations, (function, shapes))


def _of_our_converter(name: str, function: Callable[..., Any], iterations: int, *shapes: Sequence[int]) -> Subject:
    def build() -> bytes:
        return Converter.from_concrete_functions([_traced(function, shapes).get_concrete_function()]).convert()

    return Subject(name, build, iterations, (function, shapes))


def _layer(layer: Any, *shape: int) -> bytes:
    given = keras.Input(shape, batch_size=1)
    content: bytes = tf.lite.TFLiteConverter.from_keras_model(keras.Model(given, layer(given))).convert()
    return content


def _counted(name: str, trips: int) -> Subject:
    def loop(x: Any) -> Any:
        return tf.while_loop(
            lambda i, x: i < trips, lambda i, x: (i + 1, tf.tanh(x * 1.01 + 0.1)), [tf.constant(0), x]
        )[1]

    return _function(name, loop, trips, [64])


def _until(x: Any) -> Any:
    """Return the body of FC, tanh, abs, mean, add and less, until a sum of means is reached."""
    weights = tf.constant(np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32) * 0.1)

    def body(total: Any, x: Any) -> Any:
        x = tf.tanh(tf.matmul(x, weights) + 0.1)
        return total + tf.reduce_mean(tf.abs(x)), x

    return tf.while_loop(lambda total, x: total < 60.0, body, [tf.constant(0.0), x])


def _nested(x: Any) -> Any:
    def inner(x: Any) -> Any:
        return tf.while_loop(lambda j, x: j < 20, lambda j, x: (j + 1, x * 0.99 + 0.01), [tf.constant(0), x])[1]

    return tf.while_loop(lambda i, x: i < 30, lambda i, x: (i + 1, tf.tanh(inner(x))), [tf.constant(0), x])[1]


def _if_in_while(x: Any) -> Any:
    def body(i: Any, x: Any) -> Any:
        return i + 1, tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * 0.5 - 0.6, lambda: x + 0.7)

    return tf.while_loop(lambda i, x: i < 500, body, [tf.constant(0), x])[1]


def _while_in_if(x: Any) -> Any:
    def loop() -> Any:
        return tf.while_loop(lambda i, y: i < 300, lambda i, y: (i + 1, tf.tanh(y + 0.1)), [tf.constant(0), x])[1]

    return tf.cond(tf.reduce_sum(x) > -1e9, loop, lambda: x)


def _newton(x: Any) -> Any:
    def body(i: Any, y: Any) -> Any:
        return i + 1, 0.5 * (y + (tf.abs(x) + 1.0) / y)

    return tf.while_loop(lambda i, y: i < 400, body, [tf.constant(0), tf.abs(x) + 1.0])[1]


def _collatz(x: Any) -> Any:
    def body(n: Any, steps: Any) -> Any:
        half = n // 2
        return tf.cond(tf.equal(n - 2 * half, 0), lambda: half, lambda: 3 * n + 1), steps + 1

    start = tf.constant(410011) + tf.cast(tf.reduce_max(x) * 0.0, tf.int32)
    return tf.while_loop(lambda n, steps: n > 1, body, [start, tf.constant(0)])[1]


def _matrix_power(x: Any) -> Any:
    return tf.while_loop(
        lambda i, y: i < 300, lambda i, y: (i + 1, tf.tanh(tf.matmul(y, x) * 0.15 + 0.1)), [tf.constant(0), x]
    )[1]


def _mandelbrot(x: Any) -> Any:
    def body(i: Any, a: Any, b: Any, count: Any) -> Any:
        inside = tf.cast(a * a + b * b < 4.0, _FLOAT)
        a, b = a * a - b * b + x[0], 2.0 * a * b + x[1]
        return i + 1, tf.clip_by_value(a, -9.0, 9.0), tf.clip_by_value(b, -9.0, 9.0), count + inside

    zero = tf.zeros_like(x[0])
    return tf.while_loop(lambda i, a, b, c: i < 100, body, [tf.constant(0), zero, zero, zero])[3]


def _escapes(x: Any) -> Any:
    """The same with masks: a point that has left stays where it is."""

    def body(i: Any, a: Any, b: Any, count: Any) -> Any:
        inside = a * a + b * b < 4.0
        following, other = a * a - b * b + x[0], 2.0 * a * b + x[1]
        return i + 1, tf.where(inside, following, a), tf.where(inside, other, b), count + tf.cast(inside, tf.int32)

    zero = tf.zeros_like(x[0])
    start = [tf.constant(0), zero, zero, tf.zeros_like(x[0], tf.int32)]
    return tf.while_loop(lambda i, a, b, c: i < 100, body, start)[3]


def _beam(x: Any) -> Any:
    """Greedy decoding of 8 beams: scores of 128 words, the best 8, written to a list of all steps."""
    weights = tf.constant(np.random.default_rng(0).standard_normal((8, 128)).astype(np.float32))

    def body(i: Any, state: Any, chosen: Any) -> Any:
        values, words = tf.math.top_k(tf.matmul(state, weights)[0], 8)
        row = tf.reshape(tf.cast(words, _FLOAT), [1, 8])
        chosen = gen_xla_ops.xla_dynamic_update_slice(chosen, row, tf.stack([i, 0]))
        return i + 1, tf.tanh(tf.reshape(values, [1, 8])), chosen

    chosen = tf.zeros([300, 8])
    return tf.while_loop(lambda i, s, c: i < 300, body, [tf.constant(0), x, chosen])[2]


_LAYERS = keras.layers
SUBJECTS = (
    _counted("counted, 10", 10),
    _counted("counted, 1,000", 1_000),
    _counted("counted, 10,000", 10_000),
    _function("until a sum is reached", _until, 300, [1, 64]),
    _function("nested", _nested, 600, [64]),
    _function("IF in WHILE", _if_in_while, 500, [16]),
    _function("WHILE in IF", _while_in_if, 300, [64]),
    _function("Newton", _newton, 400, [32]),
    _function("Collatz", _collatz, 448, [1]),
    _function("matrix power, 16x16", _matrix_power, 300, [16, 16]),
    _function("matrix power, 32x32", _matrix_power, 300, [32, 32]),
    _function("Mandelbrot, 64x64", _mandelbrot, 100, [2, 64, 64]),
    _function("Mandelbrot with masks, 64x64", _escapes, 100, [2, 64, 64]),
    _of_our_converter("Mamba scan", selective_scan, 100, [100, 128], [100, 128], [100, 16], [100, 16]),
    _function("beam search", _beam, 300, [1, 8]),
    Subject("Keras LSTM, sequences", lambda: _layer(_LAYERS.LSTM(64, return_sequences=True), 100, 32), 100),
    Subject("Keras LSTM, last", lambda: _layer(_LAYERS.LSTM(64), 100, 32), 100),
    Subject("Keras GRU", lambda: _layer(_LAYERS.GRU(64, return_sequences=True), 100, 32), 100),
    Subject("Keras SimpleRNN", lambda: _layer(_LAYERS.SimpleRNN(64, return_sequences=True), 100, 32), 100),
    Subject(
        "Keras Bidirectional",
        lambda: _layer(_LAYERS.Bidirectional(_LAYERS.LSTM(32, return_sequences=True)), 100, 32),
        200,
    ),
    Subject(
        "Keras ConvLSTM2D",
        lambda: _layer(_LAYERS.ConvLSTM2D(4, 3, padding="same", return_sequences=True), 10, 8, 8, 3),
        10,
    ),
    Subject(
        "Keras ConvLSTM2D, 100 steps",
        lambda: _layer(_LAYERS.ConvLSTM2D(8, 3, padding="same"), 100, 16, 16, 4),
        100,
    ),
)


def measure(subject: Subject) -> Row:
    """Build, compare and time one loop."""
    content, rng = subject.build(), np.random.default_rng(1)
    ours = Interpreter(content, delegates=[CLDelegate(num_threads=1)])
    litert = LiteRT(model_content=content, num_threads=1)
    for runtime in (ours, litert):
        runtime.allocate_tensors()
    feeds: dict[str, Array] = {}
    for detail in litert.get_input_details():
        value = rng.standard_normal(detail["shape"]).astype(np.float32) * 0.5
        feeds[detail["name"].removeprefix("serving_default_").removesuffix(":0")] = value
        for runtime in (ours, litert):
            runtime.set_tensor(detail["index"], value)
    for runtime in (ours, litert):
        runtime.invoke()
    difference = max(map(_difference, outputs_of(ours), outputs_of(litert)))
    onnx = None if subject.function is None else _in_onnx(*subject.function, feeds)
    if onnx is not None:
        onnx.invoke()
        for result in onnx.results:  # in another order, perhaps
            alike = [output for output in outputs_of(ours) if output.shape == result.shape]
            assert min(_difference(result, output) for output in alike) < 1e-3, subject.name
    turns = [turn(runtime) for runtime in (ours, litert, onnx) if runtime is not None]
    timed = in_turns([run for run, _ in turns], _ROUNDS)
    ours_us, litert_us, *onnx_us = (1e3 * stats.min_ms / count for stats, (_, count) in zip(timed, turns, strict=True))
    report = DelegationReport.of(ours)
    return Row(subject.name, subject.iterations, ours_us, litert_us, next(iter(onnx_us), None), difference, report)


class _Onnx:
    """A session of ONNX Runtime with one thread, and its inputs."""

    def __init__(self, content: bytes, feeds: Mapping[str, Array]) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3  # errors
        self._session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        self._feeds = {each.name: feeds[each.name.removesuffix(":0")] for each in self._session.get_inputs()}
        self.results: list[Array] = []

    def invoke(self) -> None:
        self.results = self._session.run(None, self._feeds)


def _in_onnx(function: Callable[..., Any], shapes: Sequence[Sequence[int]], feeds: Mapping[str, Array]) -> _Onnx | None:
    """Return the function in ONNX Runtime; None if tf2onnx leaves operators that ONNX lacks."""
    traced = _traced(function, shapes)
    model, _ = tf2onnx.convert.from_function(traced, input_signature=traced.input_signature, opset=_OPSET)
    try:
        return _Onnx(model.SerializeToString(), feeds)
    except onnxruntime.capi.onnxruntime_pybind11_state.InvalidGraph:
        return None


def _difference(got: Array, expected: Array) -> float:
    """Return the largest difference, relative to the largest expected value."""
    wide = expected.astype(np.float64)
    return float(np.max(np.abs(got - wide)) / max(1e-30, np.max(np.abs(wide))))


def table(rows: Sequence[Row]) -> str:
    """Return the rows in Markdown."""
    times = "litecl us/iteration | LiteRT us/iteration | ratio | ORT us/iteration"
    head = f"| loop | iterations | {times} | difference | host syncs | where |"
    return "\n".join([head, "|---" * 9 + "|", *map(_line, rows)]) + "\n"


def _line(row: Row) -> str:
    ours, theirs = row.ours_us / row.iterations, row.litert_us / row.iterations
    loops = [loop.partition(": ")[2] for part in row.report.partitions for loop in part.loops]
    reasons = [node.reason for node in row.report.nodes if not node.claimed]
    where = "CPU: " + reasons[0] if reasons else ", ".join(dict.fromkeys(loops)) or "device"
    onnx = "-" if row.onnx_us is None else f"{row.onnx_us / row.iterations:.3g}"
    return (
        f"| {row.name} | {row.iterations:,} | {ours:.3g} | {theirs:.3g} | {theirs / ours:.2f} | {onnx} "
        f"| {row.difference:.1e} | {row.report.counters.host_syncs} | {where} |"
    )


def main(document: Path) -> None:
    """Write the table into a document, replacing the one there."""
    before, _, after = document.read_text().partition("| loop |")
    rest = after[after.index("\n\n") :] if "\n\n" in after else "\n"
    document.write_text(before + table([measure(subject) for subject in SUBJECTS]).rstrip("\n") + rest)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
