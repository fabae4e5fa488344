"""Products in halves where no matrix unit is, emulated where a device has no halves: every tile, layout and edge.

What is exact in halves may not differ at all; else the result is what numpy makes of the same operands, rounded where
kernels round. A sum that a half cannot hold is computed in float32.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from litecl.cli.launches import launch_view
from litecl.delegate import CLDelegate
from litecl.delegate.backend import absent
from litecl.delegate.backend.absent import AbsentDevice
from litecl.delegate.gpu.profiles import PROFILES
from litecl.delegate.gpu.properties import Gpu, HalfUnit
from litecl.delegate.gpu.tiles import local_share, possible_shares
from litecl.delegate.opencl.devices import device
from litecl.delegate.plan.gpu.estimate import launch_rows
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from support import devices, networks
from support.build import Graph, model, randn
from support.gpu_nets import Net, check
from support.gpu_products import PRODUCTS, eighths
from support.loop_models import FLOAT, INT, below, int32, next_, while_model
from support.loop_models import check as loop_check

_EXACT = [name for name in PRODUCTS if "row" not in name and "before" not in name]
_FEW = ("edges", "3x3, stride 2", "weights that are computed", "batch, transposed")
_KINDS = ("parts", "large tiles", "small tiles", devices.FEW_SUMS)
_STEPS = HalfUnit().steps
_LOSS = 2e-3  # of the largest result: a half has 11 bits, and errors of many products average out


@pytest.fixture(scope="module", params=["parts"])
def options(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Options of delegates for a GPU that computes in halves, whose products are cut into tiles of one kind."""
    with devices.in_tiles(request.param, tmp_path_factory.mktemp("programs"), halves=True) as found:
        yield found | {"precision": "fp16"}


_once = pytest.mark.parametrize("options", ["small tiles"], indirect=True)


@pytest.mark.parametrize("name", _EXACT)
def test_products(name: str, options: dict[str, Any]) -> None:
    """All that plain tiles do, these do too."""
    check(replace(PRODUCTS[name](draw=eighths), kernel="product_halves", exact=True), options)


@pytest.mark.parametrize("options", _KINDS[1:], indirect=True)
@pytest.mark.parametrize("name", _FEW)
def test_products_of_other_tiles(name: str, options: dict[str, Any]) -> None:
    """Large ones, small ones, and those of GPUs with few registers."""
    check(replace(PRODUCTS[name](draw=eighths), kernel="product_halves", exact=True), options)


@pytest.mark.parametrize("options", ["parts", devices.FEW_SUMS], indirect=True)
@pytest.mark.parametrize("name", ["depthwise before", "depthwise before, stride 2"])
def test_products_behind_a_window(name: str, options: dict[str, Any]) -> None:
    """What a depthwise convolution computes in float32 is rounded to halves on its way to local memory."""
    net = PRODUCTS[name](draw=eighths)
    got, interpreter = run(net, options)
    assert interpreter.delegation_report().partitions[0].kernels == ("product_local:product_halves",)
    np.testing.assert_allclose(got, net.expected, rtol=0, atol=_LOSS * np.abs(net.expected).max())


def dense(x: Array, w: Array, *, known: bool = True) -> Net:
    """A plain product of [rows, depth] and weights [columns, depth]."""
    g = Graph()
    inputs = [g.input(x.shape), g.const(w) if known else g.input(w.shape), None]
    y = g.op(FULLY_CONNECTED, inputs, FullyConnectedOptions())
    with np.errstate(invalid="ignore"):
        expected = x.astype(np.float64) @ w.T.astype(np.float64)
    return Net(g, y, [x, *([] if known else [w])], expected, "product_halves")


def run(net: Net, options: dict[str, Any]) -> tuple[Array, Interpreter]:
    """Return what a net makes of its feeds."""
    interpreter = Interpreter(model(net.graph.build(net.output)), delegates=[CLDelegate(**options)])
    interpreter.allocate_tensors()
    for detail, feed in zip(interpreter.get_input_details(), net.feeds, strict=True):
        interpreter.set_tensor(detail["index"], feed)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), interpreter


def in_halves(x: Array, w: Array) -> Array:
    """Return x w^T with products added up in halves, some of the depth at a time, and these sums in float64."""
    x, w = (np.pad(a, ((0, 0), (0, -a.shape[1] % _STEPS))).astype(np.float16).astype(np.float64) for a in (x, w))
    total = np.zeros((len(x), len(w)))
    for first in range(0, x.shape[1], _STEPS):
        own = np.zeros(total.shape, np.float16)
        for k in range(first, first + _STEPS):
            own = (x[:, k, np.newaxis] * w[:, k] + own).astype(np.float16)
        total += own
    return total


