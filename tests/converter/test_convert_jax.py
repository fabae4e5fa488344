"""Models of JAX's, by jax2tf, against JAX. Needs ``pip install jax``, which the other tests do without."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
jax = pytest.importorskip("jax", reason="needs jax, which is no requirement of the tests: pip install jax")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import jax2tf  # noqa: E402

from litecl.converter import Converter  # noqa: E402
from litecl.interpreter import Interpreter  # noqa: E402
from litecl.interpreter.errors import ConversionError  # noqa: E402
from support.conversion import invoke, litert  # noqa: E402
from support.jax_functions import FUNCTIONS, mlp  # noqa: E402

_TOLERANCE = 1e-5


def _product_and_sum(x: Any) -> Any:
    return jax.lax.reduce(x, 0.0, lambda a, b: a * b + a, (0,))


def _two_sums(x: Any) -> Any:
    return jax.lax.reduce((x, x), (0.0, 0.0), lambda a, b: (a[0] + b[0], a[1] + b[1]), (0,))


def _traced(function: Any, *shapes: Any, **options: Any) -> Any:
    traced = tf.function(jax2tf.convert(function, **options), autograph=False)
    return traced.get_concrete_function(*(tf.TensorSpec(shape, tf.float32) for shape in shapes))


def _assert_equal(content: bytes, values: list[Any], wanted: list[Any]) -> None:
    for runtime in (litert(content), Interpreter(model_content=content)):
        for got, expected in zip(invoke(runtime, values), wanted, strict=True):
            assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
            finite = np.where(np.isfinite(expected), expected, 0).astype(np.float64)
            largest = np.abs(finite).max(initial=1)
            np.testing.assert_allclose(got, expected, _TOLERANCE, _TOLERANCE * largest)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    function, shapes = FUNCTIONS[name]
    random = np.random.default_rng(1)
    values = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    wanted = [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(function)(*values))]
    _assert_equal(Converter.from_concrete_functions([_traced(function, *shapes)]).convert(), values, wanted)


def test_an_open_batch() -> None:
    function = _traced(mlp, (None, 6), polymorphic_shapes=["(b, 6)"])
    content = Converter.from_concrete_functions([function]).convert()
    for batch in (1, 3):
        x = np.random.default_rng(batch).standard_normal((batch, 6)).astype(np.float32)
        _assert_equal(content, [x], [np.asarray(mlp(x))])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jax.lax.associative_scan(jnp.add, x, axis=1),
        lambda x: (x[1:], jnp.pad(x, ((1, 0), (2, 1))), jnp.argmax(x, -1)),
        lambda x: jnp.take_along_axis(x, jnp.argsort(x, 1)[:, :3], 1),
        lambda x: jax.ops.segment_sum(x, (x[:, 0] * 4).astype(int), 3),
        lambda x: jax.lax.reduce_window(x[..., None], -jnp.inf, jax.lax.max, (1, 2, 1), (1, 2, 1), "VALID"),
        lambda x: jax.lax.dynamic_slice(x, (0, (x[0, 0] * 9).astype(int)), (x.shape[0], 3)),
    ],
    ids=["associative scan", "rows", "along", "segments", "pool", "slice"],
)
def test_functions_of_an_open_batch(function: Any) -> None:
    traced = _traced(function, (None, 9), polymorphic_shapes=["(b, 9)"])
    content = Converter.from_concrete_functions([traced]).convert()
    for batch in (2, 5):
        x = np.random.default_rng(batch).standard_normal((batch, 9)).astype(np.float32)
        _assert_equal(content, [x], [np.asarray(leaf) for leaf in jax.tree.leaves(function(x))])


_EXPORT = """
import sys, keras, numpy as np
keras.utils.set_random_seed(1)
layers, (folder, name, *values) = keras.layers, sys.argv[1:]
made = {
    "LSTM": [layers.LSTM(5, return_sequences=True), layers.GRU(4)],
    "Bidirectional": [layers.Masking(), layers.Bidirectional(layers.SimpleRNN(4), merge_mode="sum")],
    "behind a pool": [layers.Conv1D(8, 3), layers.MaxPooling1D(2), layers.LSTM(3, unroll=True)],
}
model = keras.Sequential([keras.Input((8, 6)), *made[name]])
model.export(folder + "/model", verbose=False)
np.save(folder + "/y.npy", np.asarray(model(np.load(folder + "/x.npy"))))
"""


@pytest.mark.parametrize("name", ["LSTM", "Bidirectional", "behind a pool"])
def test_recurrent_models_of_keras_on_jax(name: str, tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((2, 8, 6)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    environment = os.environ | {"KERAS_BACKEND": "jax"}
    subprocess.run([sys.executable, "-c", _EXPORT, str(tmp_path), name], env=environment, check=True)
    (key,) = tf.saved_model.load(tmp_path / "model").signatures["serving_default"].structured_input_signature[1]
    for shapes in (None, {key: (2, 8, 6)}):
        content = Converter.from_saved_model(tmp_path / "model", input_shapes=shapes).convert()
        _assert_equal(content, [x], [np.load(tmp_path / "y.npy")])


def test_a_saved_model_with_weights(tmp_path: Path) -> None:
    weights = {"w": tf.Variable(np.ones((6, 2), np.float32)), "b": tf.Variable(np.float32([1, 2]))}
    layer = jax2tf.convert(lambda p, x: jnp.tanh(x @ p["w"] + p["b"]))
    module = tf.Module()
    module.weights = weights
    spec = tf.TensorSpec((3, 6), tf.float32, name="x")
    module.run = tf.function(lambda x: {"y": layer(weights, x)}, [spec], autograph=False)
    tf.saved_model.save(module, tmp_path, signatures=module.run)
    x = np.random.default_rng(0).standard_normal((3, 6)).astype(np.float32)
    content = Converter.from_saved_model(tmp_path).convert()
    _assert_equal(content, [x], [module.run(tf.constant(x))["y"].numpy()])


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x: jnp.abs(jnp.fft.rfft(x)), r"no TensorFlow operator is known for stablehlo\.fft"),
        (lambda x: jnp.lexsort((x[0], x[1])), "does not sort by the first operand"),
        (lambda x: x.at[0].apply(jnp.sin), r"stablehlo\.scatter writes by sine"),
        (
            lambda x: jax.lax.conv(*[x[None, None].astype(jnp.int8)] * 2, (1, 1), "SAME"),
            "convert the operands to float32",
        ),
        (lambda x: jnp.linalg.inv(x @ x.T), "XLA's own|custom_call"),
        (_product_and_sum, r"stablehlo\.reduce reduces by multiply, add"),
        (_two_sums, r"stablehlo\.reduce reduces two operands other than"),
        (lambda x: jax.lax.cond(x[0, 0] > 0, _product_and_sum, lambda y: y[0], x), r"stablehlo\.reduce reduces by"),
    ],
)
def test_what_is_not_known_is_named(function: Any, said: str) -> None:
    with pytest.raises(ConversionError, match=said):
        Converter.from_concrete_functions([_traced(function, (4, 4))]).convert()
