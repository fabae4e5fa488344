"""Recognises the layers of Keras' ``quantize("int8")``, which round their input by rows and multiply integers.

TFLite's FULLY_CONNECTED does both, on floats and INT8 weights.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from litecl.converter.graph import Function, Node, Value, constant
from litecl.converter.own_ops import DENSE_OF_BYTES
from litecl.converter.passes.match import AnyTensor, Constant, Number, Pattern, match
from litecl.converter.records import Grid
from litecl.interpreter.graph import Array
from litecl.interpreter.schema import TensorType

_LARGEST = 127
_MAGNITUDE = Pattern("Max", [Pattern("Abs", [AnyTensor("x")]), Constant("axes")])
_SCALE = Pattern("RealDiv", [Number(_LARGEST), Pattern("AddV2", [_MAGNITUDE, Constant("epsilon")])], name="scale")
_ROUNDED = Pattern("Round", [Pattern("Mul", [AnyTensor("x"), _SCALE])])
_CLIPPED = Pattern("Maximum", [Pattern("Minimum", [_ROUNDED, Number(_LARGEST)]), Number(-_LARGEST)])
_INTEGERS = Pattern("Cast", [_CLIPPED])
_DIVISOR = Pattern("Mul", [Constant("kernel_scale"), AnyTensor("scale")])
_MOVES = ("Reshape", "Transpose", "ExpandDims", "Squeeze")


def fuse_integer_dense(function: Function) -> None:
    """Turn cast(integers(x) @ w) / (scale(x) * scale of w) into one product of x and w; w keeps its integers."""
    for node in list(function.nodes):
        if node.op == "RealDiv" and node.output.type == TensorType.FLOAT32:
            _fuse(function, node)
    function.tidy()


def _fuse(function: Function, node: Node) -> None:
    cast, divisor = node.input(0).producer, match(_DIVISOR, node.input(1))
    if cast is None or cast.op != "Cast" or divisor is None:
        return
    source, after = _behind_moves(cast.input(0))
    product = source.producer
    if product is None or product.op != "BatchMatMulV3" or product.attrs["adj_x"]:
        return
    kernel = product.input(1).data
    if kernel is None or kernel.dtype != np.int8 or kernel.ndim != 2 or not kernel.size or kernel.min() < -_LARGEST:
        return
    integers, before = _behind_moves(product.input(0))
    rounded = match(_INTEGERS, integers)
    scale, by = _behind_moves(divisor["scale"])[0], divisor["kernel_scale"].data
    if rounded is None or integers.type != TensorType.INT8 or rounded["scale"] is not scale or by is None:
        return
    if not (np.isfinite(by).all() and (by > 0).all()):
        return
    weights = kernel if product.attrs["adj_y"] else kernel.T
    units = _of_units(by, node.output, len(weights), after)
    result = _moved(function, rounded["x"], before)
    step = 1 / (np.ones(1) if units is None else units).astype(np.float64)
    ends = (_LARGEST * step).astype(np.float32)
    stored = constant(np.ascontiguousarray(weights), product.input(1).name, Grid(-ends, ends, 0))
    shape = None if result.shape is None else (*result.shape[:-1], len(weights))
    result = function.emit(DENSE_OF_BYTES, [result, stored], (TensorType.FLOAT32, shape), product.name)
    result = _moved(function, result, after)
    if units is None:
        result = function.emit("RealDiv", [result, divisor["kernel_scale"]], node.output, node.name, **node.attrs)
    function.replace_node(node, [result])


def _behind_moves(value: Value) -> tuple[Value, Sequence[Node]]:
    """Return the source of a value behind operators that only move elements, and these operators in order."""
    moves: list[Node] = []
    while value.producer is not None and value.producer.op in _MOVES:
        moves.insert(0, value.producer)
        value = value.producer.input(0)
    return value, moves


def _moved(function: Function, value: Value, moves: Sequence[Node]) -> Value:
    """Apply operators that only move elements to floats."""
    for move in moves:
        attrs: dict[str, Any] = {**move.attrs, "T": TensorType.FLOAT32}
        like = (TensorType.FLOAT32, move.output.shape)
        value = function.emit(move.op, [value, *move.inputs[1:]], like, move.name, **attrs)
    return value


def _of_units(scale: Array, result: Value, units: int, after: Sequence[Node]) -> Array | None:
    """Return the scale of each unit; None if the result's dimensions don't map to units.

    after: the operators that move the units' results; a RESHAPE may split the last dimension.
    """
    axes = list(np.flatnonzero(np.array(scale.shape) > 1))
    tail = scale.shape[axes[0] :] if axes else ()
    if any(move.op != "Reshape" for move in after) or result.shape is None:
        return None
    divided = result.shape[len(result.shape) - len(tail) :] == tail
    return scale.reshape(-1) if scale.size == 1 or (scale.size == units and divided) else None