@_once
@pytest.mark.parametrize(("size", "known"), [(0, True), (-30, True), (30, True), (0, False)])
def test_sums_are_rounded_as_is_said(size: int, known: bool, options: dict[str, Any]) -> None:
    """Eight products in halves, their sums in float32; constant weights of any size keep their digits."""
    rng = np.random.default_rng(3)
    x, w = randn(rng, 40, 1000), randn(rng, 36, 1000)
    net = dense(x, w * np.float32(2.0**size), known=known)
    got = run(net, options)[0] * 2.0**-size
    largest = np.abs(net.expected).max() * 2.0**-size
    exact, expected = net.expected * 2.0**-size, in_halves(x, w)
    # A product and a sum that are added in float32 are rounded once more, which seldom makes a difference.
    assert np.mean(np.abs(got - expected) > 2e-6 * largest) < 0.01
    assert np.abs(got - expected).mean() < 0.01 * np.abs(got - exact).mean()
    np.testing.assert_allclose(got, exact, rtol=0, atol=_LOSS * largest)
    bound = (_STEPS + 2) * 2.0**-11 * (np.abs(x) @ np.abs(w).T)
    assert (np.abs(got - exact) < bound).all()


@_once
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("large", [3e3, 6e4, 7e4, 1e30])
def test_what_halves_cannot_hold(large: float, known: bool, options: dict[str, Any]) -> None:
    """Sums and activations beyond 65504: their tiles are computed in float32, the others in halves."""
    rng = np.random.default_rng(4)
    x, w = rng.uniform(0.5, 1, (100, 48)).astype(np.float32), rng.uniform(0.5, 1, (40, 48)).astype(np.float32)
    x[3] *= np.float32(large)
    w *= 1 if known else 8
    net = dense(x, w, known=known)
    got, _ = run(net, options)
    assert np.isfinite(got).all()
    np.testing.assert_allclose(got, net.expected, rtol=_LOSS)
    stored = w.astype(np.float16).astype(np.float64) if known else w
    if large >= 6e4:
        np.testing.assert_allclose(got[:16], x[:16].astype(np.float64) @ stored.T, rtol=1e-5)
    np.testing.assert_allclose(got[64:], in_halves(x[64:], w), rtol=1e-4)


@_once
@pytest.mark.parametrize("known", [True, False])
def test_small_numbers(known: bool, options: dict[str, Any]) -> None:
    """Probabilities of many, say: products are less than the least normal half, their sums are not lost."""
    rng = np.random.default_rng(9)
    x, w = rng.uniform(1e-4, 2e-4, (20, 1000)).astype(np.float32), rng.uniform(1e-2, 2e-2, (20, 1000))
    net = dense(x, w.astype(np.float32), known=known)
    np.testing.assert_allclose(run(net, options)[0], net.expected, rtol=_LOSS)


