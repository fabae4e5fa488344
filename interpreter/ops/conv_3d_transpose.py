"""CONV_3D_TRANSPOSE: each element of a volume scatters a filter."""

from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, Shape, TensorSpec
from litecl.interpreter.kit import activation, require, types, window
from litecl.interpreter.op import Inputs, Op, Specs
from litecl.interpreter.ops.conv_3d import Conv3DOptions
from litecl.interpreter.ops.transpose_conv import scatter


def offset(options: Conv3DOptions, output: Shape, filter_: Shape) -> Shape:
    """Return the crop before the output along depth, height and width, for a filter [d, h, w, out, channels]."""
    sizes = zip(output[1:4], filter_[:3], strides(options), dilations(options), strict=True)
    return tuple(window.fit(options.padding, *size).before for size in sizes)


def strides(options: Conv3DOptions) -> Shape:
    """Return the strides along depth, height and width."""
    return options.stride_d, options.stride_h, options.stride_w


def dilations(options: Conv3DOptions) -> Shape:
    """Return the dilations along depth, height and width."""
    return options.dilation_d_factor, options.dilation_h_factor, options.dilation_w_factor


def _infer(options: Conv3DOptions, inputs: Specs) -> list[TensorSpec]:
    size, filter_, x = require.present(inputs, 3)
    require.rank(size, exactly=1)
    for spec in (filter_, x):
        require.types(spec, types.FLOAT)
        require.rank(spec, exactly=5)
    require.filled(x, (1, 2, 3))
    channels, (outputs, depth) = x.static_shape[4], filter_.static_shape[3:]
    if channels != depth:
        raise ShapeError(f"expected a filter of {channels} channels, got {list(filter_.static_shape)}")
    require.bias(inputs, 3, outputs)
    shape = require.integers(size)
    if shape is None:
        return [TensorSpec(x.type, None)]
    if len(shape) != 5 or (shape[0], shape[4]) != (x.static_shape[0], outputs):
        raise ShapeError(f"expected an output shape [{x.static_shape[0]}, d, h, w, {outputs}], got {shape}")
    offset(options, tuple(shape), filter_.static_shape)
    return [TensorSpec(x.type, tuple(shape))]


def _run(options: Conv3DOptions, inputs: Inputs) -> list[Array]:
    size, filter_, x = require.arrays(inputs, 3)
    output = tuple(int(n) for n in size)
    offsets = offset(options, output, filter_.shape)
    result = scatter(x, filter_.swapaxes(3, 4), strides(options), offsets, output, dilations(options))
    return [activation.finish(result, inputs, 3, options.fused_activation_function)]


CONV_3D_TRANSPOSE = Op("CONV_3D_TRANSPOSE", options=Conv3DOptions, infer=_infer, run=_run)
