"""Element-wise kernels as on a GPU, on whatever device there is: vectors that are aligned or not, and cross rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops import binary
from litecl.interpreter.ops.cast import CAST, CastOptions
from litecl.interpreter.ops.select import SELECT_V2
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.unary import ABS
from litecl.interpreter.schema import TensorType
from support import devices
from support.build import Graph
from support.gpu_nets import Net, check

Shape = tuple[int, ...]
_TYPES = tuple(TensorType[name] for name in ("FLOAT32", "INT8", "INT16", "INT32", "INT64"))
_NUMBERS = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64)
# One row; rows shorter than a vector, as long as one, and longer, of which vectors cross several and at several depths.
_SHAPES: Sequence[tuple[Shape, Shape]] = (
    ((131,), (131,)),
    ((64, 16), (16,)),
    ((50, 3), (50, 1)),
    ((2, 3, 4, 7), (2, 1, 4, 1)),
    ((3, 1, 5, 1), (1, 7, 5, 3)),
    ((2, 3, 2, 1, 2), (2, 1, 2, 3, 1)),
)
_shapes = pytest.mark.parametrize(("left", "right"), _SHAPES)


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Options of delegates for a GPU."""
    with pytest.MonkeyPatch.context() as patch:
        yield devices.as_on_a_gpu(patch, tmp_path_factory.mktemp("programs"))


@dataclass(frozen=True)
class _Feeds:
    """Arrays of small whole numbers, which every type holds and none rounds."""

    graph: Graph
    arrays: list[Array]

    def __call__(self, shape: Shape, type_: TensorType) -> int:
        rng = np.random.default_rng(len(self.arrays))
        self.arrays.append(rng.integers(-9, 10, shape).astype(type_.dtype))
        return self.graph.input(shape, type_)


def _check(feeds: _Feeds, y: int, expected: Array, kernel: str, options: dict[str, Any]) -> None:
    check(Net(feeds.graph, y, feeds.arrays, expected, kernel, exact=True), options)


@_shapes
@pytest.mark.parametrize("type_", _NUMBERS)
def test_broadcast(left: Shape, right: Shape, type_: TensorType, options: dict[str, Any]) -> None:
    """A work-item finds its elements wherever a row ends within its vector."""
    feeds = _Feeds(Graph(), [])
    y = feeds.graph.op(binary.SUB, [feeds(left, type_), feeds(right, type_)], binary.SubOptions())
    _check(feeds, y, feeds.arrays[0] - feeds.arrays[1], "binary", options)


@_shapes
def test_chain(left: Shape, right: Shape, options: dict[str, Any]) -> None:
    """Each operand of a chain is read from its own place."""
    feeds = _Feeds(Graph(), [])
    shape = np.broadcast_shapes(left, right)
    y = feeds(shape, TensorType.FLOAT32)
    functions: list[Op] = [binary.SUB, binary.MUL, binary.ADD, binary.SUB]
    for function, other in zip(functions, (left, right, shape, right), strict=True):
        y = feeds.graph.op(function, [y, feeds(other, TensorType.FLOAT32)], function.options())
    x, a, b, c, d = feeds.arrays
    _check(feeds, y, (x - a) * b + c - d, "chain", options)


@_shapes
@pytest.mark.parametrize("type_", [TensorType.INT8, TensorType.FLOAT32])
def test_select(left: Shape, right: Shape, type_: TensorType, options: dict[str, Any]) -> None:
    """Three arrays are walked together."""
    feeds = _Feeds(Graph(), [])
    condition = feeds(left, TensorType.BOOL)
    feeds.arrays[0] = np.random.default_rng(7).integers(0, 2, left).astype(bool)
    y = feeds.graph.op(SELECT_V2, [condition, feeds(right, type_), feeds(left, type_)], NoOptions())
    _check(feeds, y, np.where(*feeds.arrays), "select", options)


@pytest.mark.parametrize("type_", _TYPES)
@pytest.mark.parametrize(("begin", "size"), [((0, 0), (9, 12)), ((1, 1), (7, 5)), ((0, 3), (9, 8)), ((2, 0), (1, 15))])
def test_copy(begin: Shape, size: Shape, type_: TensorType, options: dict[str, Any]) -> None:
    """A row may begin at any element."""
    feeds = _Feeds(Graph(), [])
    x = feeds((9, 15), type_)
    y = feeds.graph.op(SLICE, [x, *(feeds.graph.const(np.array(n, np.int32)) for n in (begin, size))], NoOptions())
    box = tuple(slice(at, at + n) for at, n in zip(begin, size, strict=True))
    _check(feeds, y, feeds.arrays[0][box], "copy", options)


@pytest.mark.parametrize("count", [1, 4, 131])
@pytest.mark.parametrize("to", _TYPES)
@pytest.mark.parametrize("from_", _TYPES)
def test_cast(from_: TensorType, to: TensorType, count: int, options: dict[str, Any]) -> None:
    """All vectors of both types are whole except the last."""
    if from_ == to:
        return
    feeds = _Feeds(Graph(), [])
    y = feeds.graph.op(CAST, [feeds((count,), from_)], CastOptions(from_, to))
    _check(feeds, y, feeds.arrays[0].astype(to.dtype), "cast", options)


@pytest.mark.parametrize("count", [3, 4, 131])
@pytest.mark.parametrize("type_", [TensorType.FLOAT32, TensorType.INT32])
def test_unary(count: int, type_: TensorType, options: dict[str, Any]) -> None:
    feeds = _Feeds(Graph(), [])
    y = feeds.graph.op(ABS, [feeds((count,), type_)], NoOptions())
    _check(feeds, y, np.abs(feeds.arrays[0]), "unary", options)
