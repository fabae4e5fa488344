"""The shape arithmetic that conversion evaluates symbolically, by operator.

A rule computes the result, or a tuple of results, from operands: arrays of ints and ``Size``s. It raises TypeError,
ValueError or IndexError if it can't handle symbols.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from litecl.interpreter.graph import Array


def _strided_slice(attrs: Mapping[str, Any], operands: list[Array]) -> Any:
    x, begin, end, stride = operands
    if len(begin) != 1 or attrs.get("ellipsis_mask") or attrs.get("new_axis_mask"):
        raise ValueError("not a plain slice of a vector")
    first, last, step = begin[0], end[0], stride[0]
    if attrs.get("shrink_axis_mask"):
        return x[first]
    return x[None if attrs.get("begin_mask") else first : None if attrs.get("end_mask") else last : step]


def _gather(attrs: Mapping[str, Any], operands: list[Array]) -> Any:
    x, indices, *axis = operands
    return np.take(x, indices.astype(np.int64), int(axis[0]) if axis else 0)


def _not_known() -> Any:
    raise ValueError("symbols have no order")


def _concat(attrs: Mapping[str, Any], operands: list[Array]) -> Any:
    return np.concatenate(operands[:-1], int(operands[-1]))


def _stitch(attrs: Mapping[str, Any], operands: list[Array]) -> Any:
    half = len(operands) // 2
    indices = np.concatenate([v.reshape(-1) for v in operands[:half]]).astype(np.int64)
    if sorted(set(indices.tolist())) != list(range(indices.max(initial=-1) + 1)):
        raise ValueError("some elements are unknown")
    result = np.empty(indices.max(initial=-1) + 1, object)
    result[indices] = np.concatenate([v.reshape(-1) for v in operands[half:]])
    return result


def _reduced(attrs: Mapping[str, Any], operands: list[Array]) -> tuple[list[int], ...]:
    """Return, for two broadcast shapes, the axes along which each one's gradient is summed.

    Where one size is a symbol and the other 1, the latter's gradient is summed, whatever the symbol's value. For equal
    shapes TensorFlow sums nothing.
    """
    if list(operands[0]) == list(operands[1]):
        return [], []
    rank = max(map(len, operands))
    x, y = ([1] * (rank - len(shape)) + list(shape) for shape in operands)
    if any(a != b and 1 not in (a, b) for a, b in zip(x, y, strict=True)):
        raise ValueError("symbols that may be equal")
    return tuple([i for i, size in enumerate(shape) if size == 1] for shape in (x, y))


_Rule = Callable[[Mapping[str, Any], list[Array]], Any]
SIZE_RULES: dict[str, _Rule] = {
    "Shape": lambda attrs, v: v[0],
    "Size": lambda attrs, v: np.prod(v[0]),
    "StridedSlice": _strided_slice,
    "Pack": lambda attrs, v: np.stack(v, attrs["axis"]),
    "ConcatV2": _concat,
    "GatherV2": _gather,
    "Range": lambda attrs, v: np.arange(*(int(n) for n in v)).astype(object),
    "Max": lambda attrs, v: v[0] if v[1].size == 0 else _not_known(),
    "Prod": lambda attrs, v: np.multiply.reduce(v[0], axis=None, keepdims=attrs["keep_dims"]),
    "Mul": lambda attrs, v: v[0] * v[1],
    "AddV2": lambda attrs, v: v[0] + v[1],
    "Sub": lambda attrs, v: v[0] - v[1],
    "FloorDiv": lambda attrs, v: v[0] // v[1],
    "Cast": lambda attrs, v: v[0],
    "Reshape": lambda attrs, v: v[0].reshape(v[1].astype(np.int64)),
    "ExpandDims": lambda attrs, v: np.expand_dims(v[0], int(v[1])),
    "Squeeze": lambda attrs, v: np.squeeze(v[0]),
    "DynamicStitch": _stitch,
    "BroadcastGradientArgs": _reduced,
    "Slice": lambda attrs, v: v[0][int(v[1][0]) :][: None if int(v[2][0]) < 0 else int(v[2][0])],
}
