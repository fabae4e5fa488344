"""Attention over two tensors of keys and of values: a ring of those before, and the new ones."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.gpu.pipeline import GPU_PASSES
from litecl.delegate.plan.pipeline import PASSES
from litecl.interpreter.file.writer import write
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.binary import ADD, MUL, SUB, AddOptions, MulOptions, SubOptions
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.select import SELECT_V2
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.schema import TensorType as T
from support import oracle
from support.build import Graph, model, randn
from support.loop_models import outputs, prepared
from support.regions import after, names

HEADS, DEPTH, COLUMNS = 2, 8, 5


class Ring(Graph):
    """Queries, a ring of keys and new ones, values of both, in rows or in columns, and a mask of both."""

    def __init__(self, rows: int = 6, ring: int = 9, new: int = 4, *, in_rows: bool = False) -> None:
        super().__init__()
        self.rows, self.counts, self.in_rows = rows, (ring, new), in_rows
        self.queries = self.input((1, HEADS, rows, DEPTH))
        self.keys = [self.input((1, HEADS, count, DEPTH)) for count in self.counts]
        shapes = [(count, COLUMNS) if in_rows else (COLUMNS, count) for count in self.counts]
        self.values = [self.input((1, HEADS, *shape)) for shape in shapes]

    def scores(self, *, first: int = 0) -> int:
        keys = self.keys[first], self.keys[1 - first]
        made = [self.op(BATCH_MATMUL, [self.queries, k], BatchMatMulOptions(adj_y=True)) for k in keys]
        return self.op(CONCATENATION, made, ConcatenationOptions(3))

    def chosen(self, scores: int) -> int:
        mask = self.input((1, 1, self.rows, sum(self.counts)), T.BOOL)
        return self.op(SELECT_V2, [mask, scores, self.const(np.float32(-10000))], NoOptions())

    def added(self, scores: int) -> int:
        scaled = self.op(MUL, [scores, self.const(np.float32(0.4))], MulOptions())
        return self.op(ADD, [scaled, self.input((1, 1, self.rows, sum(self.counts)))], AddOptions())

    def cut(self, weights: int, start: int, count: int) -> int:
        edges = ([0, 0, 0, start], [1, HEADS, self.rows, count])
        return self.op(SLICE, [weights, *(self.const(np.array(edge, np.int32)) for edge in edges)], NoOptions())

    def seen(self, scores: int, *, swapped: bool = False, starts: tuple[int, int] | None = None) -> int:
        weights = self.op(SOFTMAX, [scores], SoftmaxOptions(1.0))
        at = (0, self.counts[0]) if starts is None else starts
        parts = [self.cut(weights, start, count) for start, count in zip(at, self.counts, strict=True)]
        options = BatchMatMulOptions(adj_y=not self.in_rows)
        products = [self.op(BATCH_MATMUL, [p, v], options) for p, v in zip(parts, self.values, strict=True)]
        return self.op(ADD, products[::-1] if swapped else products, AddOptions())


_FORMS: dict[str, Callable[[], tuple[Ring, int]]] = {
    "chosen": lambda: (g := Ring(), g.seen(g.chosen(g.scores()))),
    "added": lambda: (g := Ring(), g.seen(g.added(g.scores()))),
    "no mask": lambda: (g := Ring(), g.seen(g.scores(), swapped=True)),
    "in rows": lambda: (g := Ring(in_rows=True), g.seen(g.chosen(g.scores()), swapped=True)),
    "as many": lambda: (g := Ring(ring=7, new=7), g.seen(g.chosen(g.scores()))),
    "many": lambda: (g := Ring(rows=33, ring=70, new=33), g.seen(g.chosen(g.scores()))),
    "one": lambda: (g := Ring(rows=1, ring=130, new=1), g.seen(g.added(g.scores()))),
}


def check(g: Ring, y: int, kernel: str = "attention", **options: Any) -> None:
    rng = np.random.default_rng(3)
    feeds = [randn(rng, *g.tensors[t].static_shape) for t in g.inputs]
    feeds = [x > -0.2 if g.tensors[t].type == T.BOOL else x for t, x in zip(g.inputs, feeds, strict=True)]
    interpreter = prepared(model(g.build(y)), feeds, [CLDelegate(**{"strict": True, **options})])
    assert any(kernel in name for name in interpreter.delegation_report().partitions[0].kernels)
    outputs(interpreter)
    (expected,) = oracle.run(write(model(g.build(y))), feeds)
    np.testing.assert_allclose(outputs(interpreter)[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", _FORMS)
def test_numbers(name: str, gpu: dict[str, Any]) -> None:
    for passes in (PASSES, GPU_PASSES):
        g, y = _FORMS[name]()
        (node,) = after(passes, g, y).nodes
        assert node.node.op.name == "JOINED_ATTENTION"
        assert node.inputs[:5] == (g.queries, *g.keys, *g.values)
    for options in ({}, gpu):
        check(*_FORMS[name](), **options)


def _subtracted() -> tuple[Ring, int]:
    g = Ring()
    weights = g.op(SOFTMAX, [g.scores()], SoftmaxOptions(1.0))
    options = BatchMatMulOptions(adj_y=True)
    products = [
        g.op(BATCH_MATMUL, [g.cut(weights, start, count), v], options)
        for start, count, v in zip((0, 9), g.counts, g.values, strict=True)
    ]
    return g, g.op(SUB, products, SubOptions())


def _two_softmaxes() -> tuple[Ring, int]:
    g = Ring()
    products = [
        g.op(
            BATCH_MATMUL,
            [g.cut(g.op(SOFTMAX, [g.scores()], SoftmaxOptions(1.0)), start, count), v],
            BatchMatMulOptions(adj_y=True),
        )
        for start, count, v in zip((0, 9), g.counts, g.values, strict=True)
    ]
    return g, g.op(ADD, products, AddOptions())


def _crossed() -> tuple[Ring, int]:
    """The new keys come first among the scores, but the ring's values see the first weights."""
    g = Ring()
    return g, g.seen(g.scores(first=1))


def _overlapping() -> tuple[Ring, int]:
    g = Ring()
    return g, g.seen(g.scores(), starts=(1, 9))


def _cut_elsewhere() -> tuple[Ring, int]:
    g = Ring(ring=3, new=8)
    return g, g.seen(g.scores(first=1), starts=(0, 3))


_NONE = [_subtracted, _two_softmaxes, _crossed, _overlapping, _cut_elsewhere]


@pytest.mark.parametrize("make", _NONE)
def test_what_is_none(make: Callable[[], tuple[Ring, int]]) -> None:
    g, y = make()
    assert "JOINED_ATTENTION" not in names(after(PASSES, g, y))
    check(g, y, kernel="")


def test_new_keys_first() -> None:
    """In the order of the weights' parts, which values are in too."""
    g = Ring(ring=7, new=7)
    (node,) = after(PASSES, g, g.seen(g.scores(first=1))).nodes
    assert node.inputs[:5] == (g.queries, g.keys[1], g.keys[0], *g.values)
