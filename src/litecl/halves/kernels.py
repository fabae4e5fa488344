"""Operators that sum many numbers, accumulating in halves. Operands are already rounded to halves, as float32."""

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from litecl.halves.sums import Sums, rounded
from litecl.interpreter.graph import Array
from litecl.interpreter.kit import activation, require, window
from litecl.interpreter.op import Inputs, Op
from litecl.interpreter.ops import (
    batch_matmul,
    conv_2d,
    conv_3d,
    depthwise_conv_2d,
    pool_2d,
    reduce,
    rnn,
    transpose_conv,
)
from litecl.interpreter.ops.bidirectional_sequence_lstm import BIDIRECTIONAL_SEQUENCE_LSTM
from litecl.interpreter.ops.conv_3d_transpose import CONV_3D_TRANSPOSE
from litecl.interpreter.ops.cumsum import CUMSUM
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, output_shape
from litecl.interpreter.ops.l2_normalization import L2_NORMALIZATION, SHORTEST
from litecl.interpreter.ops.local_response_normalization import LOCAL_RESPONSE_NORMALIZATION
from litecl.interpreter.ops.log_softmax import LOG_SOFTMAX
from litecl.interpreter.ops.lstm import LSTM
from litecl.interpreter.ops.softmax import SOFTMAX
from litecl.interpreter.ops.svdf import SVDF
from litecl.interpreter.ops.unidirectional_sequence_lstm import UNIDIRECTIONAL_SEQUENCE_LSTM

Kernel = Callable[[Any, Inputs, Sums], Array]


def _fully_connected(options: Any, inputs: Inputs, sums: Sums) -> Array:
    x, weights = require.arrays(inputs, 2)
    rows = sums.dot(x.reshape(-1, weights.shape[1]), weights.T)
    outputs = activation.finish(rows, inputs, 2, options.fused_activation_function)
    return outputs.reshape(output_shape(options, x.shape, weights.shape))


def _conv_2d(options: Any, inputs: Inputs, sums: Sums) -> Array:
    x, filter_ = require.arrays(inputs, 2)
    groups, sizes = x.shape[3] // filter_.shape[3], conv_2d.windows(options, x.shape, filter_.shape)
    parts = zip(np.split(x, groups, axis=3), conv_2d.matrices(filter_, groups), strict=True)
    outputs = [window.convolve(part, _by(sums, matrix), sizes) for part, matrix in parts]
    return activation.finish(np.concatenate(outputs, axis=3), inputs, 2, options.fused_activation_function)


def _by(sums: Sums, matrix: Array) -> Callable[[Array], Array]:
    return lambda rows: sums.dot(rows, matrix)


