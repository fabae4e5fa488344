"""Sums over nothing, which are zeros, and loops over no rows, whose lists are empty."""

from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from litecl.converter import Converter  # noqa: E402
from litecl.interpreter import Interpreter  # noqa: E402
from support.conversion import converter_of, invoke, runtimes  # noqa: E402

_CONSTANT = np.zeros((0, 3), np.float32)
_PRODUCTS: dict[str, Any] = {
    "constant": (lambda x: tf.matmul(x, _CONSTANT), [(4, 0)]),
    "constant with a bias": (lambda x: tf.matmul(x, _CONSTANT) + np.float32([1, 2, 3]), [(4, 0)]),
    "transposed": (lambda x: tf.matmul(x, _CONSTANT.T, transpose_a=True, transpose_b=True), [(0, 4)]),
    "constant left": (lambda x: tf.matmul(_CONSTANT.T, x) + 1.0, [(0, 5)]),
    "dense": (lambda x: tf.tensordot(x, _CONSTANT, 1) + 1.0, [(2, 4, 0)]),
    "computed": (lambda x, y: tf.matmul(x, y) - 1.0, [(4, 0), (0, 3)]),
    "batches": (lambda x, y: tf.matmul(x, y, adjoint_b=True), [(2, 4, 0), (2, 3, 0)]),
    "einsum": (lambda x, y: tf.einsum("abc,dc->abd", x, y) + 1.0, [(2, 4, 0), (3, 0)]),
}


@pytest.mark.parametrize("is_open", [False, True], ids=["known", "open"])
@pytest.mark.parametrize("name", _PRODUCTS)
def test_products(name: str, is_open: bool) -> None:
    function, shapes = _PRODUCTS[name]
    specs = [tf.TensorSpec([d if d == 0 or not is_open else None for d in shape], tf.float32) for shape in shapes]
    values = [np.zeros(shape, np.float32) for shape in shapes]
    content, expected = converter_of(function, *specs).convert(), function(*map(tf.constant, values))
    for runtime in runtimes(content):
        (got,) = invoke(runtime, values)
        np.testing.assert_array_equal(got, expected)


def _grown(x: Any) -> Any:
    """Rows that are written to a list one by one."""
    count = tf.shape(x)[0]
    rows = tf.TensorArray(tf.float32, count)

    def body(i: Any, rows: Any) -> Any:
        return i + 1, rows.write(i, x[i] * 3)

    return tf.while_loop(lambda i, rows: i < count, body, (0, rows))[1].stack()


_LOOPS: dict[str, Any] = {
    "map": lambda x: tf.map_fn(lambda row: row * 2 + 1, x),
    "map to several": lambda x: tf.map_fn(
        lambda row: (tf.reduce_sum(row), row[:2] > 0), x, fn_output_signature=(tf.float32, tf.bool)
    ),
    "map within": lambda x: tf.map_fn(lambda row: tf.map_fn(lambda one: one * 2, row), x),
    "scan": lambda x: tf.scan(lambda sums, row: sums + row, x, initializer=tf.zeros(3)),
    "fold": lambda x: tf.foldl(lambda sums, row: sums + row, x, initializer=tf.ones(3)),
    "list": _grown,
}


@pytest.mark.parametrize("name", _LOOPS)
def test_loops_over_an_open_number_of_rows(name: str) -> None:
    spec = tf.TensorSpec([None, 3], tf.float32)
    concrete = tf.function(_LOOPS[name], autograph=False).get_concrete_function(spec)
    content = Converter.from_concrete_functions([concrete]).convert()
    for runtime in runtimes(content):
        for rows in (2, 0, 1, 0):
            x = np.random.default_rng(rows).standard_normal((rows, 3)).astype(np.float32)
            expected = [value.numpy() for value in tf.nest.flatten(concrete(x))]
            for got, wanted in zip(_outputs(runtime, x), expected, strict=True):
                assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
                np.testing.assert_allclose(got, wanted, 1e-6)


def _outputs(runtime: Any, x: Any) -> list[Any]:
    """Run a model. LiteRT's Python tells only the shape and type of an empty result that it allocates while it runs."""
    try:
        return invoke(runtime, [x])
    except ValueError as error:
        if isinstance(runtime, Interpreter) or "Invalid tensor size" not in str(error):
            raise
        return [np.zeros(detail["shape"], detail["dtype"]) for detail in runtime.get_output_details()]
