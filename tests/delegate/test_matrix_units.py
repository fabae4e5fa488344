"""Products by matrix units, emulated on whatever device there is: each maker's layout, every tile, edge and fusion.

Most numbers are halves whose products and sums are exact in float32, so that nothing may differ.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.backend.absent import AbsentDevice
from litecl.delegate.cpu.target import CpuTarget
from litecl.delegate.gpu.profiles import PROFILES
from litecl.delegate.gpu.properties import MATRIX_UNITS, Gpu
from litecl.delegate.gpu.tiles import local_share
from litecl.delegate.opencl.devices import device
from litecl.delegate.plan.gpu.estimate import launch_rows
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.unidirectional_sequence_lstm import (
    UNIDIRECTIONAL_SEQUENCE_LSTM,
    UnidirectionalSequenceLSTMOptions,
)
from litecl.interpreter.schema import ActivationFunctionType
from support import devices, networks
from support.build import Graph, model, randn
from support.gpu_nets import Net, check
from support.gpu_products import PRODUCTS, dense, eighths
from support.loop_models import FLOAT, INT, below, int32, next_, while_model
from support.loop_models import check as loop_check

_TILES = [name for name in PRODUCTS if "row" not in name or name == "rows"]
_FEW = ("edges", "3x3, stride 2", "depthwise before", "batch", "batch, transposed")
_OTHERS = [(name, "parts") for name in MATRIX_UNITS if name != "mma"] + [("mma", "large tiles"), ("mma", "small tiles")]
_LOSS = 2e-3  # of the largest result: a half has 11 bits, and errors of many products average out
_FP16 = {"precision": "fp16"}


@pytest.fixture(scope="module", params=[("mma", "parts")], ids=" ".join)
def options(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Options of delegates for a GPU with one maker's unit, whose products are cut into tiles of one kind."""
    unit, kind = request.param
    with devices.in_tiles(kind, tmp_path_factory.mktemp("programs"), unit) as found:
        yield found | _FP16


_once = pytest.mark.parametrize("options", [("mma", "small tiles")], indirect=True, ids=" ".join)


@pytest.mark.parametrize("name", _TILES)
def test_products(name: str, options: dict[str, Any]) -> None:
    """All that plain tiles do, these do too."""
    check(replace(PRODUCTS[name](draw=eighths), kernel="product_matrix", exact=True), options)


@pytest.mark.parametrize("options", _OTHERS, indirect=True, ids=" ".join)
@pytest.mark.parametrize("name", _FEW)
def test_products_by_others(name: str, options: dict[str, Any]) -> None:
    """The layouts of AMD's and Intel's units, and other tiles."""
    check(replace(PRODUCTS[name](draw=eighths), kernel="product_matrix", exact=True), options)


@pytest.mark.parametrize("options", [(unit, "large tiles") for unit in MATRIX_UNITS], indirect=True, ids=" ".join)
def test_the_largest_tiles(options: dict[str, Any]) -> None:
    """Several of them, not filled in either direction."""
    check(replace(dense(300, 140, 100, draw=eighths), kernel="product_matrix", exact=True), options)


def product(x: Array, w: Array, expected: Array, kernel: str = "product_matrix") -> Net:
    """A plain product of [rows, depth] and constant weights [columns, depth]."""
    g = Graph()
    y = g.op(FULLY_CONNECTED, [g.input(x.shape), g.const(w), None], FullyConnectedOptions())
    return Net(g, y, [x], expected, kernel)


def run(net: Net, options: dict[str, Any]) -> tuple[Array, Interpreter]:
    """Return what a net makes of its feed."""
    interpreter = Interpreter(model(net.graph.build(net.output)), delegates=[CLDelegate(**options)])
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], net.feeds[0])
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), interpreter


