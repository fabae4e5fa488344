"""A composite becomes one TFLite operator: the embedding example of TensorFlow's guide on operation fusion.

The body loops over the ids and multiplies a one-hot vector with the table for each, as code for another device might.
The function names its operator, so it becomes EMBEDDING_LOOKUP without the loop.

    python examples/embedding_lookup.py
"""

import numpy as np
import tensorflow as tf

from litecl.converter import Converter
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter

ROWS, WIDTH = 1000, 16


@tf.function(experimental_implements="embedding_lookup")
def embed(table: tf.Tensor, ids: tf.Tensor) -> tf.Tensor:
    """Rows of a table. A composite gets all it needs by its arguments: it may capture no variable."""
    rows = tf.TensorArray(tf.float32, tf.size(ids))
    for i in tf.range(tf.size(ids)):
        rows = rows.write(i, tf.linalg.matvec(table, tf.one_hot(ids[i], ROWS), transpose_a=True))
    return rows.stack()


class Embedding(tf.Module):
    """A table that is looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.table = tf.Variable(np.random.default_rng(0).standard_normal((ROWS, WIDTH)).astype(np.float32))

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.int32, name="ids")])
    def __call__(self, ids: tf.Tensor) -> tf.Tensor:
        return embed(self.table.read_value(), ids)


def main() -> None:
    """Converts, runs on the device, and compares with TensorFlow."""
    module = Embedding()
    converter = Converter.from_concrete_functions([module.__call__.get_concrete_function()], module)
    content = converter.convert()
    print(converter.report)

    ids = np.array([3, 141, 592], np.int32)
    interpreter = Interpreter(content, delegates=[CLDelegate()])
    rows = interpreter.get_signature_runner()(ids=ids)["output_0"]
    np.testing.assert_allclose(rows, module(ids).numpy(), atol=1e-6)
    print(f"rows {ids.tolist()} of the table agree with TensorFlow")


if __name__ == "__main__":
    main()
