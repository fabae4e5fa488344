"""Models with open dimensions, made of two for fixed sizes, as a converter that knows only those writes them."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from litecl.converter.compact import compact
from litecl.converter.open_sizes import with_shapes
from litecl.converter.opened import opened
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.broadcast_to import BROADCAST_TO
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.fill import FILL
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.strided_slice import STRIDED_SLICE, StridedSliceOptions
from litecl.interpreter.ops.unary import TANH
from support import oracle
from support.build import Graph, model, randn
from support.quantize_models import run
from support.unrolled import Sizes, unrolled

_WEIGHTS = randn(np.random.default_rng(1), 6)


def _ints(g: Graph, *numbers: int) -> int:
    return g.const(np.array(numbers, np.int32))


def _reshaped(n: int) -> Model:
    """One size that follows from the others."""
    g = Graph()
    x = g.op(RESHAPE, [g.input((n, 6)), _ints(g, 2 * n, 3)], ReshapeOptions((2 * n, 3)))
    return model(g.build(g.op(TANH, [x], NoOptions())))


def _reshaped_twice(n: int) -> Model:
    """Two open sizes and one that follows from them."""
    g = Graph()
    x = g.input((n, n + 1, 6))
    return model(g.build(g.op(RESHAPE, [x, _ints(g, 3 * n, n + 1, 2)], ReshapeOptions((3 * n, n + 1, 2)))))


def _sliced(n: int) -> Model:
    """From the third on, to the end."""
    g = Graph()
    return model(g.build(g.op(SLICE, [g.input((n, 6)), _ints(g, 2, 1), _ints(g, n - 2, 3)], NoOptions())))


def _strided(n: int) -> Model:
    g = Graph()
    bounds = [_ints(g, 1, 0), _ints(g, n, 5), _ints(g, 2, 1)]
    return model(g.build(g.op(STRIDED_SLICE, [g.input((n, 6)), *bounds], StridedSliceOptions())))


def _broadcast(n: int) -> Model:
    """A constant with as many rows as the input has, all alike."""
    g = Graph()
    rows = g.const(np.tile(_WEIGHTS, (1, n, 1)))
    return model(g.build(g.op(MUL, [rows, g.op(TANH, [g.input((n, 6))], NoOptions())], MulOptions())))


def _filled(n: int) -> Model:
    """A row of zeros before the input, and a constant of its shape."""
    g = Graph()
    x = g.input((2, n))
    zeros = g.op(FILL, [_ints(g, 2, n), g.const(np.float32(0.5))], NoOptions())
    many = g.op(BROADCAST_TO, [g.const(_WEIGHTS[:2].reshape(2, 1)), _ints(g, 2, n)], NoOptions())
    joined = g.op(CONCATENATION, [x, zeros], ConcatenationOptions(axis=0))
    graph = g.build(joined, g.op(ADD, [x, many], AddOptions()))
    return model(replace(graph, nodes=tuple(replace(node, version=node.op.versions.start) for node in graph.nodes)))


_OPEN: tuple[Callable[[int], Model], ...] = (
    _reshaped,
    _reshaped_twice,
    _sliced,
    _strided,
    _broadcast,
    _filled,
    lambda n: unrolled("LSTM", Sizes(n)),
    lambda n: unrolled("GRU", Sizes(n), states=True, read=("sequence", "h")),
)


@pytest.mark.parametrize("make", _OPEN, ids=lambda make: make.__name__)
@pytest.mark.parametrize("size", [4, 5, 9])
def test_a_size_stays_open(make: Callable[[int], Model], size: int) -> None:
    """LiteRT and litecl compute at a third size what LiteRT computes with the model for it."""
    content, fixed = write(with_shapes(compact(opened(make(7), make(11))), 1)), make(size)
    graph, rng = fixed.subgraphs[0], np.random.default_rng(size)
    feeds = [randn(rng, *graph.tensors[t].static_shape) for t in graph.inputs]
    interpreter = Interpreter(content)
    for detail, feed in zip(interpreter.get_input_details(), feeds, strict=True):
        interpreter.resize_tensor_input(detail["index"], feed.shape, strict=True)
    expected = oracle.run(write(fixed), feeds)
    for got in (oracle.run(content, feeds), run(interpreter, feeds)):
        for a, b in zip(got, expected, strict=True):
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=0, atol=2e-6)


def _scaled(n: int) -> Model:
    """A mean over an open dimension, as a product with a number that is another for every size."""
    g = Graph()
    return model(g.build(g.op(MUL, [g.input((n, 6)), g.const(np.float32(1 / n))], MulOptions())))


def _rows(n: int) -> Model:
    """A table with a row for each of the input's."""
    g = Graph()
    return model(
        g.build(g.op(ADD, [g.input((n, 6)), g.const(np.arange(6 * n, dtype=np.float32).reshape(n, 6))], AddOptions()))
    )


def _first(n: int) -> Model:
    """All but the last, which SLICE cannot say."""
    g = Graph()
    return model(g.build(g.op(SLICE, [g.input((n, 6)), _ints(g, 0, 0), _ints(g, n - 1, 6)], NoOptions())))


def _grown(n: int) -> Model:
    """Rows that the constant makes of one."""
    g = Graph()
    x = g.op(SLICE, [g.input((n, 6)), _ints(g, 0, 0), _ints(g, 1, 6)], NoOptions())
    return model(g.build(g.op(ADD, [x, g.const(np.tile(_WEIGHTS, (n, 1)))], AddOptions())))


def _repeated(n: int) -> Model:
    """Another number of nodes for every size."""
    g = Graph()
    x = g.input((n, 6))
    for _ in range(n):
        x = g.op(TANH, [x], NoOptions())
    return model(g.build(x))


@pytest.mark.parametrize("make", [_scaled, _rows, _first, _grown, _repeated], ids=lambda make: make.__name__)
def test_what_depends_on_a_size_is_refused(make: Callable[[int], Model]) -> None:
    with pytest.raises(ConversionError, match="other sizes of an open dimension: give its size by input_shapes"):
        opened(make(7), make(11))
