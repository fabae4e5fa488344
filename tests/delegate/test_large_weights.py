"""3x3 convolutions whose weights exceed a cache: tiles share panels, and units share Winograd's columns."""

from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.cl_op import Launch, Target
from litecl.delegate.cpu.target import CpuTarget
from litecl.delegate.cpu.winograd import Winograd
from litecl.delegate.devices import choose
from litecl.delegate.gpu.target import GpuTarget
from litecl.delegate.ops.conv_2d import Convolution
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Shape
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.schema import ActivationFunctionType, Padding
from litecl.perf.feeds import run_on
from support import compare, oracle
from support.build import Graph, model, randn
from support.lowerings import convolution

_SAME, _VALID = Padding.SAME, Padding.VALID
_RELU6 = ActivationFunctionType.RELU6
_SEVENS = (1, 7, 7, 240)


def _launch(x: Shape, filter_: Shape, target: Target) -> Launch:
    record, call = convolution(x, filter_, 1, target)
    return next(step for step in record.steps(call) if isinstance(step, Launch))


def _record(launch: Launch, kind: type) -> Any:
    return next(arg for arg in launch.args if isinstance(arg, kind))


@pytest.mark.skipif(isinstance(choose(num_threads=1).target(), GpuTarget), reason="GPUs have other schedules")
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("x", "columns", "options", "kernel"),
    [
        pytest.param(_SEVENS, 40, {}, "conv_2d", id="7x7"),
        pytest.param((3, 7, 5, 240), 33, {"fused_activation_function": _RELU6}, "conv_2d", id="odd, activation"),
        pytest.param((1, 14, 14, 240), 16, {"stride_h": 2, "stride_w": 2}, "conv_2d", id="strides"),
        pytest.param((1, 9, 9, 240), 16, {"padding": _VALID}, "conv_2d", id="no padding"),
        pytest.param((2, 7, 7, 240), 20, {"dilation_h_factor": 2, "dilation_w_factor": 3}, "conv_2d", id="dilation"),
        pytest.param((1, 4, 4, 240), 16, {"dilation_h_factor": 4, "dilation_w_factor": 4}, "conv_2d", id="far taps"),
        pytest.param((1, 14, 14, 96), 97, {"fused_activation_function": _RELU6}, "winograd", id="16 patches"),
        pytest.param((1, 15, 18, 90), 100, {"padding": _VALID}, "winograd", id="edges"),
        pytest.param((3, 14, 13, 96), 80, {}, "winograd", id="48 patches"),
    ],
)
def test_large_convolutions(threads: int, x: Shape, columns: int, options: dict[str, Any], kernel: str) -> None:
    r, g = np.random.default_rng(9), Graph()
    filter_ = randn(r, columns, 3, 3, x[3], scale=0.05).astype(np.float16).astype(np.float32)
    operands = g.input(x), g.const(filter_), g.const(randn(r, columns))
    chosen = Conv2DOptions(**{"padding": _SAME, "stride_h": 1, "stride_w": 1, **options})
    content, feed = write(model(g.build(g.op(CONV_2D, operands, chosen)))), randn(r, *x)
    (expected,) = oracle.run(content, [feed])
    for precision in ("fp32", "fp16"):
        delegate = CLDelegate(num_threads=threads, strict=True, profile=True, precision=precision)
        interpreter = Interpreter(model_content=content, delegates=[delegate])
        (got,) = run_on(interpreter, [feed])
        assert {row.kernel for row in interpreter.delegation_report().kernels} == {kernel}
        compare.assert_close(got, expected, compare.DEVICE["float32"])


@pytest.mark.parametrize(("width", "units"), [(16, 1), (16, 2), (8, 2), (4, 3)])
def test_tiles_share_a_large_panel_if_all_units_get_work(width: int, units: int) -> None:
    target = CpuTarget(width, units)
    filter_ = (512, 3, 3, 512)
    launch = _launch((1, 7, 7, 512), filter_, target)
    assert _record(launch, Convolution).item_rows > 2 * int(launch.defines["MR"])
    assert np.prod(launch.global_size) >= 4 * units
    many = _launch((1, 7, 7, 512), filter_, CpuTarget(width, 512))
    assert _record(many, Convolution).item_rows == int(many.defines["MR"])


@pytest.mark.parametrize(("units", "size"), [(1, (1, 1)), (2, (1, 2)), (3, (1, 3)), (64, (1, 6))])
def test_units_share_the_columns_of_few_patches(units: int, size: Shape) -> None:
    launch = _launch((1, 14, 14, 96), (96, 3, 3, 96), CpuTarget(16, units))
    assert (launch.kernel, launch.global_size, launch.defines["MR"]) == ("winograd", size, 16)
    patches = _launch((4, 14, 14, 96), (96, 3, 3, 96), CpuTarget(16, units))
    shape = _record(patches, Winograd)
    assert -(-64 // shape.item_patches) == patches.global_size[0] == min(4, units)
