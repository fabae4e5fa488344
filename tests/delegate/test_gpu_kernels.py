"""Kernels of GPUs that share local memory, on whatever device there is: every tile, layout and edge against float64."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from litecl.delegate.backend.absent import AbsentDevice
from litecl.delegate.gpu import Gpu
from litecl.delegate.kit.groups import local_share
from litecl.interpreter.graph import Array
from litecl.interpreter.op import Op
from litecl.interpreter.ops import binary, reduce
from litecl.interpreter.ops.arg_max import ARG_MAX, ARG_MIN, ArgMaxOptions, ArgMinOptions
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.log_softmax import LOG_SOFTMAX, LogSoftmaxOptions
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.schema import ActivationFunctionType, Padding, TensorType
from support import devices
from support.build import Graph, randn
from support.gpu_nets import Net, check, convolved
from support.loop_models import FLOAT, INT, below, int32, next_, while_model
from support.loop_models import check as loop_check

_RELU6 = ActivationFunctionType.RELU6


@pytest.fixture(scope="module", params=devices.UNITS)
def options(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Options of delegates for a GPU whose products are cut into tiles of one kind."""
    with devices.in_tiles(request.param, tmp_path_factory.mktemp("programs")) as found:
        yield found


def dense(rows: int, columns: int, depth: int, *, known: bool = True, kernel: str = "product_local") -> Net:
    """A product with a bias, an addend and RELU6 behind it."""
    rng = np.random.default_rng(rows + columns + depth)
    g = Graph()
    x, w, b, r = (randn(rng, *shape) for shape in ((rows, depth), (columns, depth), (columns,), (rows, columns)))
    inputs = [g.input(x.shape), g.const(w) if known else g.input(w.shape), g.const(b)]
    y = g.op(FULLY_CONNECTED, inputs, FullyConnectedOptions())
    y = g.op(binary.ADD, [y, g.input(r.shape)], binary.AddOptions(_RELU6))
    expected = np.clip(x.astype(np.float64) @ w.T.astype(np.float64) + b + r, 0, 6)
    return Net(g, y, [x, *([] if known else [w]), r], expected, kernel)