def _depthwise_conv_2d(options: Any, inputs: Inputs, sums: Sums) -> Array:
    x, filter_ = require.arrays(inputs, 2)
    sizes = depthwise_conv_2d.windows(options, x.shape, filter_.shape)
    images = x.repeat(filter_.shape[3] // x.shape[3], axis=3)
    patches = window.patches(window.pad(images, sizes), sizes)
    terms = (patches[:, :, :, i, j] * filter_[0, i, j] for i, j in np.ndindex(*filter_.shape[1:3]))
    outputs = sums.of(terms, patches[:, :, :, 0, 0])
    return activation.finish(outputs, inputs, 2, options.fused_activation_function)


def _transpose_conv(options: Any, inputs: Inputs, sums: Sums) -> Array:
    """Convolve the image, spread with zeros between its pixels, with flipped filters."""
    size, filter_, x = require.arrays(inputs, 3)
    output, kernel = tuple(int(n) for n in size), filter_.shape[1:3]
    strides = options.stride_h, options.stride_w
    offsets = transpose_conv.offset(options, output, filter_.shape)
    spread = [(n - 1) * stride + 1 for n, stride in zip(x.shape[1:3], strides, strict=True)]
    image = np.zeros((len(x), *spread, x.shape[3]), np.float32)
    image[:, :: strides[0], :: strides[1]] = x
    ends = [max(k - 1, offset + n - m) for k, offset, n, m in zip(kernel, offsets, output[1:3], spread, strict=True)]
    sizes = [window.Window(k, 1, 1, k - 1, end, n + end) for k, end, n in zip(kernel, ends, spread, strict=True)]
    flipped = filter_[:, ::-1, ::-1].transpose(1, 2, 3, 0).reshape(-1, filter_.shape[0])
    (top, left), (height, width) = offsets, output[1:3]
    outputs = window.convolve(image, _by(sums, flipped), sizes)[:, top : top + height, left : left + width]
    return activation.finish(outputs, inputs, 3, options.fused_activation_function)


def _conv_3d(options: Any, inputs: Inputs, sums: Sums) -> Array:
    x, filter_ = require.arrays(inputs, 2)
    matrix, sizes = filter_.reshape(-1, filter_.shape[4]), conv_3d.windows(options, x.shape, filter_.shape)
    return activation.finish(window.convolve(x, _by(sums, matrix), sizes), inputs, 2, options.fused_activation_function)


def _batch_matmul(options: Any, inputs: Inputs, sums: Sums) -> Array:
    return sums.dot(*batch_matmul.operands(options, inputs))


def _sum(options: Any, inputs: Inputs, sums: Sums) -> Array:
    x, axes = require.arrays(inputs, 2)
    reduced = reduce.axes_of(axes.ravel().tolist(), x.ndim)
    rest = [axis for axis in range(x.ndim) if axis not in reduced]
    rows = x.transpose(*rest, *reduced).reshape(*(x.shape[axis] for axis in rest), -1)
    return sums.last(rows).reshape(reduce.reduced_shape(x.shape, reduced, options.keep_dims))


def _mean(options: Any, inputs: Inputs, sums: Sums) -> Array:
    x, axes = require.arrays(inputs, 2)
    count = prod(x.shape[axis] for axis in reduce.axes_of(axes.ravel().tolist(), x.ndim))
    return _sum(options, inputs, sums) / np.float32(count)


def _average_pool_2d(options: Any, inputs: Inputs, sums: Sums) -> Array:
    (x,) = require.arrays(inputs, 1)
    sizes = pool_2d.windows(options, x.shape)
    patches = window.patches(window.pad(x, sizes), sizes)
    terms = (patches[:, :, :, i, j] for i, j in np.ndindex(*patches.shape[3:5]))
    means = sums.of(terms, patches[:, :, :, 0, 0]) / window.counts(sizes, x.shape[1:3])
    return activation.apply(options.fused_activation_function, means)


def _softmax(options: Any, inputs: Inputs, sums: Sums) -> Array:
    (x,) = require.arrays(inputs, 1)
    e = rounded(np.exp((x - x.max(axis=-1, keepdims=True, initial=-np.inf)) * np.float32(options.beta)))
    return np.asarray(e / sums.last(e)[..., None])


def _l2_normalization(options: Any, inputs: Inputs, sums: Sums) -> Array:
    (x,) = require.arrays(inputs, 1)
    length = np.sqrt(sums.last(np.square(x)))[..., None]
    return activation.apply(options.fused_activation_function, x / np.maximum(length, SHORTEST))


IN_HALVES: Mapping[Op, Kernel] = {
    FULLY_CONNECTED: _fully_connected,
    conv_2d.CONV_2D: _conv_2d,
    depthwise_conv_2d.DEPTHWISE_CONV_2D: _depthwise_conv_2d,
    transpose_conv.TRANSPOSE_CONV: _transpose_conv,
    conv_3d.CONV_3D: _conv_3d,
    batch_matmul.BATCH_MATMUL: _batch_matmul,
    reduce.SUM: _sum,
    reduce.MEAN: _mean,
    pool_2d.AVERAGE_POOL_2D: _average_pool_2d,
    SOFTMAX: _softmax,
    L2_NORMALIZATION: _l2_normalization,
}
"""Kernels by operator, for float32 operands."""

WITHOUT: frozenset[Op] = frozenset(
    {
        *(LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM, BIDIRECTIONAL_SEQUENCE_LSTM, SVDF),
        *(rnn.RNN, rnn.UNIDIRECTIONAL_SEQUENCE_RNN, rnn.BIDIRECTIONAL_SEQUENCE_RNN),
        *(LOG_SOFTMAX, CUMSUM, LOCAL_RESPONSE_NORMALIZATION, pool_2d.L2_POOL_2D, CONV_3D_TRANSPOSE),
    }
)
"""Operators that also sum numbers, but in float32 here."""
