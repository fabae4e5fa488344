"""Joins and cuts without copies: what CONCATENATION, PACK and RESHAPE join is computed in its place, what SPLIT, UNPACK
and slices cut is read where it is. Against LiteRT's reference kernels; launches tell that nothing was copied."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.pack import PACK, UNPACK, PackOptions, UnpackOptions
from litecl.interpreter.ops.pad import PAD
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D, MAX_POOL_2D, Pool2DOptions
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.transpose_conv import TRANSPOSE_CONV, TransposeConvOptions
from litecl.interpreter.ops.unary import ABS, EXP, LOGISTIC, NEG
from litecl.interpreter.schema import ActivationFunctionType, Padding
from support import devices
from support.build import Graph, model, randn
from support.joins import agrees, conv, cut, integers, joined, pooled, reshaped, scaled

RNG = np.random.default_rng(8)
RELU = ActivationFunctionType.RELU

in_every_mode = pytest.mark.parametrize(
    "mode",
    [{}, {"num_threads": 1}, {"queue_loops": True}, {"device": devices.tested()[0]}],
    ids=["several workers", "one worker", "queued", "OpenCL"],
)


def dense_block(g: Graph) -> list[int]:
    """Every layer reads all before it: concatenations within concatenations, whose parts are rows of the last."""
    x = pooled(g, MAX_POOL_2D, conv(g, g.input((2, 12, 10, 3)), 64, 3))
    for size in (3, 1, 3):
        x = joined(g, x, conv(g, conv(g, scaled(g, x), 48), 32, size))
    return [conv(g, scaled(g, x), 40)]


def branches(g: Graph) -> list[int]:
    """Return branches like Inception's; the last one ends in a concatenation."""
    x = g.input((1, 9, 11, 16))
    inner = conv(g, x, 24)
    split = joined(g, conv(g, inner, 32, 3), conv(g, inner, 64, 1))
    return [
        joined(
            g, conv(g, x, 32), split, conv(g, pooled(g, AVERAGE_POOL_2D, x, 3, 1), 64), pooled(g, MAX_POOL_2D, x, 3, 1)
        )
    ]


def skip(g: Graph) -> list[int]:
    """Return a skip connection, which a pool reads too, joined with a transposed convolution's result."""
    x = conv(g, g.input((1, 12, 16, 5)), 32, 3)
    deep = conv(g, pooled(g, MAX_POOL_2D, x), 40, 3)
    options = TransposeConvOptions(padding=Padding.SAME, stride_w=2, stride_h=2)
    shape, weights = g.const(integers(1, 12, 16, 32)), g.const(randn(RNG, 32, 3, 3, 40, scale=0.1))
    return [conv(g, joined(g, x, g.op(TRANSPOSE_CONV, [shape, weights, deep], options)), 3)]


def heads(g: Graph) -> list[int]:
    """Detection heads: reshaped, then one after the other."""
    x = g.input((1, 8, 8, 6))
    y = conv(g, x, 12, 3, 2)
    parts = [reshaped(g, conv(g, t, 8, 3), 1, -1, 4) for t in (x, y)]
    return [g.op(LOGISTIC, [joined(g, *parts, axis=1)], NoOptions())]


def packed(g: Graph) -> list[int]:
    """Rows computed apart, packed, and unpacked again."""
    x = g.input((4, 64))
    shape = g.tensors[x].static_shape
    specs = UNPACK.infer(UnpackOptions(4, 0), [g.tensors[x]])
    rows = g.node(UNPACK, [x], specs, UnpackOptions(4, 0))
    whole = g.op(PACK, [g.op(NEG, [row], NoOptions()) for row in rows], PackOptions(4, 0))
    assert g.tensors[whole].static_shape == shape
    return [g.op(EXP, [whole], NoOptions())]


def gates(g: Graph) -> list[int]:
    """An LSTM cell written out: gates of one product, cut where a row is all there is."""
    x = g.input((1, 24))
    weights = g.const(randn(RNG, 256, 24, scale=0.2))
    i, f, c, o = cut(g, g.op(FULLY_CONNECTED, [x, weights, None], FullyConnectedOptions()), 1, 4)
    old = g.input((1, 64))
    kept = g.op(MUL, [g.op(LOGISTIC, [f], NoOptions()), old], MulOptions())
    new = g.op(ADD, [kept, g.op(MUL, [g.op(LOGISTIC, [i], NoOptions()), c], MulOptions())], AddOptions())
    return [g.op(MUL, [g.op(LOGISTIC, [o], NoOptions()), new], MulOptions()), new]


def streamed(g: Graph) -> list[int]:
    """A delay line: the frames of before without the first, then the new one, all of it an output too."""
    old, x = g.input((1, 3, 1, 32)), g.input((1, 1, 1, 32))
    frames = joined(g, old, conv(g, x, 32), axis=1)
    begin, size = g.const(integers(0, 1, 0, 0)), g.const(integers(1, 3, 1, 32))
    return [g.op(SLICE, [frames, begin, size], NoOptions()), conv(g, frames, 8)]


