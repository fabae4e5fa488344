"""Floating-point types other than float32 are computed in it; inputs and results keep theirs."""

from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

from litecl.converter import Converter  # noqa: E402
from litecl.converter.report import ConversionWarning  # noqa: E402
from litecl.interpreter.errors import ConversionError  # noqa: E402
from litecl.interpreter.schema import TensorType  # noqa: E402
from support.conversion import converter_of, invoke, litert, runtimes  # noqa: E402

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


def test_whole_numbers_that_float32_rounds_are_warned_of() -> None:
    """A time stamp halved in float64 loses its last digits in the file."""

    def halved(x: Any) -> Any:
        return tf.cast(tf.cast(x, tf.float64) / 2, tf.int64, name="whole")

    converter = converter_of(halved, tf.TensorSpec((2,), tf.int64))
    with pytest.warns(ConversionWarning, match="float64 in float32, so in 'whole' numbers beyond 16,777,216 are round"):
        content = converter.convert()
    assert "'whole'" in str(converter.report)
    for runtime in runtimes(content):
        assert invoke(runtime, [np.array([2**24, 2**40 + 2], np.int64)])[0].tolist() == [2**23, 2**39]


def test_tables_are_computed_in_the_type_that_they_were_written_in() -> None:
    def function(x: Any) -> Any:
        return x + tf.cast(tf.constant(1e9, tf.float64) + 0.25 - tf.constant(1e9, tf.float64), tf.float32)

    content = Converter.from_concrete_functions(
        [tf.function(function, autograph=False).get_concrete_function(tf.TensorSpec((2,), tf.float32))]
    ).convert()
    np.testing.assert_array_equal(invoke(litert(content), [np.float32([1, 2])])[0], [1.25, 2.25])


def test_numbers_that_float32_has_not_stay_finite() -> None:
    spec = tf.TensorSpec((2,), tf.float64)
    converter = converter_of(lambda x: tf.minimum(x, tf.constant([1e300, np.inf], tf.float64)), spec)
    (got,) = invoke(litert(converter.convert()), [np.array([np.inf, np.inf])])
    assert got.tolist() == [np.finfo(np.float32).max, np.inf]


def test_bits_of_other_types_are_refused() -> None:
    with pytest.raises(ConversionError, match=r"Bitcast .*bits"):
        converter_of(lambda x: tf.bitcast(tf.cast(x, tf.float16), tf.uint16), tf.TensorSpec((2,))).convert()


def _complex(shape: tuple[int, ...], size: float = 1.0) -> Any:
    re, im = np.random.default_rng(4).normal(size=(2, *shape)) * size
    return re + 1j * im


@pytest.mark.parametrize("function", [tf.math.real, tf.math.imag, tf.abs], ids=["real", "imag", "abs"])
@pytest.mark.parametrize("shape", [(), (2, 3, 4)], ids=str)
def test_parts_of_complex128_are_exact(function: Any, shape: tuple[int, ...]) -> None:
    """Beyond float32's range too, as TFLite's operators compute in float64."""
    converter = converter_of(function, tf.TensorSpec(shape, tf.complex128))
    (graph,) = converter.convert_to_model().subgraphs
    assert len(graph.nodes) == 1
    value = _complex(shape, 1e200)
    for runtime in runtimes(converter.convert()):
        (got,) = invoke(runtime, [np.asarray(value)])
        assert got.dtype == np.float64
        np.testing.assert_allclose(got, function(value).numpy(), rtol=1e-15)


_ON_COMPLEX: dict[str, Any] = {
    "itself": lambda x: x,
    "product": lambda x: x * tf.math.conj(x + tf.constant(1 - 2j, tf.complex128)),
    "parts and itself": lambda x: (tf.math.real(x), tf.abs(x * x), -x),
    "part within": lambda x: tf.cast(tf.math.imag(x) * 2.0, tf.complex128) * x,
    "part twice": lambda x: (tf.math.real(x), tf.math.real(x) + tf.math.imag(x)),
}


@pytest.mark.parametrize("name", _ON_COMPLEX)
@pytest.mark.parametrize("shape", [(3, 4), (None, 4)], ids=str)
def test_complex128_is_computed_as_complex64(name: str, shape: tuple[int | None, ...]) -> None:
    function = _ON_COMPLEX[name]
    content = converter_of(function, tf.TensorSpec(shape, tf.complex128)).convert()
    value = _complex((3, 4))
    for runtime in runtimes(content):
        for got, expected in zip(invoke(runtime, [value]), tf.nest.flatten(function(tf.constant(value))), strict=True):
            assert got.dtype == expected.numpy().dtype
            np.testing.assert_allclose(got, expected.numpy(), rtol=1e-5, atol=1e-5)


def test_spectrum_of_float64_is_complex128() -> None:
    content = converter_of(lambda x: tf.signal.rfft(x), tf.TensorSpec((2, 8), tf.float64)).convert()
    value = np.random.default_rng(2).normal(size=(2, 8))
    for runtime in runtimes(content):
        (got,) = invoke(runtime, [value])
        assert got.dtype == np.complex128
        np.testing.assert_allclose(got, np.fft.rfft(value), rtol=1e-5, atol=1e-5)
