"""Floating-point types other than float32 are computed in it; inputs and results keep theirs."""

from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

from litecl.converter import Converter  # noqa: E402
from litecl.interpreter.errors import ConversionError  # noqa: E402
from litecl.interpreter.schema import TensorType  # noqa: E402
from support.conversion import invoke, litert  # noqa: E402

L = keras.layers
_TYPES = (tf.float16, tf.bfloat16, tf.float64)
_ROUNDING = 2e-2  # of bfloat16, several times


def _check(content: bytes, value: Any, expected: Any) -> None:
    (got,) = invoke(litert(content), [value])
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got.astype(np.float64), expected.astype(np.float64), rtol=_ROUNDING, atol=_ROUNDING)


@pytest.mark.parametrize("dtype", _TYPES, ids=lambda dtype: dtype.name)
def test_weights_inputs_and_results(dtype: Any) -> None:
    weights = tf.Variable(np.random.default_rng(1).normal(size=(4, 3)), dtype=dtype)
    function = tf.function(lambda x: tf.nn.relu(tf.matmul(x, weights) + tf.constant(0.5, dtype)), autograph=False)
    concrete = function.get_concrete_function(tf.TensorSpec((2, 4), dtype))
    converter = Converter.from_concrete_functions([concrete])
    (graph,) = converter.convert_to_model().subgraphs
    assert [node.op.name for node in graph.nodes] == ["CAST", "FULLY_CONNECTED", "CAST"]
    inner = [spec.type for t, spec in enumerate(graph.tensors) if t not in (*graph.inputs, *graph.outputs)]
    assert set(inner) <= {TensorType.FLOAT32, TensorType.INT32}
    value = np.random.default_rng(0).normal(size=(2, 4)).astype(dtype.as_numpy_dtype)
    _check(converter.convert(), value, function(value).numpy())


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16", "float64"])
def test_keras_policy(policy: str) -> None:
    options = {"dtype": policy}
    model = keras.Sequential(
        [
            keras.Input((8, 8, 3)),
            L.Conv2D(4, 3, activation="relu", **options),
            L.BatchNormalization(**options),
            L.Reshape((36, 4), **options),
            L.LSTM(3, **options),
            L.Dense(4, activation="softmax", **options),
        ]
    )
    value = np.random.default_rng(0).normal(size=(1, 8, 8, 3)).astype(np.float32)
    _check(Converter.from_keras_model(model).convert(), value, np.asarray(model(value)))


def test_tables_are_computed_in_the_type_that_they_were_written_in() -> None:
    def function(x: Any) -> Any:
        return x + tf.cast(tf.constant(1e9, tf.float64) + 0.25 - tf.constant(1e9, tf.float64), tf.float32)

    content = Converter.from_concrete_functions(
        [tf.function(function, autograph=False).get_concrete_function(tf.TensorSpec((2,), tf.float32))]
    ).convert()
    np.testing.assert_array_equal(invoke(litert(content), [np.float32([1, 2])])[0], [1.25, 2.25])


def test_numbers_that_float32_has_not_stay_finite() -> None:
    function = tf.function(lambda x: tf.minimum(x, tf.constant([1e300, np.inf], tf.float64)), autograph=False)
    concrete = function.get_concrete_function(tf.TensorSpec((2,), tf.float64))
    (got,) = invoke(litert(Converter.from_concrete_functions([concrete]).convert()), [np.array([np.inf, np.inf])])
    assert got.tolist() == [np.finfo(np.float32).max, np.inf]


def test_bits_of_other_types_are_refused() -> None:
    function = tf.function(lambda x: tf.bitcast(tf.cast(x, tf.float16), tf.uint16), autograph=False)
    concrete = function.get_concrete_function(tf.TensorSpec((2,), tf.float32))
    with pytest.raises(ConversionError, match=r"Bitcast .*bits"):
        Converter.from_concrete_functions([concrete]).convert()