def read_in_rows(g: Graph) -> list[int]:
    """A part that a chain, a function in one, and a pool of the padded image read where it lies."""
    x = g.input((1, 6, 6, 8))
    a = conv(g, x, 32)
    around = g.op(PAD, [a, g.const(np.array([(0, 0), (1, 2), (2, 1), (0, 0)], np.int32))], NoOptions())
    options = Pool2DOptions(Padding.VALID, 2, 2, 3, 3)
    return [
        joined(g, conv(g, x, 64), a),
        g.op(ABS, [g.op(EXP, [a], NoOptions())], NoOptions()),
        g.op(ADD, [g.op(NEG, [g.input((1, 6, 6, 32))], NoOptions()), a], AddOptions()),
        g.op(AVERAGE_POOL_2D, [around], options),
        g.op(MAX_POOL_2D, [g.op(PAD, [a, g.nodes[1].inputs[1]], NoOptions())], options),
    ]


# What each computes, and the launches that it takes: no copy among them unless said.
_WITHOUT_COPIES: dict[str, tuple[Callable[[Graph], list[int]], int]] = {
    "a dense block": (dense_block, 2 + 3 * 3 + 2),
    "branches": (branches, 7),
    "a skip connection": (skip, 4 + 4),
    "heads": (heads, 4),
    "packed and unpacked": (packed, 5),
    "gates": (gates, 1 + 1),
    "parts that are read": (read_in_rows, 2 + 4),
    "a delay line": (streamed, 2 + 1),  # what leaves the region is copied
}


@pytest.mark.parametrize(("build", "launches"), _WITHOUT_COPIES.values(), ids=_WITHOUT_COPIES)
@in_every_mode
def test_without_copies(build: Callable[[Graph], list[int]], launches: int, mode: dict[str, Any]) -> None:
    """The result is right, and takes the launches of what computes alone."""
    g = Graph()
    interpreter = agrees(model(g.build(*build(g))), **mode)
    (partition,) = interpreter.delegation_report().partitions
    assert partition.launches == launches


def twice(g: Graph) -> list[int]:
    """One part in two concatenations, twice in one of them."""
    a, b = (conv(g, g.input((1, 4, 4, 3)), channels) for channels in (32, 32))
    return [joined(g, a, b, a), joined(g, b, a), joined(g, a, b, axis=1)]


def residual(g: Graph) -> list[int]:
    """Parts that end in a residual, and that are one."""
    x = conv(g, g.input((1, 6, 6, 4)), 32)
    y = g.op(ADD, [conv(g, x, 32, 3), x], AddOptions())
    z = g.op(ADD, [conv(g, y, 32, 3), y], AddOptions())
    return [conv(g, joined(g, x, y, z), 5)]


def odd_places(g: Graph) -> list[int]:
    """Parts that begin where no sub-buffer may, and odd channels."""
    x = g.input((1, 5, 7, 3))
    return [
        joined(g, conv(g, x, 5), pooled(g, MAX_POOL_2D, conv(g, x, 37, 3), 3, 1), conv(g, x, 64)),
        joined(g, conv(g, x, 32), conv(g, x, 7, 3)),
    ]


def odd_pools(g: Graph) -> list[int]:
    """Pools that read and write rows whose last vector is not whole."""
    x = conv(g, g.input((2, 6, 6, 3)), 35)
    pools = [pooled(g, op, x, 3, 1) for op in (MAX_POOL_2D, AVERAGE_POOL_2D)]
    return [
        joined(g, conv(g, x, 32), *pools),
        joined(g, pooled(g, MAX_POOL_2D, joined(g, x, x)), pooled(g, AVERAGE_POOL_2D, x)),
    ]


def kept(g: Graph) -> list[int]:
    """Parts that are outputs themselves, of rows and of whole images; and inputs that are parts."""
    x = g.input((2, 4, 4, 32))
    a, b = conv(g, x, 32), conv(g, x, 32, 3)
    return [a, joined(g, a, b), b, joined(g, b, x, a, axis=0), joined(g, x, x)]


def through(g: Graph) -> list[int]:
    """Cut and joined again in another order; cuts of cuts; a concatenation of one."""
    x = g.op(ABS, [g.input((4, 2, 64))], NoOptions())
    a, b, c, d = cut(g, x, 0, 4)
    left, right = cut(g, b, 2, 2)
    return [joined(g, d, b, axis=0), joined(g, right, left), joined(g, reshaped(g, c, 2, 64)), reshaped(g, a, 128)]


def overwritten(g: Graph) -> list[int]:
    """A slice of a tensor, into which another node then writes in place."""
    x, new = g.op(ABS, [g.input((4, 32))], NoOptions()), g.input((1, 32))
    first = g.op(DYNAMIC_UPDATE_SLICE, [x, new, g.const(integers(1, 0))], NoOptions())
    row = g.op(SLICE, [first, g.const(integers(2, 0)), g.const(integers(1, 32))], NoOptions())
    second = g.op(DYNAMIC_UPDATE_SLICE, [first, g.op(NEG, [row], NoOptions()), g.const(integers(2, 0))], NoOptions())
    return [g.op(ADD, [row, second], AddOptions())]


_DIFFICULT = (twice, residual, odd_places, odd_pools, kept, through, overwritten)


@pytest.mark.parametrize("build", _DIFFICULT, ids=lambda build: build.__name__)
@in_every_mode
def test_agrees(build: Callable[[Graph], list[int]], mode: dict[str, Any]) -> None:
    """Where not everything can lie in its place the result is right all the same."""
    g = Graph()
    agrees(model(g.build(*build(g))), **mode)


@devices.on_each
def test_on_every_device(device: Any) -> None:
    """Wherever a sub-buffer may begin."""
    for build in (dense_block, heads, gates, odd_places):
        g = Graph()
        agrees(model(g.build(*build(g))), device=device)
