"""Sums over nothing, which are zeros."""

from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from litecl.converter import Converter  # noqa: E402
from support.conversion import invoke, runtimes  # noqa: E402

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
    concrete = tf.function(function, autograph=False).get_concrete_function(*specs)
    values = [np.zeros(shape, np.float32) for shape in shapes]
    content, expected = Converter.from_concrete_functions([concrete]).convert(), function(*map(tf.constant, values))
    for runtime in runtimes(content):
        (got,) = invoke(runtime, values)
        np.testing.assert_array_equal(got, expected)
