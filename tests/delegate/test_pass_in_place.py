"""The pass that lets updates of a part of a tensor write into its memory."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from litecl.delegate.plan.passes.in_place import in_place
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import unary
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.schema import TensorType
from support.build import Graph
from support.regions import after

SHAPE, ROW = (4, 8), (1, 8)


def update(g: Graph, x: int, row: int | None = None) -> int:
    new = g.input(ROW, g.tensors[x].type) if row is None else row
    return g.op(DYNAMIC_UPDATE_SLICE, [x, new, g.const(np.array([1, 0], np.int32))], NoOptions())


def row_of(g: Graph, x: int) -> int:
    return g.op(SLICE, [x, g.const(np.zeros(2, np.int32)), g.const(np.array(ROW, np.int32))], NoOptions())


def exp(g: Graph, x: int) -> int:
    return g.op(unary.EXP, [x], NoOptions())


def marked(g: Graph, *outputs: int, owned: tuple[int, ...] = ()) -> list[bool]:
    """Of every update, whether it writes in place."""
    graph = after([in_place], g, *outputs, owned=owned)
    assert not any(node.in_place for node in graph.nodes if node.node.op is not DYNAMIC_UPDATE_SLICE)
    return [node.in_place for node in graph.nodes if node.node.op is DYNAMIC_UPDATE_SLICE]


@pytest.mark.parametrize("type_", [TensorType.FLOAT32, TensorType.INT32, TensorType.INT8], ids=lambda t: t.name)
def test_one_after_another(type_: TensorType) -> None:
    """The first update copies, since others may read its operand; later ones update a tensor that only they read."""
    g = Graph()
    x = g.input(SHAPE, type_)
    y = update(g, update(g, update(g, x)))
    assert marked(g, y) == [False, True, True]
    assert marked(g, y, owned=(x,)) == [True, True, True]


def test_read_before() -> None:
    """Readers that run before the update don't prevent it; the written row may even depend on the old value."""
    g = Graph()
    first = update(g, g.input(SHAPE))
    assert marked(g, update(g, first, exp(g, row_of(g, first)))) == [False, True]


def read_later(g: Graph, x: int) -> list[int]:
    return [update(g, x), row_of(g, x)]


def read_as_it_is(g: Graph, x: int) -> list[int]:
    """Its result could lie where the tensor does, or be computed only when another node runs."""
    return [exp(g, x), update(g, x)]


def updated_twice(g: Graph, x: int) -> list[int]:
    return [update(g, x), update(g, x)]


def written_into_itself(g: Graph, x: int) -> list[int]:
    return [g.op(DYNAMIC_UPDATE_SLICE, [x, x, g.const(np.zeros(2, np.int32))], NoOptions())]


_KEPT: dict[str, Callable[[Graph, int], list[int]]] = {
    "read later": read_later,
    "read as a whole": read_as_it_is,
    "updated twice": updated_twice,
    "written into itself": written_into_itself,
    "a result": lambda g, x: [update(g, x), x],
}


@pytest.mark.parametrize("build", _KEPT.values(), ids=_KEPT)
def test_needed_as_it_was(build: Callable[[Graph, int], list[int]]) -> None:
    g = Graph()
    first = update(g, g.input(SHAPE))
    assert not any(marked(g, *build(g, first)))


def test_a_constant() -> None:
    """A value computed at preparation must stay the same in every run."""
    g = Graph()
    x = g.const(np.zeros(SHAPE, np.float32))
    folded = update(g, x, g.const(np.ones(ROW, np.float32)))
    y = update(g, folded)
    data = np.eye(*SHAPE, dtype=np.float32)
    g.tensors[folded] = replace(g.tensors[folded], data=data)
    assert marked(g, y) == [False]
