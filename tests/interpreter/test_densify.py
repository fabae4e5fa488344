"""DENSIFY against ai_edge_litert, for sparse constants of several layouts."""

from dataclasses import replace

import numpy as np
import pytest

from litecl.cases.integers import affine
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import ABSENT, Array, DimensionMetadata, Model, Node, Sparsity, Subgraph, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.densify import DENSIFY, densify
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.schema import TensorType
from litecl.perf.feeds import run_on
from support import compare, oracle


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
    run_on(interpreter, [feed])
    got = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_array_equal(got, expected + 0.5)
    (litert,) = oracle.run(content, [feed])
    np.testing.assert_array_equal(got, litert)


def test_values_that_do_not_fit_are_refused() -> None:
    _, values, sparsity = LAYOUTS["rows"]
    with pytest.raises(ModelError, match="stores 5 values, got 4"):
        densify(values[:4], sparsity, (3, 4))
    short = replace(sparsity, dimensions=(_dense(2), sparsity.dimensions[1]))
    with pytest.raises(ModelError, match="expected 3 segments, got 4"):
        densify(values, short, (3, 4))


SPARSE_ROWS = {
    "random": (1, TensorType.FLOAT32),
    "blocks of 4": (4, TensorType.FLOAT32),
    "blocks of 16, 8 bits": (16, TensorType.INT8),
    "blocks of 16, float input": (16, TensorType.FLOAT32),
}


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("block", "type_"), SPARSE_ROWS.values(), ids=SPARSE_ROWS)
def test_fully_connected_reads_sparse_weights(block: int, type_: TensorType, bias: bool) -> None:
    random = np.random.default_rng(5)
    integers = block == 16
    dense = random.integers(-127, 128, (8, 48)).astype(np.int8 if integers else np.float32)
    dense[:, random.permutation(48 // block)[: 24 // block, None] * block + np.arange(block)] = 0
    dense[3] = 0
    kept = [np.flatnonzero(row.reshape(-1, block).any(axis=1)) for row in dense]
    blocks = [row.reshape(-1, block)[index] for row, index in zip(dense, kept, strict=True)]
    levels = (_dense(8), _sparse([0, *np.cumsum([len(k) for k in kept])], np.concatenate(kept).tolist()))
    sparsity = Sparsity((0, 1), (), levels) if block == 1 else Sparsity((0, 1, 2), (1,), (*levels, _dense(block)))
    model = _fully_connected(np.concatenate(blocks).ravel(), sparsity, dense.shape, type_, bias)
    feed = random.integers(-128, 128, (4, 48)).astype(type_.dtype)
    interpreter = Interpreter(model)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, feed)
    interpreter.invoke()
    (expected,) = oracle.run(write(model), [feed])
    got = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    compare.assert_close(got, expected, 0.0 if type_ == TensorType.INT8 else 1e-5)


def _fully_connected(values: Array, sparsity: Sparsity, shape: tuple[int, int], type_: TensorType, bias: bool) -> Model:
    units, depth = shape
    weights = TensorSpec(TensorType.of(values.dtype), shape, "w", values, affine(0.01), sparsity)
    added = np.arange(units).astype(np.int32 if type_ == TensorType.INT8 else np.float32) * 300
    tensors = (
        TensorSpec(type_, (4, depth), "x", quantization=affine(0.02, 3)),
        replace(weights, quantization=None) if values.dtype == np.float32 else weights,
        TensorSpec(TensorType.of(added.dtype), (units,), "b", added, affine(0.0002)),
        TensorSpec(type_, (4, units), "y", quantization=affine(0.7, -5)),
    )
    inputs = (0, 1, 2) if bias else (0, 1, ABSENT)
    node = Node(FULLY_CONNECTED, inputs, (3,), FullyConnectedOptions(), version=8)
    return Model((Subgraph(tensors, (0,), (3,), (node,), "main"),))


def _model(values: Array, sparsity: Sparsity, shape: tuple[int, ...]) -> Model:
    tensors = (
        TensorSpec(TensorType.FLOAT32, shape, "x"),
        TensorSpec(TensorType.FLOAT32, shape, "sparse", values, sparsity=sparsity),
        TensorSpec(TensorType.FLOAT32, shape, "dense"),
        TensorSpec(TensorType.FLOAT32, shape, "sum"),
    )
    nodes = (Node(DENSIFY, (1,), (2,), NoOptions()), Node(ADD, (0, 2), (3,), AddOptions()))
    return Model((Subgraph(tensors, (0,), (3,), nodes, "main"),))
