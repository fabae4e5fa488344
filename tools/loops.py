"""Measures loops that TensorFlow's converter makes, on the device and in LiteRT.

``python -m tools.loops docs/control_flow.md`` writes the table into that document.

Every loop is built from a TensorFlow function or a Keras layer, converted by ``tf.lite.TFLiteConverter``, run by both
with one thread each, in turns, and their outputs compared. This module alone needs TensorFlow, and is not imported by
others.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter as LiteRT
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from litecl.delegate import CLDelegate
from litecl.delegate.report import DelegationReport
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array
from litecl.perf.feeds import outputs_of
from litecl.perf.timing import in_turns
from tools.peers import turn

_ROUNDS = 15
_FLOAT = tf.float32


@dataclass(frozen=True)
class Subject:
    """A loop to measure: what builds its file, and how many iterations its innermost body runs."""

    name: str
    build: Callable[[], bytes]
    iterations: int


@dataclass(frozen=True)
class Row:
    """Figures of one subject; times of whole invokes in microseconds."""

    name: str
    iterations: int
    ours_us: float
    litert_us: float
    difference: float
    report: DelegationReport


def _function(function: Callable[..., Any], *shapes: Sequence[int]) -> bytes:
    signature = [tf.TensorSpec(shape, _FLOAT) for shape in shapes]
    module = tf.Module()
    concrete = tf.function(function, input_signature=signature, autograph=False).get_concrete_function()
    content: bytes = tf.lite.TFLiteConverter.from_concrete_functions([concrete], module).convert()
    return content


def _layer(layer: Any, *shape: int) -> bytes:
    given = keras.Input(shape, batch_size=1)
    content: bytes = tf.lite.TFLiteConverter.from_keras_model(keras.Model(given, layer(given))).convert()
    return content


def _counted(trips: int) -> Callable[[], bytes]:
    def loop(x: Any) -> Any:
        return tf.while_loop(
            lambda i, x: i < trips, lambda i, x: (i + 1, tf.tanh(x * 1.01 + 0.1)), [tf.constant(0), x]
        )[1]

    return lambda: _function(loop, [64])


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


def _selective_scan(x: Any, rate: Any, b: Any, c: Any) -> Any:
    """The scan of a Mamba block: a state of 128 channels x 16 decays at each step, and is read."""
    decay = tf.constant(-np.exp(np.random.default_rng(0).standard_normal((128, 16))).astype(np.float32))

    def body(i: Any, state: Any, rows: Any) -> Any:
        step = tf.nn.softplus(rate[i])[:, None]
        state = tf.exp(step * decay) * state + step * b[i][None, :] * x[i][:, None]
        row = tf.reduce_sum(state * c[i][None, :], -1)[None]
        return i + 1, state, gen_xla_ops.xla_dynamic_update_slice(rows, row, tf.stack([i, 0]))

    return tf.while_loop(lambda i, s, r: i < 100, body, [tf.constant(0), tf.zeros([128, 16]), tf.zeros([100, 128])])[2]


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
    Subject("counted, 10", _counted(10), 10),
    Subject("counted, 1,000", _counted(1_000), 1_000),
    Subject("counted, 10,000", _counted(10_000), 10_000),
    Subject("until a sum is reached", lambda: _function(_until, [1, 64]), 300),
    Subject("nested", lambda: _function(_nested, [64]), 600),
    Subject("IF in WHILE", lambda: _function(_if_in_while, [16]), 500),
    Subject("WHILE in IF", lambda: _function(_while_in_if, [64]), 300),
    Subject("Newton", lambda: _function(_newton, [32]), 400),
    Subject("Collatz", lambda: _function(_collatz, [1]), 448),
    Subject("matrix power, 16x16", lambda: _function(_matrix_power, [16, 16]), 300),
    Subject("matrix power, 32x32", lambda: _function(_matrix_power, [32, 32]), 300),
    Subject("Mandelbrot, 64x64", lambda: _function(_mandelbrot, [2, 64, 64]), 100),
    Subject("Mandelbrot with masks, 64x64", lambda: _function(_escapes, [2, 64, 64]), 100),
    Subject("Mamba scan", lambda: _function(_selective_scan, [100, 128], [100, 128], [100, 16], [100, 16]), 100),
    Subject("beam search", lambda: _function(_beam, [1, 8]), 300),
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
    for detail in litert.get_input_details():
        value = rng.standard_normal(detail["shape"]).astype(np.float32) * 0.5
        for runtime in (ours, litert):
            runtime.set_tensor(detail["index"], value)
    for runtime in (ours, litert):
        runtime.invoke()
    difference = max(map(_difference, outputs_of(ours), outputs_of(litert)))
    turns = [turn(runtime) for runtime in (ours, litert)]
    timed = in_turns([run for run, _ in turns], _ROUNDS)
    ours_us, litert_us = (1e3 * stats.min_ms / count for stats, (_, count) in zip(timed, turns, strict=True))
    return Row(subject.name, subject.iterations, ours_us, litert_us, difference, DelegationReport.of(ours))


def _difference(got: Array, expected: Array) -> float:
    """Return the largest difference, relative to the largest expected value."""
    wide = expected.astype(np.float64)
    return float(np.max(np.abs(got - wide)) / max(1e-30, np.max(np.abs(wide))))


def table(rows: Sequence[Row]) -> str:
    """Return the rows in Markdown."""
    head = "| loop | iterations | litecl us/iteration | LiteRT us/iteration | ratio | difference | host syncs | where |"
    return "\n".join([head, "|---" * 8 + "|", *map(_line, rows)]) + "\n"


def _line(row: Row) -> str:
    ours, theirs = row.ours_us / row.iterations, row.litert_us / row.iterations
    loops = [loop.partition(": ")[2] for part in row.report.partitions for loop in part.loops]
    reasons = [node.reason for node in row.report.nodes if not node.claimed]
    where = "CPU: " + reasons[0] if reasons else ", ".join(dict.fromkeys(loops)) or "device"
    return (
        f"| {row.name} | {row.iterations:,} | {ours:.3g} | {theirs:.3g} | {theirs / ours:.2f} | {row.difference:.1e} "
        f"| {row.report.counters.host_syncs} | {where} |"
    )


def main(document: Path) -> None:
    """Write the table into a document, replacing the one there."""
    before, _, after = document.read_text().partition("| loop |")
    rest = after[after.index("\n\n") :] if "\n\n" in after else "\n"
    document.write_text(before + table([measure(subject) for subject in SUBJECTS]).rstrip("\n") + rest)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