def test_computed_weights_need_subnormals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a GPU makes them 0, products of what is computed are floats; those of constants have large weights."""
    rng, mali = np.random.default_rng(9), PROFILES["mali"]
    flushing = replace(mali, gpu=replace(mali.gpu, flushes_halves=True))
    monkeypatch.setattr(absent, "PROFILES", {"mali": flushing})
    for known in (True, False):
        net = dense(randn(rng, 40, 64), randn(rng, 36, 64), known=known)
        found = AbsentDevice("mali")
        delegate = CLDelegate(found, precision="fp16")
        Interpreter(model(net.graph.build(net.output)), delegates=[delegate]).allocate_tensors()
        launched = [work.launch.entry for plan in found.plans for work in plan.works]
        assert launched == ["product_halves" if known else "product_local"]


@pytest.mark.parametrize("known", [True, False])
def test_parts_that_halves_cannot_hold(known: bool, options: dict[str, Any]) -> None:
    """Of groups that share a depth one computes its part again; the others, and the next run, are not held up."""
    rng = np.random.default_rng(5)
    x, w = rng.uniform(0.5, 1, (20, 1024)).astype(np.float32), rng.uniform(0.5, 1, (24, 1024)).astype(np.float32)
    x[3, 700] = 1e6
    net = dense(x, w, known=known)
    got, interpreter = run(net, options)
    np.testing.assert_allclose(got, net.expected, rtol=_LOSS)
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), got)


@_once
def test_tiny_weights_and_huge_activations(options: dict[str, Any]) -> None:
    """What float32 holds is not infinite because weights were divided by a power of two."""
    x, w = np.full((20, 24), 3e37, np.float32), np.full((20, 24), 2.0**-40, np.float32)
    got, _ = run(dense(x, w), options)
    np.testing.assert_allclose(got, x.astype(np.float64) @ w.T, rtol=1e-6)


@_once
def test_numbers_that_are_none(options: dict[str, Any]) -> None:
    """Infinities and NaN of activations are those of float32, in their own row only; digits below 6e-5 are lost."""
    x, w = np.ones((9, 24), np.float32), np.full((20, 24), 0.5, np.float32)
    x[1:5, 5] = np.inf, -np.inf, np.nan, 1e-9
    w[3, 5] = 0
    with np.errstate(invalid="ignore"):
        expected = (x @ w.T).astype(np.float32)
    np.testing.assert_array_equal(run(dense(x, w), options)[0], expected)


@_once
@pytest.mark.parametrize("number", [np.inf, np.nan])
def test_weights_that_are_no_numbers_stay_floats(number: float, options: dict[str, Any]) -> None:
    """They have no scale."""
    x, w = np.ones((20, 24), np.float32), np.ones((20, 24), np.float32)
    w[3, 5] = number
    got, interpreter = run(dense(x, w), options)
    np.testing.assert_array_equal(got, x @ w.T)
    assert interpreter.delegation_report().partitions[0].kernels == ("product_local",)


@_once
def test_floats_never_meet_them(options: dict[str, Any]) -> None:
    """With precision="fp32" the same tiles, bits and report as on a GPU without halves."""
    rng = np.random.default_rng(3)
    net = dense(randn(rng, 40, 64), randn(rng, 36, 64))
    got, interpreter = run(net, options | {"precision": "fp32"})
    report = interpreter.delegation_report()
    assert (report.partitions[0].kernels, report.halves) == (("product_local",), "")
    np.testing.assert_allclose(got, net.expected, rtol=1e-4, atol=1e-4)


@_once
def test_the_report_says_so(options: dict[str, Any], tmp_path: Path) -> None:
    """What computes in halves, or why nothing does."""
    net = dense(np.ones((40, 64), np.float32), np.ones((36, 64), np.float32))
    report = run(net, options)[1].delegation_report()
    assert report.partitions[0].kernels == ("product_local:product_halves",)
    assert "fp16: products are halves, 8 added up in halves, then in float32" in str(report)
    with pytest.MonkeyPatch.context() as patch:
        target, gpu = device.target_of, Gpu("arm", without_fp16="3 of 256 sums in halves are wrong")
        patch.setattr(device, "target_of", lambda *args: replace(target(*args), gpu=gpu))
        report = run(net, options | {"cache_dir": tmp_path})[1].delegation_report()
    assert report.partitions[0].kernels == ("product_local",)
    assert "arithmetic is in float32, as halves fail: 3 of 256 sums in halves are wrong" in report.halves


@_once
def test_in_a_loop(options: dict[str, Any]) -> None:
    """Under a flag of a queued loop, where the kernel is a function of another; one iteration does not fit halves."""
    devices.needs_nested_barriers()
    shuffle = np.eye(64, dtype=np.float32)[np.random.default_rng(5).permutation(64)] * 32

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        return [next_(g, x[0]), g.op(FULLY_CONNECTED, [x[1], g.const(shuffle), None], FullyConnectedOptions())]

    x = eighths(np.random.default_rng(6), 40, 64)
    looped = while_model([((), INT), (x.shape, FLOAT)], below(5), body)
    expected = x @ np.linalg.matrix_power(shuffle.T, 5)
    assert np.abs(expected).max() > 1e6
    prepared = loop_check(looped, [int32(0), x], [int32(5), expected], **options)
    assert "product_local:product_halves" in prepared.delegation_report().partitions[0].kernels


@_once
def test_one_right_side_for_all(options: dict[str, Any]) -> None:
    """Of BATCH_MATMUL with constant weights by slices, each with the scale of all."""
    rng = np.random.default_rng(8)
    g = Graph()
    x, w = eighths(rng, 3, 33, 40), eighths(rng, 3, 40, 20) * np.float32(2.0**-20)
    y = g.op(BATCH_MATMUL, [g.input(x.shape), g.const(w)], BatchMatMulOptions(False, False, False))
    net = Net(g, y, [x], x.astype(np.float64) @ w.astype(np.float64), "product_halves", exact=True)
    check(net, options)


@pytest.mark.parametrize("name", [name for name, profile in PROFILES.items() if profile.gpu.fp16])
def test_tiles_fit(name: str) -> None:
    """Every work-item has something to load, and what a group needs is there."""
    gpu = replace(PROFILES[name].gpu, matrix=None)
    target, unit = replace(AbsentDevice(name).target(), half_weights=True, gpu=gpu), gpu.unit
    assert isinstance(unit, HalfUnit)
    for size in ((4096, 4096), (64, 64), (5, 3)):
        share = local_share(target, 1, *size, 512, unit)
        assert share is not None
        for tile in {share.tile, *(other.tile for other in possible_shares(target, share.products))}:
            assert tile.unit == unit
            assert tile.sums <= unit.sums
            assert min(tile.rows, tile.columns) * tile.step // 2 // 4 >= tile.items
            assert tile.step % unit.steps == 0
            assert tile.local.size_bytes <= 32 << 10


def test_a_network_in_halves() -> None:
    """Products have the peak of halves on GPUs without matrix units, and on no others."""
    content = networks.mobilenet_v2()
    for name in ("mali", "xe_lp", "sm_90"):
        found = AbsentDevice(name)
        Interpreter(
            model_content=content, delegates=[CLDelegate(found, strict=True, precision="fp16")]
        ).allocate_tensors()
        rows = launch_rows(found.plans, found.profile)
        assert {row.entry for row in rows if row.halves} == ({"product_halves"} if name != "sm_90" else set())
        assert not any(row.halves and row.matrix for row in rows)
        shown = Console(file=StringIO(), width=200)
        shown.print(launch_view(found))
        assert f"({found.profile.half_tflops:g} in halves)" in shown.file.getvalue() or name == "sm_90"
    assert PROFILES["mali"].half_tflops == 2 * PROFILES["mali"].tflops
