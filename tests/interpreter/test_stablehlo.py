"""StableHLO operators that run subgraphs, and the composite, against ai_edge_litert."""

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model, Subgraph, TensorSpec
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops import stablehlo as ops
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.compare import GREATER, LESS
from litecl.interpreter.ops.control import STABLEHLO_COMPOSITE, StableHLOCompositeOptions
from litecl.interpreter.ops.reduce_window import STABLEHLO_REDUCE_WINDOW, StablehloReduceWindowOptions
from litecl.interpreter.ops.stablehlo_sort import STABLEHLO_SORT, StablehloSortOptions
from litecl.interpreter.schema import TensorType
from support import compare, oracle
from support.build import Graph, model, randn

RNG = np.random.default_rng(79)
COMPUTATIONS = (ops.STABLEHLO_ADD, ops.STABLEHLO_MULTIPLY, ops.STABLEHLO_MAXIMUM, ops.STABLEHLO_MINIMUM)


def _computation(op: Op | None) -> Subgraph:
    """A subgraph of two scalars; without an operator its result is the second one."""
    g = Graph("computation")
    a, b = g.input(()), g.input(())
    return g.build(b if op is None else g.op(op, [a, b], NoOptions()))


def _check(built: Model, feeds: list[Array], kernels: str = "reference") -> None:
    content = write(built)
    interpreter = Interpreter(content)
    interpreter.allocate_tensors()
    for detail, feed in zip(interpreter.get_input_details(), feeds, strict=True):
        interpreter.set_tensor(detail["index"], feed)
    interpreter.invoke()
    got = [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
    for a, b in zip(got, oracle.run(content, feeds, oracle.RESOLVERS[kernels]), strict=True):
        compare.assert_close(a, b, 1e-5)


@pytest.mark.parametrize("op", [None, *COMPUTATIONS], ids=lambda op: "update" if op is None else op.name)
@pytest.mark.parametrize("rows", [[[0], [2]], [[2], [2], [2]], [[9], [-1], [1]]], ids=["apart", "one", "outside"])
def test_scatter(op: Op | None, rows: list[list[int]]) -> None:
    g = Graph()
    x, updates = g.input((4, 3)), g.input((len(rows), 3))
    options = ops.StablehloScatterOptions(
        update_window_dims=(1,),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        index_vector_dim=1,
        update_computation_subgraph_index=1,
    )
    indices = g.const(np.array(rows, np.int64))
    spec = TensorSpec(TensorType.FLOAT32, (4, 3))
    (y,) = g.node(ops.STABLEHLO_SCATTER, (x, indices, updates), [spec], options)
    _check(model(g.build(y), _computation(op)), [randn(RNG, 4, 3), randn(RNG, len(rows), 3)])


@pytest.mark.parametrize("op", COMPUTATIONS, ids=lambda op: op.name)
@pytest.mark.parametrize(
    "options",
    [
        StablehloReduceWindowOptions((2, 2), (1, 1), (1, 1), (1, 1), (0, 0, 0, 0), 1),
        StablehloReduceWindowOptions((2, 3), (2, 1), (1, 1), (1, 2), (1, 0, 2, 1), 1),
        StablehloReduceWindowOptions((3, 1), (1, 2), (2, 3), (2, 1), (0, 1, -1, 0), 1),
    ],
    ids=["plain", "strided", "dilated"],
)
def test_reduce_window(op: Op, options: StablehloReduceWindowOptions) -> None:
    g = Graph()
    x, start = g.input((4, 5)), g.const(np.float32(1.5))
    (inferred,) = STABLEHLO_REDUCE_WINDOW.infer(options, [g.tensors[x], g.tensors[start]])
    (y,) = g.node(STABLEHLO_REDUCE_WINDOW, (x, start), [inferred], options)
    _check(model(g.build(y), _computation(op)), [randn(RNG, 4, 5)])


def test_composite_is_its_decomposition() -> None:
    g, decomposition = Graph(), Graph("decomposition")
    x = g.input((2, 3))
    options = StableHLOCompositeOptions("twice", decomposition_subgraph_index=1)
    (y,) = g.node(STABLEHLO_COMPOSITE, (x,), [TensorSpec(TensorType.FLOAT32, (2, 3))], options)
    p = decomposition.input((2, 3))
    _check(model(g.build(y), decomposition.build(decomposition.op(ADD, [p, p], AddOptions()))), [randn(RNG, 2, 3)])


@pytest.mark.parametrize("branch", [0, 1, 7, -3])
def test_case_takes_the_last_branch_where_the_index_is_out_of_range(branch: int) -> None:
    g = Graph()
    index, x = g.input((), TensorType.INT32), g.input((3,))
    options = ops.StablehloCaseOptions((1, 2))
    (y,) = g.node(ops.STABLEHLO_CASE, (index, x), [TensorSpec(TensorType.FLOAT32, (3,))], options)
    branches = []
    for op, arguments in ((ADD, AddOptions()), (MUL, MulOptions())):
        b = Graph(op.name)
        p = b.input((3,))
        branches.append(b.build(b.op(op, [p, b.const(np.float32([1, 2, 3]))], arguments)))
    _check(model(g.build(y), *branches), [np.asarray(branch, np.int32), randn(RNG, 3)], "optimised")


def _comparator(types_: list[TensorType], compare_: Op, operand: int) -> Subgraph:
    g = Graph("comparator")
    pairs = [g.input((), type_) for type_ in types_ for _ in range(2)]
    return g.build(g.op(compare_, pairs[2 * operand : 2 * operand + 2], NoOptions()))


def _sort(values: list[Array], dimension: int, comparator: Subgraph, device: str | None) -> list[Array]:
    g = Graph()
    specs = [TensorSpec(TensorType.of(value.dtype), value.shape) for value in values]
    inputs = [g.input(value.shape, spec.type) for value, spec in zip(values, specs, strict=True)]
    options = StablehloSortOptions(dimension, is_stable=True, comparator_subgraph_index=1)
    content = write(model(g.build(*g.node(STABLEHLO_SORT, inputs, specs, options)), comparator))
    interpreter = Interpreter(content, delegates=[] if device is None else [CLDelegate(device)])
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), values, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


