"""Conversion: every model against Keras, run by ai_edge_litert and by litecl, again and again on one interpreter."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

import oracle  # noqa: E402
from ai_edge_litert.interpreter import Interpreter as LiteRT  # noqa: E402
from compare import assert_close  # noqa: E402
from keras_models import FEED_FORWARD, LSTMS, KerasModel, feeds, randomise, stack  # noqa: E402
from litecl.converter import Converter  # noqa: E402
from litecl.interpreter import Interpreter  # noqa: E402
from litecl.interpreter.errors import ConversionError  # noqa: E402
from litecl.interpreter.graph import Array, Model  # noqa: E402
from litecl.interpreter.ops.pad import PAD  # noqa: E402
from litecl.interpreter.ops.unidirectional_sequence_lstm import UNIDIRECTIONAL_SEQUENCE_LSTM  # noqa: E402

L = keras.layers
TOLERANCE = 1e-5


def _litert(content: bytes, resolver: str = "optimised") -> Any:
    return LiteRT(model_content=content, num_threads=1, experimental_op_resolver_type=oracle.RESOLVERS[resolver])


def _runtimes(content: bytes) -> list[Any]:
    return [_litert(content), _litert(content, "default"), Interpreter(model_content=content)]


def _invoke(runtime: Any, values: list[Array]) -> dict[str, Array]:
    """The outputs by name, of inputs in the signature's order."""
    details = runtime.get_input_details()
    for detail, value in zip(details, values, strict=True):
        if tuple(detail["shape"]) != value.shape:
            runtime.resize_tensor_input(detail["index"], value.shape)
    runtime.allocate_tensors()
    for detail, value in zip(details, values, strict=True):
        runtime.set_tensor(detail["index"], value)
    runtime.invoke()
    return [np.array(runtime.get_tensor(detail["index"])) for detail in runtime.get_output_details()]


def _expected(model: Any, values: list[Array]) -> list[Array]:
    structure = keras.tree.pack_sequence_as(model.input, [tf.constant(value) for value in values])
    return [np.asarray(y) for y in keras.tree.flatten(model(structure, training=False))]


def _check(content: bytes, model: Any, batches: tuple[int, ...]) -> None:
    """Every runtime gives what Keras gives, for sequences that follow each other in one interpreter."""
    for runtime in _runtimes(content):
        for seed, batch in enumerate((*batches, batches[0])):
            values = feeds(model, batch, seed)
            for got, expected in zip(_invoke(runtime, values), _expected(model, values), strict=True):
                assert_close(got, expected, TOLERANCE)


def _operators(model: Model) -> Counter[str]:
    return Counter(node.op.name for subgraph in model.subgraphs for node in subgraph.nodes)


@pytest.mark.parametrize("case", [*FEED_FORWARD, *LSTMS], ids=repr)
def test_keras_model(case: KerasModel) -> None:
    model = randomise(case.build())
    converter = Converter.from_keras_model(model)
    operators = _operators(converter.convert_to_model())
    assert operators.total() <= case.operators, operators
    _check(converter.convert(), model, case.batches)
