"""Kernels of GPUs that share local memory, on whatever device there is: every tile, layout and edge against float64."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from litecl.delegate.gpu.properties import Gpu
from litecl.delegate.gpu.tiles import local_share
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops import reduce
from litecl.interpreter.ops.arg_max import ARG_MAX, ARG_MIN, ArgMaxOptions, ArgMinOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.log_softmax import LOG_SOFTMAX, LogSoftmaxOptions
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.ops.transpose import TRANSPOSE
from litecl.interpreter.schema import TensorType
from support import devices
from support.build import Graph, randn
from support.gpu_nets import Net, check
from support.gpu_products import PRODUCTS
from support.loop_models import FLOAT, INT, below, int32, next_, while_model
from support.loop_models import check as loop_check
from support.planned_gpu import PlannedGpu


@pytest.fixture(scope="module", params=devices.UNITS)
def options(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Options of delegates for a GPU whose products are cut into tiles of one kind."""
    with devices.in_tiles(request.param, tmp_path_factory.mktemp("programs")) as found:
        yield found


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str, options: dict[str, Any]) -> None:
    """Tiles, parts and dots are right to the last rows and columns."""
    check(PRODUCTS[name](), options)


@pytest.mark.parametrize("options", [devices.FEW_SUMS], indirect=True)
@pytest.mark.parametrize("name", ["edges", "weights that are computed", "3x3, stride 2", "depthwise before"])
def test_products_of_few_sums(name: str, options: dict[str, Any]) -> None:
    """Tiles are as large where work-items have fewer registers, and more of them share each."""
    check(PRODUCTS[name](), options)


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
@pytest.mark.parametrize("name", ["mean", "largest", "least"])
@pytest.mark.parametrize("shape", [(2, 40, 5), (1, 33, 130), (1, 5000, 3)])
def test_columns(name: str, shape: tuple[int, int, int], options: dict[str, Any]) -> None:
    """A group takes some columns, without those beyond the last; long columns are split."""
    op, own, _ = _ROWS[name]
    x = np.random.default_rng(shape[2]).integers(-9, 9, shape).astype(np.float32)
    function = {"mean": np.mean, "largest": np.max, "least": np.min}[name]
    g = Graph()
    y = g.op(op, [g.input(x.shape), g.const(np.array([1], np.int32))], own)
    check(Net(g, y, [x], function(x.astype(np.float64), axis=1), "reduce_columns_local"), options)


@_once
@pytest.mark.parametrize("first", [np.nan, 1.0])
def test_places_beside_nan(first: float, options: dict[str, Any]) -> None:
    """NaN is passed over wherever it is."""
    x = np.random.default_rng(1).standard_normal((2, 300)).astype(np.float32)
    x[:, [0, 7, 260]] = first, np.nan, np.nan
    g = Graph()
    y = g.op(ARG_MAX, [g.input(x.shape), g.const(np.array(1, np.int32))], ArgMaxOptions(TensorType.INT32))
    check(Net(g, y, [x], np.nanargmax(x, 1), "place_local"), options)


@_once
@pytest.mark.parametrize("type_", [np.float32, np.int8, np.int16, np.int64])
@pytest.mark.parametrize(
    ("shape", "permutation"),
    [((16, 17), (1, 0)), ((100, 33), (1, 0)), ((3, 64, 32), (0, 2, 1)), ((2, 40, 3, 31), (2, 0, 3, 1))],
)
def test_swapped_dimensions(
    shape: tuple[int, ...], permutation: tuple[int, ...], type_: Any, options: dict[str, Any]
) -> None:
    """A group takes each tile, also the incomplete ones at the edges, with other dimensions around the two."""
    x = np.random.default_rng(4).integers(-100, 100, shape).astype(type_)
    g = Graph()
    tensor_type = next(each for each in TensorType if each.name == np.dtype(type_).name.upper())
    y = g.op(TRANSPOSE, [g.input(shape, tensor_type), g.const(np.array(permutation, np.int32))], NoOptions())
    check(Net(g, y, [x], x.transpose(permutation), "transpose_local"), options)


@pytest.mark.nightly
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
    target = replace(PlannedGpu("nvidia").target(), compute_units=100)
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
