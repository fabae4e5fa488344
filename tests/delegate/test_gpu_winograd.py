"""Winograd's algorithm on GPUs: every edge against float64, and where it is chosen."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate, Tuning
from litecl.delegate.backend.absent import AbsentDevice
from litecl.delegate.gpu.profiles import PROFILES
from litecl.delegate.gpu.properties import Gpu
from litecl.delegate.gpu.rates import Rates, rates_of
from litecl.delegate.ops.gpu import winograd
from litecl.delegate.plan.gpu.estimate import LaunchRow, launch_rows
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array
from litecl.interpreter.ops import binary
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.schema import ActivationFunctionType, Padding
from support import devices, networks
from support.build import Graph, model, randn
from support.gpu_nets import Net, check, convolved
from support.loop_models import FLOAT, INT, below, int32, next_, while_model
from support.loop_models import check as loop_check

_KERNEL = "winograd_patches"
_NONE, _RELU6, _TANH = ActivationFunctionType.NONE, ActivationFunctionType.RELU6, ActivationFunctionType.TANH


@pytest.fixture(scope="module", params=["small tiles"])
def opened(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Options of delegates for a GPU whose products are cut into tiles of one kind."""
    with devices.in_tiles(request.param, tmp_path_factory.mktemp("programs")) as found:
        yield found