def conv(side: int, channels: int, columns: int, size: int, stride: int = 1, groups: int = 1, dilation: int = 1) -> Net:
    """A convolution of two images with borders."""
    rng = np.random.default_rng(channels + columns + size)
    g = Graph()
    x, w = randn(rng, 2, side, side + 1, channels), randn(rng, columns, size, size, channels // groups)
    options = Conv2DOptions(Padding.SAME, stride, stride, _RELU6, dilation, dilation)
    y = g.op(CONV_2D, [g.input(x.shape), g.const(w), g.const(randn(rng, columns))], options)
    bias = g.tensors[2].data
    assert bias is not None
    return Net(g, y, [x], np.clip(convolved(x, w, stride, groups, dilation) + bias, 0, 6))


def separable(side: int, channels: int, columns: int, size: int, stride: int = 1, dilation: int = 1) -> Net:
    """A depthwise convolution with a clamp, a 1x1 convolution of its result, and an addend."""
    rng = np.random.default_rng(channels + columns + size)
    g = Graph()
    x, w = randn(rng, 2, side, side + 1, channels), randn(rng, 1, size, size, channels)
    v, a, b = randn(rng, columns, 1, 1, channels), randn(rng, channels), randn(rng, columns)
    same = DepthwiseConv2DOptions(Padding.SAME, stride, stride, 1, _RELU6, dilation, dilation)
    y = g.op(DEPTHWISE_CONV_2D, [g.input(x.shape), g.const(w), g.const(a)], same)
    by_channel = np.moveaxis(w, 3, 0).reshape(channels, size, size, 1)
    middle = np.clip(convolved(x, by_channel, stride, channels, dilation) + a, 0, 6)
    y = g.op(CONV_2D, [y, g.const(v), g.const(b)], Conv2DOptions(Padding.SAME, 1, 1))
    r = randn(rng, *middle.shape[:3], columns)
    y = g.op(binary.ADD, [y, g.input(r.shape)], binary.AddOptions())
    return Net(g, y, [x, r], middle @ v.reshape(columns, channels).T.astype(np.float64) + b + r)


def matmul(x_batch: Sequence[int], y_batch: Sequence[int], sizes: Sequence[int], *, adj: bool, known: bool) -> Net:
    """A product of batches, one of which may be broadcast."""
    rows, columns, depth = sizes
    rng = np.random.default_rng(sum(sizes))
    g = Graph()
    x, y = randn(rng, *x_batch, rows, depth), randn(rng, *y_batch, *((columns, depth) if adj else (depth, columns)))
    inputs = [g.input(x.shape), g.const(y) if known else g.input(y.shape)]
    out = g.op(BATCH_MATMUL, inputs, BatchMatMulOptions(False, adj, False))
    expected = x.astype(np.float64) @ (y.swapaxes(-1, -2) if adj else y).astype(np.float64)
    return Net(g, out, [x, *([] if known else [y])], expected)


def joined() -> Net:
    """Two products side by side in rows that are not aligned."""
    rng = np.random.default_rng(4)
    g = Graph()
    x, w, v = randn(rng, 1, 9, 9, 8), randn(rng, 6, 1, 1, 8), randn(rng, 9, 1, 1, 8)
    into = g.input(x.shape)
    parts = [
        g.op(CONV_2D, [into, g.const(f), g.const(np.zeros(len(f), np.float32))], Conv2DOptions(Padding.SAME, 1, 1))
        for f in (w, v)
    ]
    expected = np.concatenate([x.astype(np.float64) @ f.reshape(len(f), 8).T for f in (w, v)], axis=-1)
    return Net(g, g.op(CONCATENATION, parts, ConcatenationOptions(3)), [x], expected)


_PRODUCTS: dict[str, Callable[[], Net]] = {
    "aligned": lambda: dense(64, 64, 256),
    "edges": lambda: dense(70, 66, 132),
    "few columns": lambda: dense(37, 3, 64),
    "one step": lambda: dense(65, 20, 4),
    "weights that are computed": lambda: dense(21, 35, 268, known=False),
    "3x3": lambda: conv(9, 8, 20, 3),
    "3x3, stride 2": lambda: conv(10, 12, 33, 3, stride=2),
    "5x5, dilated": lambda: conv(9, 4, 16, 5, dilation=2),
    "groups": lambda: conv(7, 24, 48, 3, groups=3),
    "1x1": lambda: conv(6, 64, 70, 1),
    "depthwise before": lambda: separable(9, 40, 36, 3),
    "depthwise before, stride 2": lambda: separable(10, 260, 20, 3, stride=2),
    "depthwise before, 5x5, dilated": lambda: separable(9, 8, 33, 5, dilation=2),
    "rows": joined,
    "batch": lambda: matmul((2, 3), (2, 3), (33, 36, 20), adj=False, known=False),
    "batch, transposed": lambda: matmul((2, 1), (3,), (10, 37, 64), adj=True, known=False),
    "batch, one for all": lambda: matmul((2, 3), (1, 1), (5, 40, 68), adj=False, known=False),
    "batch, known": lambda: matmul((2, 2), (2, 1), (17, 19, 40), adj=False, known=True),
    "one row": lambda: dense(1, 7, 68, kernel="matvec"),
    "four rows": lambda: dense(4, 34, 1028, kernel="matvec"),
    "two rows, computed weights": lambda: dense(2, 5, 256, known=False, kernel="matvec"),
}


@pytest.mark.parametrize("name", _PRODUCTS)
def test_products(name: str, options: dict[str, Any]) -> None:
    """Tiles, parts and dots are right to the last rows and columns."""
    check(_PRODUCTS[name](), options)


@pytest.mark.parametrize("options", [devices.FEW_SUMS], indirect=True)
@pytest.mark.parametrize("name", ["edges", "weights that are computed", "3x3, stride 2", "depthwise before"])
def test_products_of_few_sums(name: str, options: dict[str, Any]) -> None:
    """Tiles are as large where work-items have fewer registers, and more of them share each."""
    check(_PRODUCTS[name](), options)


@pytest.mark.parametrize("rows", [1, 40])
def test_halves(rows: int, options: dict[str, Any]) -> None:
    """Large weights are stored as halves, and become the same floats."""
    rng = np.random.default_rng(rows)
    g = Graph()
    x, w = randn(rng, rows, 1024), randn(rng, 260, 1024)
    y = g.op(FULLY_CONNECTED, [g.input(x.shape), g.const(w), None], FullyConnectedOptions())
    expected = x.astype(np.float64) @ w.astype(np.float16).astype(np.float64).T
    check(Net(g, y, [x], expected, "matvec" if rows == 1 else "product_local"), options | {"precision": "fp16"})


_ROWS: dict[str, tuple[Op, Any, Callable[[Array], Array]]] = {
    "softmax": (SOFTMAX, SoftmaxOptions(0.5), lambda x: np.exp(x / 2) / np.exp(x / 2).sum(1, keepdims=True)),
    "log softmax": (LOG_SOFTMAX, LogSoftmaxOptions(), lambda x: x - np.log(np.exp(x).sum(1, keepdims=True))),
    "mean": (reduce.MEAN, reduce.ReducerOptions(False), lambda x: x.mean(1)),
    "largest": (reduce.REDUCE_MAX, reduce.ReducerOptions(False), lambda x: x.max(1)),
    "least": (reduce.REDUCE_MIN, reduce.ReducerOptions(False), lambda x: x.min(1)),
    "place": (ARG_MAX, ArgMaxOptions(TensorType.INT32), lambda x: x.argmax(1)),
    "least place": (ARG_MIN, ArgMinOptions(TensorType.INT64), lambda x: x.argmin(1)),
}


_once = pytest.mark.parametrize("options", ["large tiles"], indirect=True)


@_once
@pytest.mark.parametrize("name", _ROWS)
@pytest.mark.parametrize("length", [33, 1001])
def test_rows(name: str, length: int, options: dict[str, Any]) -> None:
    """A group takes each row; numbers that are equal are there more than once."""
    op, own, function = _ROWS[name]
    x = np.random.default_rng(length).integers(-9, 9, (5, length)).astype(np.float32)
    g = Graph()
    axis = [] if "softmax" in name else [g.const(np.array([1], np.int32))]
    check(Net(g, g.op(op, [g.input(x.shape), *axis], own), [x], function(x.astype(np.float64)), "local"), options)


@_once
@pytest.mark.parametrize("first", [np.nan, 1.0])
def test_places_beside_nan(first: float, options: dict[str, Any]) -> None:
    """NaN hides what follows where it comes first, as in a loop over the elements, and nothing elsewhere."""
    x = np.random.default_rng(1).standard_normal((2, 300)).astype(np.float32)
    x[:, [0, 7, 260]] = first, np.nan, np.nan
    g = Graph()
    y = g.op(ARG_MAX, [g.input(x.shape), g.const(np.array(1, np.int32))], ArgMaxOptions(TensorType.INT32))
    check(Net(g, y, [x], np.zeros(2) if np.isnan(first) else np.nanargmax(x, 1), "place_local"), options)


@_once
def test_in_a_loop(options: dict[str, Any]) -> None:
    """Under a flag of a queued loop, where a kernel is a function of another, local memory is handed on."""
    weights = randn(np.random.default_rng(5), 64, 64, scale=0.3)

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        y = g.op(FULLY_CONNECTED, [x[1], g.const(weights), None], FullyConnectedOptions())
        return [next_(g, x[0]), g.op(SOFTMAX, [y], SoftmaxOptions(1.0))]

    x = randn(np.random.default_rng(6), 40, 64)
    expected = x.astype(np.float64)
    for _ in range(3):
        e = np.exp(expected @ weights.T.astype(np.float64))
        expected = e / e.sum(1, keepdims=True)
    looped = while_model([((), INT), (x.shape, FLOAT)], below(3), body)
    prepared = loop_check(looped, [int32(0), x], [int32(3), expected.astype(np.float32)], **options)
    assert {"product_local", "rows_local:softmax_local"} <= {*prepared.delegation_report().partitions[0].kernels}


def test_shares() -> None:
    """The largest tile that keeps two groups a unit busy; else the smallest, its depth shared out where that pays."""
    target = replace(AbsentDevice("sm_90").target(), compute_units=100)
    sizes = {(1024, 1024, 64): (64, 1), (640, 640, 64): (32, 1), (64, 64, 1024): (32, 16), (64, 64, 64): (16, 1)}
    # Of two steps each, as half the units would be idle otherwise; and smaller tiles, as they would be with these.
    sizes |= {(128, 128, 96): (16, 2), (160, 128, 96): (32, 3)}
    for size, wanted in sizes.items():
        share = local_share(target, 1, *size)
        assert share is not None
        assert (share.tile.rows, share.parts) == wanted, size
        assert (share.parts - 1) * share.part_depth < share.depth <= share.parts * share.part_depth
    few = local_share(replace(target, gpu=Gpu("intel", 8)), 1, 1024, 1024, 64)
    assert few is not None
    assert (few.tile.rows, few.tile.columns, few.tile.sums, few.tile.items) == (64, 64, 32, 128)
    assert local_share(replace(target, local_mem_bytes=1024), 1, 64, 64, 64) is None
    assert local_share(replace(target, max_work_group_size=32), 1, 64, 64, 64) is None
