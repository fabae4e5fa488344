"""Composites run on the device as their bodies do, bit by bit, whatever they are called."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array, Model, Shape
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import unary
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.binary import ADD, MUL, SUB, AddOptions, MulOptions, SubOptions
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.control import STABLEHLO_COMPOSITE, StableHLOCompositeOptions
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.reduce import MEAN, ReducerOptions
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.ops.split import SPLIT, SplitOptions
from support.build import Graph, model, randn
from support.planned_gpu import PlannedGpu

Body = Callable[[Graph, Sequence[int]], int]


def rms_norm(g: Graph, x: Sequence[int]) -> int:
    square = g.op(MUL, [x[0], x[0]], MulOptions())
    mean = g.op(MEAN, [square, g.const(np.array([-1], np.int32))], ReducerOptions(keep_dims=True))
    root = g.op(unary.RSQRT, [g.op(ADD, [mean, g.const(np.float32(1e-6))], AddOptions())], NoOptions())
    return g.op(MUL, [g.op(MUL, [x[0], root], MulOptions()), x[1]], MulOptions())


def rotary(g: Graph, x: Sequence[int]) -> int:
    half = g.tensors[g.op(MUL, [x[1], x[2]], MulOptions())]
    a, b = g.node(SPLIT, (g.const(np.array(2, np.int32)), x[0]), [half, half], SplitOptions(2))
    turned = [
        g.op(op, [g.op(MUL, [p, x[1]], MulOptions()), g.op(MUL, [q, x[2]], MulOptions())], options)
        for op, p, q, options in ((SUB, a, b, SubOptions()), (ADD, b, a, AddOptions()))
    ]
    return g.op(CONCATENATION, turned, ConcatenationOptions(2))


def attention(g: Graph, x: Sequence[int]) -> int:
    scores = g.op(BATCH_MATMUL, [x[0], x[1]], BatchMatMulOptions(adj_y=True))
    masked = g.op(ADD, [g.op(MUL, [scores, g.const(np.float32(0.3))], MulOptions()), x[3]], AddOptions())
    return g.op(BATCH_MATMUL, [g.op(SOFTMAX, [masked], SoftmaxOptions(1.0)), x[2]], BatchMatMulOptions())


def update(g: Graph, x: Sequence[int]) -> int:
    return g.op(DYNAMIC_UPDATE_SLICE, [x[0], x[1], g.const(np.array([0, 3, 0], np.int32))], NoOptions())


_BODIES: dict[str, tuple[Body, tuple[Shape, ...]]] = {
    "odml.rms_norm": (rms_norm, ((2, 5, 12), (12,))),
    "rotary_embedding": (rotary, ((2, 5, 12), (2, 5, 6), (2, 5, 6))),
    "odml.scaled_dot_product_attention": (attention, ((2, 5, 12), (2, 9, 12), (2, 9, 12), (5, 9))),
    "odml.update_kv_cache": (update, ((2, 5, 12), (2, 1, 12))),
    "unknown": (lambda g, x: g.op(SUB, [x[1], x[0]], SubOptions()), ((2, 5, 12), (2, 5, 12))),
}


def whole(*, inlined: bool) -> Model:
    """All composites one after the other, on the result of the one before, or their bodies in their places."""
    g, bodies = Graph(), []
    y = g.input((2, 5, 12))
    for name, (body, shapes) in _BODIES.items():
        inputs = [y, *(g.input(shape) for shape in shapes[1:])]
        if inlined:
            y = body(g, inputs)
            continue
        b = Graph(name)
        bodies.append(b.build(body(b, [b.input(shape) for shape in shapes])))
        options = StableHLOCompositeOptions(name, decomposition_subgraph_index=len(bodies))
        y = g.node(STABLEHLO_COMPOSITE, inputs, [b.tensors[bodies[-1].outputs[0]]], options)[0]
    return model(g.build(y), *bodies)


def invoked(interpreter: Interpreter) -> Array:
    rng = np.random.default_rng(8)
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], randn(rng, *detail["shape"]))
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def run(built: Model, delegates: list[CLDelegate]) -> Array:
    interpreter = Interpreter(built, delegates=delegates)
    interpreter.allocate_tensors()
    result = invoked(interpreter)
    if delegates:
        report = interpreter.delegation_report()
        assert all(row.claimed for row in report.nodes)
        assert len(report.partitions) == 1
        assert "attention" in report.partitions[0].kernels
    return result


@pytest.mark.parametrize("queued", [False, True])
def test_composites_are_their_bodies(queued: bool) -> None:
    """The same kernels on the same numbers, except that nothing is fused across a composite's border."""
    options = {"strict": True, "queue_loops": queued}
    composites, bodies = (run(whole(inlined=way), [CLDelegate(**options)]) for way in (False, True))
    np.testing.assert_array_equal(composites, bodies)
    np.testing.assert_allclose(composites, run(whole(inlined=False), []), rtol=1e-5, atol=1e-5)


def test_a_composite_whose_body_stays_on_the_cpu() -> None:
    """The reason names the node; static parts of the body still run on the device."""
    interpreter = Interpreter(
        whole(inlined=False), delegates=[CLDelegate(PlannedGpu("nvidia"), deny_ops=["CONCATENATION"])]
    )
    interpreter.allocate_tensors()
    rows = interpreter.delegation_report().nodes
    (left,) = [row for row in rows if row.op == "STABLEHLO_COMPOSITE" and not row.claimed]
    assert "CONCATENATION in subgraph 2 stays on the CPU" in left.reason
    assert {row.op for row in rows if row.subgraph == 2 and row.claimed} >= {"SPLIT", "MUL"}