@pytest.fixture
def options(opened: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The same, where every convolution that can be computed this way is."""
    monkeypatch.setattr(winograd, "pays", lambda *_: True)
    return opened


def net(shape: Sequence[int], columns: int, activation: Any = _NONE, *, valid: bool = False, bias: bool = True) -> Net:
    """A convolution of images [images, height, width, channels]."""
    rng = np.random.default_rng(sum(shape) + columns)
    g = Graph()
    x, w = randn(rng, *shape), randn(rng, columns, 3, 3, shape[3], scale=(9 * shape[3]) ** -0.5)
    b = randn(rng, columns) * np.float32(bias)
    given = [g.input(x.shape), g.const(w), g.const(b) if bias else None]
    padding = Padding.VALID if valid else Padding.SAME
    y = g.op(CONV_2D, given, Conv2DOptions(padding, 1, 1, activation))
    expected = convolved(x, w, 1, 1, 1) + b
    expected = expected[:, 1:-1, 1:-1] if valid else expected
    bounded = {_NONE: lambda v: v, _RELU6: lambda v: np.clip(v, 0, 6), _TANH: np.tanh}
    return Net(g, y, [x], bounded[activation](expected), _KERNEL)


_NETS = {
    "whole patches": lambda: net((1, 8, 8, 16), 16),
    "two images, edges": lambda: net((2, 9, 11, 8), 20, _RELU6),
    "no padding": lambda: net((2, 7, 10, 12), 36, valid=True),
    "one pixel": lambda: net((1, 1, 1, 16), 16),
    "one pixel, no padding": lambda: net((1, 3, 3, 16), 16, valid=True),
    "one line": lambda: net((1, 1, 13, 4), 5),
    "columns without a vector": lambda: net((1, 6, 5, 20), 7, _TANH),
    "no bias": lambda: net((1, 5, 6, 32), 33, bias=False),
    "more patches than a tile": lambda: net((3, 25, 24, 36), 70),
}


@pytest.mark.parametrize("name", _NETS)
def test_edges(name: str, options: dict[str, Any]) -> None:
    """Patches and tiles that are not full; errors are a millionth of the largest result, as on a CPU."""
    check(_NETS[name](), options)


@pytest.mark.parametrize("opened", ["parts", "large tiles", devices.FEW_SUMS], indirect=True)
def test_tiles(options: dict[str, Any]) -> None:
    """Products of all kinds of tiles, and of groups that share the depth, take transformed patches."""
    check(net((1, 12, 12, 132), 66), options)


def test_addends_within_wider_rows(options: dict[str, Any]) -> None:
    """Two results side by side, in rows that are not aligned, each with an addend of its own."""
    rng, g = np.random.default_rng(4), Graph()
    x, w, v = randn(rng, 1, 9, 9, 8), randn(rng, 6, 3, 3, 8), randn(rng, 9, 3, 3, 8)
    r = randn(rng, 1, 9, 9, 6)
    into, added = g.input(x.shape), g.input(r.shape)
    one, other = (g.op(CONV_2D, [into, g.const(f), None], Conv2DOptions(Padding.SAME, 1, 1)) for f in (w, v))
    one = g.op(binary.ADD, [one, added], binary.AddOptions(_RELU6))
    expected = np.concatenate([np.clip(convolved(x, w, 1, 1, 1) + r, 0, 6), convolved(x, v, 1, 1, 1)], axis=-1)
    check(Net(g, g.op(CONCATENATION, [one, other], ConcatenationOptions(3)), [x, r], expected, _KERNEL), options)


@pytest.mark.parametrize("more", [{"profile": True}, {"queue_loops": True}], ids=str)
def test_modes(more: dict[str, Any], options: dict[str, Any]) -> None:
    check(net((2, 9, 11, 8), 20, _RELU6), options | more)


def test_in_a_loop(options: dict[str, Any]) -> None:
    """What is between the launches is kept apart from what iterations hand on."""
    weights = randn(np.random.default_rng(5), 32, 3, 3, 32, scale=0.05)

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        return [next_(g, x[0]), g.op(CONV_2D, [x[1], g.const(weights), None], Conv2DOptions(Padding.SAME, 1, 1, _TANH))]

    x = randn(np.random.default_rng(6), 1, 21, 21, 32)
    expected = x
    for _ in range(3):
        expected = np.tanh(convolved(expected, weights, 1, 1, 1))
    looped = while_model([((), INT), (x.shape, FLOAT)], below(3), body)
    prepared = loop_check(looped, [int32(0), x], [int32(3), expected.astype(np.float32)], **options)
    assert f"{_KERNEL}:read_patches" in prepared.delegation_report().partitions[0].kernels


def result(g: Graph, y: int, x: Array, options: dict[str, Any]) -> Array:
    """Return what a graph makes of its input."""
    interpreter = Interpreter(model(g.build(y)), delegates=[CLDelegate(**options)])
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def test_strange_pixels(options: dict[str, Any]) -> None:
    """A pixel that is no number makes none of all results it has a part in, and of no more than their 4 x 4 pixels."""
    g, rng = Graph(), np.random.default_rng(7)
    image, w = randn(rng, 1, 21, 21, 8), randn(rng, 8, 3, 3, 8)
    image[0, 4, 5, 1], image[0, 14, 12, 2], image[0, 20, 20, 0] = np.inf, np.nan, -np.inf
    y = g.op(CONV_2D, [g.input(image.shape), g.const(w), None], Conv2DOptions(Padding.SAME, 1, 1))
    strange = ~np.isfinite(result(g, y, image, options))
    with np.errstate(invalid="ignore"):
        wanted = ~np.isfinite(convolved(image, w, 1, 1, 1))
    patches = np.zeros((6, 6), bool)
    for row, column in {(y // 4, x // 4) for _, y, x, _ in np.argwhere(wanted)}:
        patches[row, column] = True
    assert strange[wanted].all()
    assert not (strange & ~patches.repeat(4, 0).repeat(4, 1)[None, :21, :21, None]).any()


@pytest.mark.parametrize("number", [np.inf, np.nan, 3e38])
def test_weights_that_are_no_numbers(number: float, options: dict[str, Any]) -> None:
    """They are multiplied as they are: transformed they would make NaN of what is infinite."""
    strange_weights(number, options)


def test_weights_that_are_no_numbers_on_a_cpu() -> None:
    strange_weights(np.inf, {"num_threads": 1, "tuning": Tuning(winograd_channels=0)})


def strange_weights(number: float, options: dict[str, Any]) -> None:
    rng, g = np.random.default_rng(8), Graph()
    x, w = np.abs(randn(rng, 1, 18, 18, 16)), np.abs(randn(rng, 16, 3, 3, 16))
    w[3] = number
    y = g.op(CONV_2D, [g.input(x.shape), g.const(w), None], Conv2DOptions(Padding.VALID, 1, 1))
    with np.errstate(over="ignore", invalid="ignore"):
        expected = convolved(x, w, 1, 1, 1)[:, 1:-1, 1:-1].astype(np.float32)
    np.testing.assert_allclose(result(g, y, x, options), expected, 1e-5)


def planned(name: str, shape: Sequence[int], columns: int, **more: Any) -> list[LaunchRow]:
    """Return the launches of a convolution on a GPU of the table."""
    g, device = Graph(), AbsentDevice(name)
    weights = g.const(np.ones((columns, 3, 3, shape[3]), np.float32))
    y = g.op(CONV_2D, [g.input(tuple(shape)), weights, None], Conv2DOptions(Padding.SAME, 1, 1))
    delegate = CLDelegate(device, strict=True, **more)
    Interpreter(model(g.build(y)), delegates=[delegate]).allocate_tensors()
    return [*launch_rows(device.plans, device.profile)]


_ALL = (*PROFILES,)
_LARGE_ONLY = tuple(name for name in PROFILES if name != "gfx1100")  # whose memory is slowest for its arithmetic


@pytest.mark.parametrize(
    ("shape", "columns", "chosen"),
    [
        ((1, 64, 64, 320), 320, _ALL),
        ((16, 14, 14, 256), 256, _LARGE_ONLY),
        ((1, 28, 28, 128), 128, ("mali",)),
        ((1, 14, 14, 256), 256, ()),
        ((1, 112, 112, 32), 32, ()),
    ],
)
def test_it_is_chosen_where_its_launches_and_memory_pay(shape: Sequence[int], columns: int, chosen: Any) -> None:
    """By an estimate for each GPU; the estimates of both plans agree with the choice."""
    for name, profile in PROFILES.items():
        rows = planned(name, shape, columns)
        launches = ["read_patches", "product_local", "write_patches"] if name in chosen else ["product_local"]
        assert [row.entry for row in rows] == launches, name
        if name in chosen:
            direct = planned(name, shape, columns, tuning=Tuning(winograd_channels=1e9))
            one, three = (sum(row.roofline_us + profile.launch_us for row in found) for found in (direct, rows))
            assert len(direct) == 1 and three < one, name


def test_halves_are_multiplied_as_they_are() -> None:
    """With weights as halves the direct way is taken: matrix units are faster, and sums of transforms need floats."""
    for name in PROFILES:
        assert "read_patches" not in [row.entry for row in planned(name, (1, 64, 64, 320), 320, precision="fp16")]


def test_resnet_on_a_slow_gpu() -> None:
    """One image: where patches are many and weights few, which on a fast GPU take less than launches do."""
    device = AbsentDevice("mali")
    Interpreter(networks.resnet_50(), delegates=[CLDelegate(device, strict=True)]).allocate_tensors()
    entries = [row.entry for row in launch_rows(device.plans, device.profile)]
    assert entries.count("read_patches") == entries.count("write_patches") == 3


def test_rates() -> None:
    """Those of the GPU in the table that is likest; one of another size has slower memory for its arithmetic."""
    for name, profile in PROFILES.items():
        expected = Rates(profile.tflops, profile.gb_per_s, profile.launch_us)
        assert rates_of(AbsentDevice(name).target()) == expected
    target = AbsentDevice("sm_90").target()
    assert rates_of(replace(target, gpu=Gpu())) is None
    assert rates_of(replace(target, compute_units=54)) == Rates(9.75, 1555 / 4, 3.0)
    small = rates_of(replace(target, gpu=Gpu("amd", 32, integrated=True), compute_units=6))
    assert small == pytest.approx(Rates(61.4 / 8, 960 / 16, 3.0))