@pytest.mark.parametrize("device", [None, "native"])
@pytest.mark.parametrize("shape", [(1,), (2,), (7,), (64,), (5, 33), (3, 4, 5), (0,), (2, 0), (1000,)], ids=str)
@pytest.mark.parametrize("dimension", [0, -1])
def test_sort_by_the_first(shape: tuple[int, ...], dimension: int, device: str | None) -> None:
    """Equal keys keep their order, which the second tensor shows."""
    keys = RNG.integers(0, 9, shape).astype(np.int32)
    along = np.arange(keys.size, dtype=np.float32).reshape(shape)
    got = _sort([keys, along], dimension, _comparator([TensorType.INT32, TensorType.FLOAT32], LESS, 0), device)
    order = np.argsort(keys, axis=dimension, kind="stable")
    np.testing.assert_array_equal(got[0], np.take_along_axis(keys, order, dimension))
    np.testing.assert_array_equal(got[1], np.take_along_axis(along, order, dimension))


def test_sort_by_another_downwards() -> None:
    values = [RNG.integers(0, 100, 50).astype(np.int32), randn(RNG, 50)]
    got = _sort(values, 0, _comparator([TensorType.INT32, TensorType.FLOAT32], GREATER, 1), None)
    order = np.argsort(-values[1])
    np.testing.assert_array_equal(got[0], values[0][order])
    np.testing.assert_array_equal(got[1], values[1][order])


def test_refused_sorts() -> None:
    less = _comparator([TensorType.FLOAT32] * 2, LESS, 0)
    with pytest.raises(ShapeError, match=r"expected inputs of one shape, got \[3\], \[4\]"):
        _sort([randn(RNG, 3), randn(RNG, 4)], 0, less, None)
    with pytest.raises(ShapeError, match="axis 1 out of range"):
        _sort([randn(RNG, 3), randn(RNG, 3)], 1, less, None)
    with pytest.raises(ShapeError, match="expected a comparator of one BOOL, got FLOAT32"):
        _sort([randn(RNG, 3)], 0, _computation(ops.STABLEHLO_ADD), None)