def in_halves(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return x.astype(np.float16).astype(np.float64)


@_once
@pytest.mark.parametrize("size", [1.0, 1e-9, 1e9])
def test_operands_are_rounded_to_halves_and_nothing_else_is(size: float, options: dict[str, Any]) -> None:
    """Sums are in float32. Weights of any size keep their digits."""
    rng = np.random.default_rng(3)
    x, w = randn(rng, 40, 1000), randn(rng, 36, 1000)
    scaled = w * np.float32(2.0 ** np.round(np.log2(size)))
    net = product(x, scaled, in_halves(x) @ in_halves(w).T * (scaled[0, 0] / w[0, 0]))
    got, _ = run(net, options)
    largest = np.abs(net.expected).max()
    np.testing.assert_allclose(got, net.expected, rtol=1e-5, atol=2e-6 * largest)
    exact = x.astype(np.float64) @ scaled.T.astype(np.float64)
    np.testing.assert_allclose(got, exact, rtol=0, atol=_LOSS * largest)
    assert np.abs(got - exact).max() > 2e-6 * largest


@_once
def test_numbers_beyond_halves(options: dict[str, Any]) -> None:
    """What is too large for a half is infinite, what is too small is 0; each in its own row only."""
    x = np.ones((9, 24), np.float32)
    x[1:8, 5] = 65504, 65519, 65520, -1e30, np.inf, np.nan, 1e-9
    w = np.full((20, 24), 0.5, np.float32)
    w[3, 5] = 0
    with np.errstate(invalid="ignore"):
        expected = in_halves(x) @ w.T.astype(np.float64)
    assert np.isinf(expected[3, 0]) and np.isnan(expected[3, 3])
    got, _ = run(product(x, w, expected), options)
    np.testing.assert_array_equal(got, expected.astype(np.float32))


@_once
@pytest.mark.parametrize("number", [np.inf, np.nan])
def test_weights_that_are_no_numbers_stay_floats(number: float, options: dict[str, Any]) -> None:
    """They have no scale; in their own column only."""
    x, w = np.ones((20, 24), np.float32), np.ones((20, 24), np.float32)
    w[3, 5] = number
    got, interpreter = run(product(x, w, np.zeros(0)), options)
    np.testing.assert_array_equal(got, x @ w.T)
    assert interpreter.delegation_report().partitions[0].kernels == ("product_local",)


@_once
def test_floats_never_meet_them(options: dict[str, Any]) -> None:
    """With precision="fp32", and for few rows: the same numbers to the last bit as without such units."""
    rng = np.random.default_rng(3)
    net = product(randn(rng, 40, 64), randn(rng, 36, 64), np.zeros(0))
    got, interpreter = run(net, options | {"precision": "fp32"})
    report = interpreter.delegation_report()
    assert report.partitions[0].kernels == ("product_local",)
    assert report.halves == ""
    np.testing.assert_allclose(got, net.feeds[0] @ net.graph.tensors[1].data.T, rtol=1e-4, atol=1e-4)
    check(replace(PRODUCTS["one row"](), kernel="matvec"), options)


def test_floats_and_cpus_have_none() -> None:
    target = AbsentDevice("sm_90").target()
    assert replace(target, half_weights=True).unit is MATRIX_UNITS["mma"]
    assert target.unit is None
    assert not hasattr(CpuTarget(16, 1, half_weights=True), "unit")


@_once
def test_the_report_says_so(options: dict[str, Any]) -> None:
    """What multiplies halves, or why nothing does."""
    net = product(np.ones((40, 64), np.float32), np.ones((36, 64), np.float32), np.zeros(0))
    report = run(net, options)[1].delegation_report()
    assert report.partitions[0].kernels == ("product_local:product_matrix",)
    assert "fp16: matrix units (mma) multiply halves, with float32 sums" in str(report)
    with pytest.MonkeyPatch.context() as patch:
        target, gpu = device.target_of, Gpu("nvidia", without_matrix="3 of 128 sums are wrong")
        patch.setattr(device, "target_of", lambda *args: replace(target(*args), gpu=gpu))
        report = run(net, options | {"cache_dir": None})[1].delegation_report()
    assert report.partitions[0].kernels == ("product_local",)
    assert "arithmetic is in float32, as matrix units fail: 3 of 128 sums are wrong" in report.halves


@_once
def test_what_an_lstm_is_fed(options: dict[str, Any]) -> None:
    """Its product with the inputs of all steps, of halves whose sums are exact; its own product stays in floats."""
    rng = np.random.default_rng(7)
    steps, batch, depth, units = 9, 2, 36, 12
    g, x = Graph(), eighths(rng, steps, batch, depth)
    weights = [eighths(rng, units, depth) for _ in range(4)] + [randn(rng, units, units, scale=0.3) for _ in range(4)]
    zero = g.const(np.zeros(units, np.float32))
    given = [g.input(x.shape), *map(g.const, weights), None, None, None, zero, zero, zero, zero, None, None]
    states = [g.variable((batch, units)), g.variable((batch, units))]
    chosen = UnidirectionalSequenceLSTMOptions(ActivationFunctionType.TANH, time_major=True)
    net = Net(g, g.op(UNIDIRECTIONAL_SEQUENCE_LSTM, [*given, *states], chosen), [x], np.zeros(0))
    got, interpreter = run(net, options)
    expected, _ = run(net, options | {"precision": "fp32"})
    np.testing.assert_array_equal(got, expected)
    kernels = interpreter.delegation_report().partitions[0].kernels
    assert kernels == ("product_local:product_matrix", "lstm_local")


@_once
def test_in_a_loop(options: dict[str, Any]) -> None:
    """Under a flag of a queued loop, where the kernel is a function of another."""
    shuffle = np.eye(64, dtype=np.float32)[np.random.default_rng(5).permutation(64)]

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        return [next_(g, x[0]), g.op(FULLY_CONNECTED, [x[1], g.const(shuffle), None], FullyConnectedOptions())]

    x = eighths(np.random.default_rng(6), 40, 64)
    looped = while_model([((), INT), (x.shape, FLOAT)], below(3), body)
    prepared = loop_check(looped, [int32(0), x], [int32(3), x @ np.linalg.matrix_power(shuffle.T, 3)], **options)
    assert "product_local:product_matrix" in prepared.delegation_report().partitions[0].kernels


@pytest.mark.parametrize("name", PROFILES)
def test_tiles_fit(name: str) -> None:
    """Every tile is cut into whole products of the unit, and what a group needs is there."""
    target, unit = AbsentDevice(name).target(), PROFILES[name].gpu.matrix
    for size in ((4096, 4096), (64, 64), (5, 3)):
        share = local_share(target, 1, *size, 512, unit)
        assert share is not None and share.tile.unit is unit
        assert share.tile.local.size_bytes <= 32 << 10
        if unit is not None:
            tile = share.tile
            part = tile.rows * tile.across * unit.lanes // tile.items, tile.columns // tile.across
            assert (part[0] % unit.rows, part[1] % unit.columns) == (0, 0)


def launches(content: bytes, precision: str) -> Sequence[Any]:
    found = AbsentDevice("sm_90")
    Interpreter(
        model_content=content, delegates=[CLDelegate(found, strict=True, precision=precision)]
    ).allocate_tensors()
    return launch_rows(found.plans, found.profile)


def test_a_network_by_matrix_units() -> None:
    """Convolutions have the matrix units' peak; as few launches as of floats, which keep an H100 as busy."""
    content = networks.resnet_50()
    floats, halves = (launches(content, precision) for precision in ("fp32", "fp16"))
    assert not any(row.matrix for row in floats)
    by_units = [row for row in halves if row.matrix]
    assert {row.entry for row in by_units} == {"product_matrix"}
    assert sum(row.flops for row in by_units) > 0.9 * sum(row.flops for row in halves)
    assert len(halves) == len(floats)
    assert all(2 * row.groups >= PROFILES["sm_90"].compute_units for row in halves if row.flops > 1e6)
    assert all(row.roofline_us >= row.flops / PROFILES["sm_90"].matrix_tflops / 1e6 for row in by_units)
