"""Fourier transforms as products with constant matrices.

Large composite lengths are split into two factors, with smaller matrices, as Cooley and Tukey do.
https://doi.org/10.1090/S0025-5718-1965-0178586-1
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from litecl.converter.graph import Node, Value, constant
from litecl.converter.passes.tensorflow.complex_parts import Parts, Rule, Splitter
from litecl.converter.records import Dims
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.graph import Array
from litecl.interpreter.schema import TensorType

_DIRECT = 256  # lengths up to which one product is used
_LARGEST_PRIME = 2048


def _transform(inverse: bool, rank: int) -> Rule:
    """Return the rule of a complex transform along the last ``rank`` dimensions."""

    def rule(splitter: Splitter, node: Node) -> Sequence[Parts | Value]:
        f, x = _Fourier(splitter, node, inverse), splitter.of(node.input(0))
        for axis in range(-1, -rank - 1, -1):
            x = f.along(x, axis, f.whole)
        return [x]

    return rule


def _real_transform(rank: int) -> Rule:
    """Return the rule of a real transform; along the last dimension it returns only the first half."""

    def rule(splitter: Splitter, node: Node) -> Sequence[Parts | Value]:
        f, x = _Fourier(splitter, node, False), splitter.of(node.input(0))
        lengths = _lengths(node)
        for axis in range(-1, -rank - 1, -1):
            take = f.half if axis == -1 else f.whole
            x = f.along(f.cut(x, axis, lengths[axis]), axis, take)
        return [x]

    return rule


def _inverse_real_transform(rank: int) -> Rule:
    def rule(splitter: Splitter, node: Node) -> Sequence[Parts | Value]:
        f, x = _Fourier(splitter, node, True), splitter.of(node.input(0))
        lengths = _lengths(node)
        x = f.cut(x, -1, lengths[-1] // 2 + 1)
        for axis in range(-rank, -1):
            x = f.along(f.cut(x, axis, lengths[axis]), axis, f.whole)
        return [f.from_half(x, lengths[-1]).re]

    return rule


def _lengths(node: Node) -> list[int]:
    data = node.input(1).data
    if data is None:
        raise ConversionError(f"{node}: its length must be constant at conversion, and is computed")
    return [int(n) for n in data.reshape(-1)]


class _Fourier:
    """Transforms along the last dimension, in the name of a node."""

    def __init__(self, splitter: Splitter, node: Node, inverse: bool) -> None:
        self._emit = partial(splitter.emit, name=node.name)
        self._splitter = splitter
        self._node = node
        self._inverse = inverse

    def along(self, x: Parts, axis: int, transform: Callable[[Parts], Parts]) -> Parts:
        """Apply a transform along another dimension."""
        if axis == -1:
            return transform(x)
        order = list(range(len(_dims(self._node, x.re))))
        order[axis], order[-1] = order[-1], order[axis]
        turned = self._each(x, lambda part: self._turned(part, order))
        return self._each(transform(turned), lambda part: self._turned(part, order))

    def cut(self, x: Parts, axis: int, size: int) -> Parts:
        """Return the first ``size`` elements along a dimension that has at least as many."""
        dims = list(_dims(self._node, x.re))
        if dims[axis] == size:
            return x
        dims[axis] = size
        wanted = [size if i == axis % len(dims) else -1 for i in range(len(dims))]
        bounds = [constant(np.array(b, np.int32)) for b in ([0] * len(dims), wanted)]
        return self._each(x, lambda part: self._emit("Slice", [part, *bounds], tuple(dims)))

    def whole(self, x: Parts) -> Parts:
        """Return the transform of complex numbers, [..., n] to [..., n]."""
        size = self._size(x.re)
        factor = _factor(size)
        if size <= _DIRECT or factor == 1:
            if size > _LARGEST_PRIME:
                raise ConversionError(
                    f"{self._node}: its length {size} is a prime too large for a matrix; pad to another length"
                )
            return self._product(x, _matrix(size, self._inverse))
        return self._in_two(x, factor, size // factor)

    def half(self, x: Parts) -> Parts:
        """Return the first half of the transform of real numbers, [..., n] to [..., n // 2 + 1]."""
        size = self._size(x.re)
        if size > _DIRECT and _factor(size) > 1:
            return self.cut(self.whole(x), -1, size // 2 + 1)
        return self._product(x, _matrix(size, False)[:, : size // 2 + 1])

    def from_half(self, x: Parts, size: int) -> Parts:
        """Return the real numbers whose transform has this first half, [..., n // 2 + 1] to [..., n]."""
        mirrored = (size - 1) // 2
        weights = np.array([1, *[2] * mirrored, *[1] * (1 - size % 2)])[: size // 2 + 1]
        if size <= 4 * _DIRECT or _factor(size) == 1:
            return self._product(x, _matrix(size, True)[: size // 2 + 1] * weights[:, None], real=True)
        # Transforming the doubled first half gives the whole result as its real part.
        doubled = self._each(x, lambda part: self._scaled(part, weights))
        rest = size - (size // 2 + 1)
        return Parts(self.whole(self._each(doubled, lambda part: self._padded(part, rest))).re)

    def _in_two(self, x: Parts, p: int, q: int) -> Parts:
        """Transform via two factors: element q * a + b goes to p * d + c."""
        dims = _dims(self._node, x.re)
        grid = self._each(x, lambda part: self._reshaped(part, (-1, p, q), (None, p, q)))
        columns = self.whole(self._each(grid, lambda part: self._turned(part, (0, 2, 1))))
        sign = 2j if self._inverse else -2j
        twiddle = np.exp(sign * np.pi * np.outer(np.arange(q), np.arange(p)) / (p * q))
        moved = self._times(columns, twiddle)
        rows = self.whole(self._each(moved, lambda part: self._turned(part, (0, 2, 1))))
        result = self._each(rows, lambda part: self._turned(part, (0, 2, 1)))
        return self._each(result, lambda part: self._restored(part, x.re, dims))

    def _product(self, x: Parts, matrix: Array, *, real: bool = False) -> Parts:
        """Return x times a complex matrix, as one product with the parts side by side."""
        if x.im is None:
            weights = np.hstack([matrix.real, matrix.imag])
        else:
            weights = np.block([[matrix.real, matrix.imag], [-matrix.imag, matrix.real]])
        batch, count = _dims(self._node, x.re)[:-1], matrix.shape[1]
        weights = np.ascontiguousarray(weights[:, :count] if real else weights, np.float32)
        operand = x.re if x.im is None else self._joined(x.re, x.im)
        shape = (*batch, weights.shape[1])
        product = self._emit(
            "BatchMatMulV2", [operand, constant(weights, self._node.name)], shape, adj_x=False, adj_y=False
        )
        if real:
            return Parts(product)
        halves = [Value(TensorType.FLOAT32, (*batch, count), self._node.name) for _ in range(2)]
        axis = constant(np.array(len(batch), np.int32))
        return Parts(*self._splitter.function.add(Node("Split", [axis, product], halves, {"num_split": 2}, "")).outputs)

    def _joined(self, *parts: Value) -> Value:
        *batch, _ = _dims(self._node, parts[0])
        sizes = [_dims(self._node, part)[-1] for part in parts]
        total = None if None in sizes else sum(size for size in sizes if size is not None)
        axis = constant(np.array(len(batch), np.int32))
        return self._emit("ConcatV2", [*parts, axis], (*batch, total), N=len(parts))

    def _times(self, x: Parts, factors: Array) -> Parts:
        re, im = (constant(np.ascontiguousarray(part, np.float32)) for part in (factors.real, factors.imag))
        shape = x.re.shape

        def by(part: Value, factor: Value) -> Value:
            return self._emit("Mul", [part, factor], shape)

        if x.im is None:
            return Parts(by(x.re, re), by(x.re, im))
        left = self._emit("Sub", [by(x.re, re), by(x.im, im)], shape)
        return Parts(left, self._emit("AddV2", [by(x.re, im), by(x.im, re)], shape))

    def _scaled(self, x: Value, weights: Array) -> Value:
        return self._emit("Mul", [x, constant(weights.astype(np.float32))], x.shape)

    def _padded(self, x: Value, count: int) -> Value:
        *batch, size = _dims(self._node, x)
        pads = constant(np.array([*[[0, 0]] * len(batch), [0, count]], np.int32))
        return self._emit("Pad", [x, pads], (*batch, None if size is None else size + count))

    def _turned(self, x: Value, order: Sequence[int]) -> Value:
        dims = _dims(self._node, x)
        operands = [x, constant(np.array(order, np.int32))]
        return self._emit("Transpose", operands, tuple(dims[i] for i in order))

    def _reshaped(self, x: Value, target: tuple[int, ...], shape: Dims) -> Value:
        return self._emit("Reshape", [x, constant(np.array(target, np.int32))], shape)

    def _restored(self, x: Value, like: Value, dims: Dims) -> Value:
        """Return a tensor reshaped like another one of the same size."""
        if dims.count(None) <= 1:
            return self._reshaped(x, tuple(-1 if d is None else d for d in dims), dims)
        shape = self._splitter.function.emit(
            "Shape", [like], (TensorType.INT32, (len(dims),)), self._node.name, out_type=TensorType.INT32
        )
        return self._emit("Reshape", [x, shape], dims)

    def _each(self, x: Parts, apply: Callable[[Value], Value]) -> Parts:
        return Parts(apply(x.re), None if x.im is None else apply(x.im))

    def _size(self, x: Value) -> int:
        size = _dims(self._node, x)[-1]
        if size is None:
            raise ConversionError(f"{self._node}: the length of its signals must be known; give input_shapes")
        return size


def _dims(node: Node, x: Value) -> Dims:
    if x.shape is None:
        raise ConversionError(f"{node}: the rank of its operand must be known")
    return x.shape


def _matrix(size: int, inverse: bool) -> Array:
    """Return the matrix of the transform, [n, n], complex."""
    turns = np.outer(np.arange(size), np.arange(size)) % size
    matrix = np.exp((2j if inverse else -2j) * np.pi / size * turns)
    return np.asarray(matrix / size if inverse else matrix)


def _factor(size: int) -> int:
    """Return the largest factor of a length up to its square root."""
    return max(n for n in range(1, int(size**0.5) + 1) if size % n == 0)


TRANSFORMS: Mapping[str, Rule] = {
    **{
        f"{name}{suffix}": _transform(name == "IFFT", rank)
        for name in ("FFT", "IFFT")
        for rank, suffix in ((1, ""), (2, "2D"), (3, "3D"))
    },
    **{f"RFFT{suffix}": _real_transform(rank) for rank, suffix in ((1, ""), (2, "2D"), (3, "3D"))},
    **{f"IRFFT{suffix}": _inverse_real_transform(rank) for rank, suffix in ((1, ""), (2, "2D"), (3, "3D"))},
}
