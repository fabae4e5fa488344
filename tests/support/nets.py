"""Graphs of activations and weights of some types: floats, integers of a scale, floats with integer weights."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from litecl.interpreter.graph import Array, Quantization
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops import binary
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.pool_2d import Pool2DOptions
from litecl.interpreter.ops.transpose_conv import TRANSPOSE_CONV, TransposeConvOptions
from litecl.interpreter.schema import Padding, TensorType
from support.build import Graph

IMAGE = (2, 6, 5, 8)


@dataclass(frozen=True)
class Domain:
    """The type of activations; quantized ones are of one scale all through a graph."""

    type: TensorType
    weights: TensorType = TensorType.INT8
    quantization: Quantization | None = None

    def feed(self, rng: np.random.Generator, shape: Sequence[int]) -> Array:
        if self.type == TensorType.FLOAT32:
            return rng.standard_normal(shape).astype(np.float32)
        limits = np.iinfo(self.type.dtype)
        return rng.integers(limits.min, limits.max + 1, shape).astype(self.type.dtype)


def by(scale: float, zero: int = 0) -> Quantization:
    return Quantization(np.full(1, scale, np.float32), np.full(1, zero, np.int64))


class Net(Graph):
    """A graph whose activations belong to a domain."""

    def __init__(self, domain: Domain) -> None:
        super().__init__()
        self.domain, self.rng = domain, np.random.default_rng(77)

    def quantized(self, tensor: int, quantization: Quantization | None = None) -> int:
        known = self.domain.quantization and (quantization or self.domain.quantization)
        if self.tensors[tensor].type == self.domain.type:
            self.tensors[tensor] = replace(self.tensors[tensor], quantization=known)
        return tensor

    def x(self, shape: Sequence[int]) -> int:
        return self.quantized(self.input(tuple(shape), self.domain.type))

    def held(self, shape: Sequence[int]) -> int:
        """A variable, which nothing here updates."""
        tensor = self.quantized(self.variable(tuple(shape)))
        self.tensors[tensor] = replace(self.tensors[tensor], type=self.domain.type)
        return self.quantized(tensor)

    def known(self, shape: Sequence[int]) -> int:
        return self.quantized(self.const(self.domain.feed(self.rng, shape)))

    def apply(self, op: Op, inputs: Sequence[int | None], options: Any = None, by_: Quantization | None = None) -> int:
        return self.quantized(self.op(op, inputs, options or NoOptions()), by_)

    def shape(self, tensor: int) -> tuple[int, ...]:
        return self.tensors[tensor].static_shape

    def weights(self, *shape: int, axis: int, columns: int) -> tuple[int, int]:
        """Constant weights as the domain multiplies with, and a bias."""
        depth = int(np.prod(shape)) // columns
        values = (self.rng.standard_normal(shape) * depth**-0.5).astype(np.float16).astype(np.float32)
        bias = self.rng.standard_normal(columns).astype(np.float32)
        if self.domain.weights == TensorType.FLOAT32:
            return self.const(values), self.const(bias)
        unsigned = self.domain.weights == TensorType.UINT8
        scales = self.rng.uniform(0.9, 1, 1 if unsigned else columns) * 3.0 / 127 * depth**-0.5
        along = [1] * len(shape)
        along[axis] = -1
        zero = 128 if unsigned else 0
        integers = np.clip(np.round(values / scales.reshape(along)), -127, 127).astype(np.int32) + zero
        quantization = Quantization(scales.astype(np.float32), np.full(len(scales), zero, np.int64), axis)
        weights = self.const(integers.astype(self.domain.weights.dtype))
        self.tensors[weights] = replace(self.tensors[weights], quantization=quantization)
        if self.domain.quantization is None:
            return weights, self.const(bias)
        steps = scales * float(self.domain.quantization.scale[0])
        wide = np.int64 if self.domain.type == TensorType.INT16 else np.int32
        known = self.const(np.round(bias / steps).astype(wide))
        zeros = np.zeros(len(steps), np.int64)
        self.tensors[known] = replace(self.tensors[known], quantization=Quantization(steps.astype(np.float32), zeros))
        return weights, known


Variant = Callable[[Net, int], int]


def conv(columns: int, size: int = 1, stride: int = 1, groups: int = 1) -> Variant:
    def apply(g: Net, x: int) -> int:
        depth = g.shape(x)[-1] // groups
        weights, bias = g.weights(columns, size, size, depth, axis=0, columns=columns)
        return g.apply(CONV_2D, [x, weights, bias], Conv2DOptions(Padding.VALID, stride, stride))

    return apply


def depthwise(multiplier: int) -> Variant:
    def apply(g: Net, x: int) -> int:
        columns = g.shape(x)[-1] * multiplier
        weights, bias = g.weights(1, 3, 3, columns, axis=3, columns=columns)
        options = DepthwiseConv2DOptions(Padding.VALID, 1, 1, multiplier)
        return g.apply(DEPTHWISE_CONV_2D, [x, weights, bias], options)

    return apply


def dense(columns: int, *, one_row: bool = False) -> Variant:
    def apply(g: Net, x: int) -> int:
        depth = int(np.prod(g.shape(x))) if one_row else g.shape(x)[-1]
        weights, bias = g.weights(columns, depth, axis=0, columns=columns)
        return g.apply(FULLY_CONNECTED, [x, weights, bias], FullyConnectedOptions())

    return apply


def matmul(columns: int) -> Variant:
    def apply(g: Net, x: int) -> int:
        depth = g.shape(x)[-1]
        if g.domain.quantization is not None:
            return g.apply(BATCH_MATMUL, [x, g.known((depth, columns))], BatchMatMulOptions())
        weights, _ = g.weights(depth, columns, axis=1, columns=columns)
        if g.domain.weights != TensorType.FLOAT32:  # one scale
            g.tensors[weights] = replace(g.tensors[weights], quantization=by(0.01))
        return g.apply(BATCH_MATMUL, [x, weights], BatchMatMulOptions())

    return apply


def transposed(columns: int) -> Variant:
    def apply(g: Net, x: int) -> int:
        images, height, width, depth = g.shape(x)
        weights, _ = g.weights(columns, 3, 3, depth, axis=0, columns=columns)
        shape = g.const(np.array([images, 2 * height, 2 * width, columns], np.int32))
        return g.apply(TRANSPOSE_CONV, [shape, weights, x], TransposeConvOptions(Padding.SAME, 2, 2))

    return apply


def pool(op: Op) -> Variant:
    return lambda g, x: g.apply(op, [x], Pool2DOptions(Padding.VALID, 1, 1, 2, 2))


def add_one(g: Net, x: int) -> int:
    return g.apply(binary.ADD, [x, g.known(g.shape(x)[-1:])], binary.AddOptions(pot_scale_int16=False))


def times(g: Net, x: int) -> int:
    return g.apply(binary.MUL, [x, g.known(g.shape(x)[-1:])], binary.MulOptions())


def same(op: Op, options: Any = None) -> Variant:
    return lambda g, x: g.apply(op, [x], options)


def plus(g: Net, a: int, b: int) -> int:
    return g.apply(binary.ADD, [a, b], binary.AddOptions(pot_scale_int16=False))


def join(g: Net, *parts: int, axis: int = -1) -> int:
    return g.apply(CONCATENATION, parts, ConcatenationOptions(axis))


FLOAT, INT8 = TensorType.FLOAT32, TensorType.INT8
DOMAINS = {
    "float": Domain(FLOAT, FLOAT),
    "hybrid": Domain(FLOAT, INT8),
    "int8": Domain(INT8, INT8, by(0.05, 3)),
    "uint8": Domain(TensorType.UINT8, TensorType.UINT8, by(0.05, 120)),
    "int16": Domain(TensorType.INT16, INT8, by(0.0003)),
}
