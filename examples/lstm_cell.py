"""A composite becomes a stateful TFLite operator: the guide's lingvo LSTM cell, with a projection.

A composite that breaks the contract (here with an open batch) is converted from its body, and the report says why. The
last part registers a custom fusion for a name that litecl does not know.

    python examples/lstm_cell.py
"""

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from litecl.converter import Builder, Composite, Converter, Fusion, Value
from litecl.interpreter import Interpreter
from litecl.interpreter.ops.unary import HARD_SWISH

INPUTS, CELLS, OUTPUTS = 8, 16, 4

_random = np.random.default_rng(0)
WEIGHTS = _random.standard_normal((INPUTS + OUTPUTS, 4 * CELLS)).astype(np.float32) / 4
BIAS = _random.standard_normal(4 * CELLS).astype(np.float32)
PROJECTION = _random.standard_normal((CELLS, OUTPUTS)).astype(np.float32) / 4


@tf.function(experimental_implements="lingvo.LSTMCellSimple")
def cell(x: tf.Tensor, weights: tf.Tensor, bias: tf.Tensor, projection: tf.Tensor) -> tf.Tensor:
    """One step from a state of zeros. Gates lie in lingvo's order: cell, input, forget, output."""
    candidate, accept, _, output = tf.split(tf.matmul(x, weights[:INPUTS]) + bias, 4, axis=1)
    state = tf.clip_by_value(tf.sigmoid(accept) * tf.tanh(candidate), -10.0, 10.0)
    return tf.matmul(tf.sigmoid(output) * tf.tanh(state), projection)


@tf.function(experimental_implements="mine.gate")
def gate(x: tf.Tensor) -> tf.Tensor:
    """An activation that is written out."""
    return x * tf.clip_by_value(x / 6.0 + 0.5, 0.0, 1.0)


def as_hard_swish(b: Builder, composite: Composite) -> Value:
    """``gate`` as one operator."""
    return b.op(HARD_SWISH, composite.inputs)


def step(x: tf.Tensor) -> tf.Tensor:
    """A cell with constant weights."""
    return cell(x, tf.constant(WEIGHTS), tf.constant(BIAS), tf.constant(PROJECTION))


def show(title: str, function: Callable[[tf.Tensor], tf.Tensor], batch: int | None, *fusions: Fusion) -> None:
    """Converts a function of [batch, INPUTS], says what became of its composites, and compares with TensorFlow."""
    spec = tf.TensorSpec((batch, INPUTS), tf.float32, name="x")
    converter = Converter.from_concrete_functions([tf.function(function).get_concrete_function(spec)])
    for fusion in fusions:
        converter.register_fusion(fusion)
    content = converter.convert()
    print(f"\n{title}\n{converter.report}")
    x = _random.standard_normal((batch or 3, INPUTS)).astype(np.float32)
    result = Interpreter(content).get_signature_runner()(x=x)["output_0"]
    np.testing.assert_allclose(result, function(tf.constant(x)).numpy(), atol=1e-5)


def main() -> None:
    """Three conversions."""
    show("A batch of one: the contract is met", step, 1)
    show("An open batch: it is not", step, None)
    show("A fusion of one's own", gate, 1, Fusion("mine.gate", as_hard_swish))


if __name__ == "__main__":
    main()
