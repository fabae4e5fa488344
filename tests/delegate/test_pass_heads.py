"""The pass that makes transpositions of words and heads part of attention, for GPUs only, and its results."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.gpu.pipeline import GPU_PASSES
from litecl.delegate.plan.pipeline import PASSES
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array, Shape
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.ops.transpose import TRANSPOSE
from litecl.interpreter.ops.unary import ABS
from support import devices
from support.build import Graph, model, randn
from support.loop_models import FLOAT, INT, below, int32, next_, while_model
from support.loop_models import check as loop_check
from support.regions import after, names, text

_HEADS, _KEYS_DOWN = (0, 2, 1, 3), (0, 2, 3, 1)
_SIZE = (2, 7, 3, 8)  # of images, words, heads and elements


def turned(g: Graph, x: int, permutation: Shape) -> int:
    return g.op(TRANSPOSE, [x, g.const(np.array(permutation, np.int32))], NoOptions())


def attended(
    g: Graph, q: int, k: int, v: int, mask: int | None = None, *, keys: Shape = _HEADS, out: Shape = _HEADS
) -> int:
    """Add attention of words [images, words, heads, elements]."""
    heads = turned(g, q, _HEADS), turned(g, k, keys)
    scores = g.op(BATCH_MATMUL, [*heads], BatchMatMulOptions(adj_y=keys == _HEADS))
    scores = scores if mask is None else g.op(ADD, [scores, mask], AddOptions())
    weights = g.op(SOFTMAX, [scores], SoftmaxOptions(1.0))
    return turned(g, g.op(BATCH_MATMUL, [weights, turned(g, v, _HEADS)], BatchMatMulOptions()), out)


def expected(q: Array, k: Array, v: Array, mask: Array | float = 0.0) -> Array:
    """Attend in float64, word by word."""
    by_head = [x.astype(np.float64).transpose(_HEADS) for x in (q, k, v)]
    scores = np.exp(by_head[0] @ by_head[1].swapaxes(-1, -2) + mask)
    result: Array = (scores / scores.sum(-1, keepdims=True)) @ by_head[2]
    return result.transpose(_HEADS)


def three(g: Graph) -> list[int]:
    return [g.input(_SIZE) for _ in range(3)]


@pytest.mark.parametrize("keys", [_HEADS, _KEYS_DOWN])
def test_whole(keys: Shape) -> None:
    """One node of the words alone, in the place of the last transposition; on a CPU they are nodes of their own."""
    g = Graph()
    y = attended(g, *three(g), keys=keys)
    graph = after(GPU_PASSES, g, y)
    assert text(graph) == "%13:float32[2,7,3,8] = ATTENTION(%0, %1, %2), #6 #0 #1 #2 #3 #4 #5"
    assert graph.nodes[0].node.options.turns == (_HEADS, keys, _HEADS, _HEADS)
    assert names(after(PASSES, g, y)) == ["TRANSPOSE", "TRANSPOSE", "TRANSPOSE", "ATTENTION", "TRANSPOSE"]


def _read_elsewhere(g: Graph) -> Sequence[int]:
    q, k, v = three(g)
    y = attended(g, q, k, v)
    seen = next(node.outputs[0] for node in g.build(y).nodes if node.op is TRANSPOSE)
    return y, g.op(ABS, [seen], NoOptions())


def _elements_apart(g: Graph) -> Sequence[int]:
    return (attended(g, *three(g), out=(0, 2, 3, 1)),)


def _of_one_tensor(g: Graph) -> Sequence[int]:
    x, v = three(g)[:2]
    both = turned(g, x, _HEADS)
    weights = g.op(SOFTMAX, [g.op(BATCH_MATMUL, [both, both], BatchMatMulOptions(adj_y=True))], SoftmaxOptions(1.0))
    return (g.op(BATCH_MATMUL, [weights, turned(g, v, _HEADS)], BatchMatMulOptions()),)


@pytest.mark.parametrize("make", [_read_elsewhere, _elements_apart, _of_one_tensor])
def test_what_stays(make: Callable[[Graph], Sequence[int]]) -> None:
    """Transpositions that others read, that part a word's elements, or whose result is used twice."""
    g = Graph()
    found = names(after(GPU_PASSES, g, *make(g)))
    assert (found.count("TRANSPOSE"), found.count("ATTENTION")) == (1, 1)


@pytest.mark.parametrize("keys", [_HEADS, _KEYS_DOWN])
@pytest.mark.parametrize("masked", [False, True])
def test_numbers(keys: Shape, masked: bool, gpu: dict[str, Any]) -> None:
    """One launch reads and writes where words are."""
    rng, g = np.random.default_rng(2), Graph()
    inputs = three(g)
    mask = g.input((2, 1, 1, 7)) if masked else None
    y = attended(g, *inputs, mask, keys=keys)
    feeds = [randn(rng, *_SIZE) for _ in range(3)] + ([randn(rng, 2, 1, 1, 7)] if masked else [])
    interpreter = Interpreter(model(g.build(y)), delegates=[CLDelegate(**gpu)])
    interpreter.allocate_tensors()
    assert interpreter.delegation_report().partitions[0].kernels == ("attention_local",)
    for detail, feed in zip(interpreter.get_input_details(), feeds, strict=True):
        interpreter.set_tensor(detail["index"], feed)
    interpreter.invoke()
    np.testing.assert_allclose(interpreter.get_tensor(y), expected(*feeds), rtol=1e-5, atol=1e-5)


def test_in_a_loop(gpu: dict[str, Any]) -> None:
    """Where a group runs the whole loop no kernel has local memory, and words are turned by launches of their own."""
    devices.needs_groups()

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        return [next_(g, x[0]), attended(g, x[1], g.op(ABS, [x[1]], NoOptions()), x[1], keys=_KEYS_DOWN)]

    x = randn(np.random.default_rng(6), *_SIZE)
    wanted = x.astype(np.float64)
    for _ in range(3):
        wanted = expected(wanted, np.abs(wanted), wanted)
    looped = while_model([((), INT), (x.shape, FLOAT)], below(3), body)
    prepared = loop_check(looped, [int32(0), x], [int32(3), wanted.astype(np.float32)], **gpu)
    assert {"attention", "copy"} <= {*prepared.delegation_report().partitions[0].kernels}
