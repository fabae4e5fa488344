"""CONV_3D: a bank of filters slid over a volume."""

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, Shape, TensorSpec
from litecl.interpreter.kit import activation, require, types, window
from litecl.interpreter.op import Inputs, Op, Specs
from litecl.interpreter.schema import ActivationFunctionType, Padding


@dataclass(frozen=True)
class Conv3DOptions:
    padding: Padding = Padding.SAME
    stride_d: int = 0
    stride_w: int = 0
    stride_h: int = 0
    fused_activation_function: ActivationFunctionType = ActivationFunctionType.NONE
    dilation_d_factor: int = 1
    dilation_w_factor: int = 1
    dilation_h_factor: int = 1


def windows(options: Conv3DOptions, x: Shape, filter_: Shape) -> tuple[window.Window, window.Window, window.Window]:
    """Return the windows along depth, height and width, for an input [n, d, h, w, c] and a filter [d, h, w, c, out]."""
    o = options
    return (
        window.fit(o.padding, x[1], filter_[0], o.stride_d, o.dilation_d_factor),
        window.fit(o.padding, x[2], filter_[1], o.stride_h, o.dilation_h_factor),
        window.fit(o.padding, x[3], filter_[2], o.stride_w, o.dilation_w_factor),
    )


def _infer(options: Conv3DOptions, inputs: Specs) -> list[TensorSpec]:
    x, filter_ = require.present(inputs, 2)
    for spec in (x, filter_):
        require.types(spec, types.FLOAT)
        require.rank(spec, exactly=5)
    channels, (*_, depth, outputs) = x.static_shape[4], filter_.static_shape
    if channels != depth:
        raise ShapeError(f"expected a filter of {channels} channels, got {list(filter_.static_shape)}")
    require.bias(inputs, 2, outputs)
    sizes = (w.output for w in windows(options, x.static_shape, filter_.static_shape))
    return [TensorSpec(x.type, (x.static_shape[0], *sizes, outputs))]


def _run(options: Conv3DOptions, inputs: Inputs) -> list[Array]:
    x, filter_ = require.arrays(inputs, 2)
    matrix = filter_.reshape(-1, filter_.shape[4])
    result = window.convolve(x, lambda rows: rows @ matrix, windows(options, x.shape, filter_.shape))
    return [activation.finish(result, inputs, 2, options.fused_activation_function)]


CONV_3D = Op("CONV_3D", options=Conv3DOptions, infer=_infer, run=_run)
