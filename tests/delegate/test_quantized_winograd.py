"""3x3 convolutions of bytes by Winograd's algorithm in integers, for processors that this one can stand in for."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from litecl.cases import Case
from litecl.cases.integers import Integers, T, weighted_case
from litecl.delegate import CLDelegate
from litecl.delegate.cl_op import Launch
from litecl.delegate.cpu.target import CpuTarget
from litecl.delegate.tuning import Tuning
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.schema import ActivationFunctionType, Padding, TensorType
from support.by_name import Fed, agrees, launches
from support.levels import stand_in

_LEVELS = {4: ("x86-64-v2", "__SSSE3__"), 8: ("x86-64-v3", "__AVX2__")}
_RELU, _RELU6 = ActivationFunctionType.RELU, ActivationFunctionType.RELU6
_MOST_CHANNELS = 227  # whose largest sums fit
_integers = Integers(93)


def _conv(x: tuple[int, ...], columns: int, type_: TensorType = T.INT8, **chosen: Any) -> Case:
    """A convolution. w_zero, gain, step: see ``weighted_case``."""
    own = {name: chosen.pop(name) for name in ("gain", "step") if name in chosen}
    x_zero, w_zero = (-11, 0) if type_ == T.INT8 else (117, chosen.pop("w_zero", 128))
    options = Conv2DOptions(**{"stride_w": 1, "stride_h": 1} | chosen)
    return weighted_case(
        _integers,
        f"{type_.name} {x} to {columns} {chosen} {own} {w_zero}",
        CONV_2D,
        options,
        (type_, x, x_zero),
        (type_, (columns, 3, 3, x[3]), w_zero),
        axis=0,
        depth=9 * x[3],
        per_channel=type_ == T.INT8,
        zero_point=-9 if type_ == T.INT8 else 120,
        version=3,
        **own,
    )


def _largest(channels: int, byte: int) -> Case:
    """The largest sums of products: all weights are -128, all activations are ``byte``."""
    case = _conv((1, 6, 6, channels), 16, padding=Padding.VALID)
    x, weights, bias = case.inputs
    assert x is not None and weights is not None
    return replace(case, name=f"{channels} x {byte}", inputs=[np.full_like(x, byte), np.full_like(weights, -128), bias])


def _alternating() -> Case:
    """Weights and activations that make the transformed words largest."""
    case = _conv((1, 10, 10, 16), 16, padding=Padding.VALID, fused_activation_function=_RELU)
    x, weights, bias = case.inputs
    assert x is not None and weights is not None
    signs: Array = np.where(np.indices(x.shape).sum(0) // 2 % 2, 127, -128).astype(np.int8)
    inputs = [signs, np.where(np.indices(weights.shape).sum(0) % 2, 127, -128).astype(np.int8), bias]
    return replace(case, name="alternating signs", inputs=inputs)


_CASES = (
    _conv((1, 8, 8, 16), 16),
    _conv((2, 7, 13, 18), 33, fused_activation_function=_RELU),
    _conv((3, 9, 6, 26), 17, fused_activation_function=_RELU6),
    _conv((1, 12, 11, 40), 70, padding=Padding.VALID),
    _conv((1, 3, 30, 16), 24),
    _conv((1, 17, 18, 96), 96, fused_activation_function=_RELU),  # large weights
    _conv((1, 8, 8, 16), 16, step=0.0001, gain=20.0),
    _conv((2, 9, 10, 20), 36, T.UINT8, fused_activation_function=_RELU),
    _conv((1, 9, 10, 34), 16, T.UINT8),
    *(_largest(_MOST_CHANNELS - 1, byte) for byte in (-128, 127)),
    _alternating(),
)
_OTHERS = (
    _conv((1, 8, 8, 17), 16),  # pairs of channels
    _conv((1, 8, 8, 14), 16),
    _conv((1, 8, 8, 16), 15),
    _conv((1, 8, 8, 16), 16, stride_w=2),
    _conv((1, 5, 5, 16), 16),  # patches that are not half full
    _conv((1, 1, 1, 32), 16),
    _conv((1, 8, 8, 16), 16, dilation_h_factor=2),
    _conv((1, 8, 8, 16), 16, T.UINT8, w_zero=127),
    _conv((1, 7, 7, 256), 256),  # few patches, large weights
    _largest(_MOST_CHANNELS + 1, -128),
)


def _fed(case: Case) -> Fed:
    return write(case.model()), list(case.feeds)


def _launch(case: Case, target: CpuTarget) -> Launch:
    (launch,) = launches(_fed(case), target)
    return launch


def _suits(case: Case, target: CpuTarget) -> bool:
    return _launch(case, target).kernel == "quantized_winograd"


def test_which_convolutions() -> None:
    assert all(_suits(case, CpuTarget(8, 1, byte_pairs=True)) for case in _CASES)
    assert not any(_suits(case, CpuTarget(8, 1, byte_pairs=True)) for case in _OTHERS)
    assert not any(_suits(case, CpuTarget(width, 1)) for case in _CASES for width in (1, 4, 8, 16))
    assert not _suits(_CASES[0], CpuTarget(8, 1, byte_pairs=True, tuning=Tuning(winograd_channels=17)))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("width", _LEVELS)
@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.name)
def test_numbers(case: Case, width: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, *_LEVELS[width])
    agrees(_fed(case), [CLDelegate(device="native", num_threads=threads, strict=True)])


@pytest.mark.parametrize(("units", "large", "small"), [(1, (1, 1), (1, 1)), (2, (1, 2), (1, 1)), (5, (1, 4), (1, 1))])
def test_shares(units: int, large: tuple[int, int], small: tuple[int, int]) -> None:
    target = CpuTarget(8, units, byte_pairs=True)
    assert _launch(_conv((1, 17, 18, 96), 96), target).global_size == large
    assert _launch(_conv((1, 4, 4, 16), 16), target).global_size == small
    assert _launch(_conv((1, 64, 64, 32), 32), target).global_size == (units, 1)
