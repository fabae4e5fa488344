"""Shape propagation: folding, unknown shapes, and what loops and branches leave known."""

from dataclasses import replace

import numpy as np
import pytest

from litecl.interpreter.errors import ModelError, ShapeError, UnsupportedOp
from litecl.interpreter.graph import Model, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.compare import LESS
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.control import IF, WHILE, IfOptions, WhileOptions
from litecl.interpreter.ops.pack import PACK, PackOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.shape import SHAPE, ShapeOptions
from litecl.interpreter.ops.strided_slice import STRIDED_SLICE, StridedSliceOptions
from litecl.interpreter.run.shapes import Known, propagate
from litecl.interpreter.schema import TensorType
from support.build import Graph, model, randn

RNG = np.random.default_rng(2)
INT32, BOOL = TensorType.INT32, TensorType.BOOL


def known(model_: Model) -> tuple[Known, ...]:
    """Propagation from the declared input shapes."""
    graph = model_.subgraphs[0]
    return propagate(model_, {0: [graph.tensors[t].static_shape for t in graph.inputs]})


def i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def test_a_chain_from_shape_to_reshape_is_folded() -> None:
    g = Graph()
    x = g.input((6, 2, 2))
    shape = g.op(SHAPE, [x], ShapeOptions(INT32))
    options = StridedSliceOptions(shrink_axis_mask=1)
    batch = g.op(STRIDED_SLICE, [shape, g.const(i32(0)), g.const(i32(1)), g.const(i32(1))], options)
    target = g.op(PACK, [batch, g.const(np.int32(4))], PackOptions(values_count=2))
    y = g.op(RESHAPE, [x, target], ReshapeOptions())
    (specs,) = known(model(g.build(y)))
    assert specs[target].data is not None and specs[target].data.tolist() == [6, 4]
    assert specs[y].shape == (6, 4)


def test_a_shape_that_hangs_on_values_is_unknown_and_so_is_what_follows() -> None:
    g = Graph()
    x, target = g.input((6,)), g.input((2,), INT32)
    (y,) = g.node(RESHAPE, [x, target], [TensorSpec(TensorType.FLOAT32, (1, 6))], ReshapeOptions())
    (z,) = g.node(ADD, [y, y], [TensorSpec(TensorType.FLOAT32, (1, 6))], AddOptions())
    (specs,) = known(model(g.build(z)))
    assert specs[y].shape is None
    assert specs[z].shape is None


def counting_loop(body_grows: bool) -> Model:
    """while i < 3: i += 1; x = concat(x, x) or x + x."""
    condition = Graph("cond")
    i, _ = condition.input((), INT32), condition.input((1, 3))
    cond = condition.build(condition.op(LESS, [i, condition.const(np.int32(3))], NoOptions()))
    body = Graph("body")
    i, x = body.input((), INT32), body.input((1, 3))
    following = body.op(ADD, [i, body.const(np.int32(1))], AddOptions())
    y = body.op(CONCATENATION, [x, x], ConcatenationOptions(0)) if body_grows else body.op(ADD, [x, x], AddOptions())
    main = Graph()
    start, x = main.const(np.int32(0)), main.input((1, 3))
    outputs = main.node(WHILE, [start, x], [main.tensors[start], main.tensors[x]], WhileOptions(1, 2))
    return model(main.build(*outputs), cond, body.build(following, y))


def test_a_static_loop_keeps_its_shapes_and_forgets_its_values() -> None:
    model_ = counting_loop(body_grows=False)
    main, _, body = known(model_)
    counter, x = model_.subgraphs[0].outputs
    assert (main[counter].shape, main[counter].data) == ((), None)
    assert main[x].shape == (1, 3)
    assert body[0].data is None


def test_a_growing_loop_leaves_only_the_growing_shape_unknown() -> None:
    model_ = counting_loop(body_grows=True)
    main, _, body = known(model_)
    counter, x = model_.subgraphs[0].outputs
    assert main[counter].shape == ()
    assert main[x].shape is None
    assert body[1].shape is None


@pytest.mark.parametrize(("columns", "expected"), [(3, (2, 3)), (5, None)])
def test_branches_agree_or_leave_the_shape_unknown(columns: int, expected: tuple[int, ...] | None) -> None:
    branches = []
    for name, width in (("then", 3), ("else", columns)):
        g = Graph(name)
        x = g.input((2, 1))
        branches.append(g.build(g.op(ADD, [x, g.const(randn(RNG, width))], AddOptions())))
    main = Graph()
    flag, x = main.input((), BOOL), main.input((2, 1))
    outputs = main.node(IF, [flag, x], [TensorSpec(TensorType.FLOAT32, (2, 3))], IfOptions(1, 2))
    (specs, *_) = known(model(main.build(*outputs), *branches))
    assert specs[outputs[0]].shape == expected


def test_a_subgraph_that_calls_itself_is_refused() -> None:
    main = Graph()
    flag, x = main.input((), BOOL), main.input((2,))
    outputs = main.node(IF, [flag, x], [main.tensors[x]], IfOptions(1, 1))
    again = Graph("again")
    flag, x = again.const(np.bool_(True)), again.input((2,))
    inner = again.node(IF, [flag, x], [again.tensors[x]], IfOptions(1, 1))
    with pytest.raises(ModelError, match="calls itself"):
        known(model(main.build(*outputs), again.build(*inner)))


def test_an_unknown_version_is_refused() -> None:
    g = Graph()
    x = g.input((2, 3))
    node = replace(model(g.build(g.op(ADD, [x, x], AddOptions()))).subgraphs[0].nodes[0], version=99)
    with pytest.raises(UnsupportedOp, match="version 99"):
        known(model(replace(g.build(1), nodes=(node,))))


def test_errors_name_the_node() -> None:
    g = Graph()
    x = g.input((2, 3))
    (y,) = g.node(ADD, [x, g.const(randn(RNG, 4))], [g.tensors[x]], AddOptions())
    with pytest.raises(ShapeError) as caught:
        known(model(g.build(y)))
    assert caught.value.__notes__ == ["while preparing ADD (subgraph 0, node 0)"]
