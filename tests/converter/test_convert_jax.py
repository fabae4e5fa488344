"""Models of JAX's, by jax2tf, against JAX. Needs ``pip install jax``, which the other tests do without."""

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
            largest = np.abs(expected.astype(np.float64)).max(initial=1)
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
        (lambda x: x.at[0].multiply(2.0), r"stablehlo\.scatter writes by multiply"),
        (lambda x: jnp.linalg.inv(x @ x.T), "XLA's own|custom_call"),
        (_product_and_sum, r"stablehlo\.reduce reduces by multiply, add"),
        (_two_sums, r"stablehlo\.reduce reduces two operands other than"),
        (lambda x: jax.lax.cond(x[0, 0] > 0, _product_and_sum, lambda y: y[0], x), r"stablehlo\.reduce reduces by"),
    ],
)
def test_what_is_not_known_is_named(function: Any, said: str) -> None:
    with pytest.raises(ConversionError, match=said):
        Converter.from_concrete_functions([_traced(function, (4, 4))]).convert()
