"""DENSIFY against ai_edge_litert, for sparse constants of several layouts."""

from dataclasses import replace

import numpy as np
import pytest

import oracle
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, DimensionMetadata, Model, Node, Sparsity, Subgraph, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.densify import DENSIFY, densify
from litecl.interpreter.schema import TensorType
from litecl.interpreter.writer import write


def _dense(size: int) -> DimensionMetadata:
    return DimensionMetadata(dense_size=size)


def _sparse(segments: list[int], indices: list[int]) -> DimensionMetadata:
    return DimensionMetadata(segments=np.array(segments, np.int32), indices=np.array(indices, np.int32))


MATRIX = np.array([[6, 0, 9, 8], [0, 0, 0, 0], [5, 0, 0, 7]], np.float32)
BLOCKS = np.array([[1, 0, 0, 0], [2, 3, 0, 0], [0, 0, 4, 5], [0, 0, 0, 6]], np.float32)
LAYOUTS: dict[str, tuple[Array, Array, Sparsity]] = {
    "rows": (
        MATRIX,
        np.array([6, 9, 8, 5, 7], np.float32),
        Sparsity((0, 1), (), (_dense(3), _sparse([0, 3, 3, 5], [0, 2, 3, 0, 3]))),
    ),
    "columns": (
        MATRIX,
        np.array([6, 5, 9, 8, 7], np.float32),
        Sparsity((1, 0), (), (_dense(4), _sparse([0, 2, 2, 3, 5], [0, 2, 0, 0, 2]))),
    ),
    "both sparse": (
        MATRIX,
        np.array([6, 9, 8, 5, 7], np.float32),
        Sparsity((0, 1), (), (_sparse([0, 2], [0, 2]), _sparse([0, 3, 5], [0, 2, 3, 0, 3]))),
    ),
    "dense": (MATRIX, MATRIX.ravel(), Sparsity((0, 1), (), (_dense(3), _dense(4)))),
    "blocks": (
        BLOCKS,
        np.array([1, 0, 2, 3, 4, 5, 0, 6], np.float32),
        Sparsity((0, 1, 2, 3), (0, 1), (_dense(2), _sparse([0, 1, 2], [0, 1]), _dense(2), _dense(2))),
    ),
    "blocks of one dimension": (
        BLOCKS,
        np.array([1, 0, 2, 3, 4, 5, 0, 6], np.float32),
        Sparsity((0, 1, 2), (1,), (_dense(4), _sparse([0, 1, 2, 3, 4], [0, 0, 1, 1]), _dense(2))),
    ),
}
each_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)


@each_layout
def test_formula(layout: tuple[Array, Array, Sparsity]) -> None:
    expected, values, sparsity = layout
    np.testing.assert_array_equal(densify(values, sparsity, expected.shape), expected)


@each_layout
def test_file(layout: tuple[Array, Array, Sparsity]) -> None:
    expected, values, sparsity = layout
    content = write(_model(values, sparsity, expected.shape))
    feed = np.full(expected.shape, 0.5, np.float32)
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], feed)
    interpreter.invoke()
    got = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_array_equal(got, expected + 0.5)
    (litert,) = oracle.run(content, [feed])
    np.testing.assert_array_equal(got, litert)


def test_values_that_do_not_fit_are_refused() -> None:
    _, values, sparsity = LAYOUTS["rows"]
    with pytest.raises(ModelError, match="places 5 values, got 4"):
        densify(values[:4], sparsity, (3, 4))
    short = replace(sparsity, dimensions=(_dense(2), sparsity.dimensions[1]))
    with pytest.raises(ModelError, match="expected 3 segments, got 4"):
        densify(values, short, (3, 4))


def _model(values: Array, sparsity: Sparsity, shape: tuple[int, ...]) -> Model:
    tensors = (
        TensorSpec(TensorType.FLOAT32, shape, "x"),
        TensorSpec(TensorType.FLOAT32, shape, "sparse", values, sparsity=sparsity),
        TensorSpec(TensorType.FLOAT32, shape, "dense"),
        TensorSpec(TensorType.FLOAT32, shape, "sum"),
    )
    nodes = (Node(DENSIFY, (1,), (2,), NoOptions()), Node(ADD, (0, 2), (3,), AddOptions()))
    return Model((Subgraph(tensors, (0,), (3,), nodes, "main"),))
