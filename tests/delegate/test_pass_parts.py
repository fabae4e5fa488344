"""The pass that makes a slice of a concatenation the part that it is."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.gpu.pipeline import GPU_PASSES
from litecl.delegate.plan.pipeline import PASSES
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.schema import TensorType as T
from support import oracle
from support.build import Graph, model
from support.loop_models import outputs, prepared
from support.regions import after, names


class Joined:
    """Three parts of a tensor along an axis, the result of a node each."""

    def __init__(self, *shapes: tuple[int, ...], axis: int = -1, type_: T = T.INT32) -> None:
        self.graph = Graph()
        given = [self.graph.input(shape, type_) for shape in shapes]
        self.parts = [self.graph.op(ADD, [x, x], AddOptions()) for x in given]
        self.whole = self.graph.op(CONCATENATION, self.parts, ConcatenationOptions(axis))

    def sliced(self, x: int, begin: tuple[int, ...], size: tuple[int, ...]) -> int:
        edges = (self.graph.const(np.array(edge, np.int32)) for edge in (begin, size))
        part = self.graph.op(SLICE, [x, *edges], NoOptions())
        return self.graph.op(ADD, [part, part], AddOptions())

    def reshaped(self, x: int, *shape: int) -> int:
        return self.graph.op(RESHAPE, [x, self.graph.const(np.array(shape, np.int32))], ReshapeOptions(shape))


def _one(*, type_: T = T.INT32) -> tuple[Joined, int]:
    j = Joined((1, 1, 3), (1, 1, 1), (1, 1, 3), type_=type_)
    return j, j.sliced(j.whole, (0, 0, 3), (1, 1, 1))


def _of_rows() -> tuple[Joined, int]:
    j = Joined((1, 2, 3), (1, 4, 3), (1, 1, 3), axis=1)
    return j, j.sliced(j.whole, (0, 2, 0), (1, 4, 3))


def _in_another_shape() -> tuple[Joined, int]:
    j = Joined((1, 2), (1, 4), (1, 6))
    return j, j.sliced(j.reshaped(j.reshaped(j.whole, 12), 3, 4), (0, 0), (1, 4))


def _last() -> tuple[Joined, int]:
    j = Joined((1, 2), (1, 4), (1, 6))
    return j, j.sliced(j.reshaped(j.whole, 6, 2), (3, 0), (3, 2))


_PARTS = {"one": _one, "of rows": _of_rows, "last, in another shape": _last, "wide": lambda: _one(type_=T.INT64)}


def _some() -> tuple[Joined, int]:
    j = Joined((1, 2), (1, 4), (1, 6))
    return j, j.sliced(j.whole, (0, 2), (1, 3))


def _over_an_edge() -> tuple[Joined, int]:
    j = Joined((1, 2), (1, 4), (1, 6))
    return j, j.sliced(j.whole, (0, 1), (1, 4))


def _columns() -> tuple[Joined, int]:
    j = Joined((2, 2), (2, 4), (2, 6))
    return j, j.sliced(j.whole, (0, 2), (2, 4))


def _not_side_by_side() -> tuple[Joined, int]:
    j = Joined((1, 2), (1, 4), (1, 6))
    return j, j.sliced(j.reshaped(j.whole, 3, 4), (0, 0), (2, 2))


_WHOLES = {
    "some of a part": _some,
    "of two parts": _over_an_edge,
    "columns": _columns,
    "not side by side": _not_side_by_side,
    "another start": _in_another_shape,
    "floats": lambda: _one(type_=T.FLOAT32),
}


def check(j: Joined, y: int) -> None:
    built, rng = model(j.graph.build(y)), np.random.default_rng(5)
    feeds: list[Array] = [
        rng.integers(-9, 9, j.graph.tensors[t].static_shape).astype(j.graph.tensors[t].dtype) for t in j.graph.inputs
    ]
    (expected,) = oracle.run(write(built), feeds)
    np.testing.assert_array_equal(outputs(prepared(built, feeds, [CLDelegate(strict=True)]))[0], expected)


@pytest.mark.parametrize("passes", [PASSES, GPU_PASSES])
@pytest.mark.parametrize("name", _PARTS)
def test_a_part(name: str, passes: Any) -> None:
    """Neither the whole is made nor the other parts."""
    j, y = _PARTS[name]()
    assert names(after(passes, j.graph, y)) == ["ADD", "RESHAPE", "ADD"]
    check(j, y)


@pytest.mark.parametrize("name", _WHOLES)
def test_what_is_no_part(name: str) -> None:
    make: Callable[[], tuple[Joined, int]] = _WHOLES[name]
    j, y = make()
    assert "SLICE" in names(after(PASSES, j.graph, y))
    check(j, y)


def test_a_whole_that_something_else_reads() -> None:
    j, y = _one()
    assert names(after(PASSES, j.graph, y, j.whole)) == ["ADD", "ADD", "ADD", "CONCATENATION", "RESHAPE", "ADD"]
