"""Turns resizing that TFLite lacks into a product with a matrix for rows and one for columns.

TensorFlow's own operator, applied to an identity, gives the matrices; those of a gradient are transposed.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from litecl.converter.graph import Function, Node, Value, constant
from litecl.converter.passes.tensorflow.fold import Evaluate
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.graph import Array
from litecl.interpreter.schema import TensorType

# Positions of operands that are pairs, for rows and columns, and the value that leaves an axis unchanged.
_PAIRS: Mapping[str, Mapping[int, float]] = {
    "ResizeBicubic": {},
    "ResizeArea": {},
    "ScaleAndTranslate": {2: 1.0, 3: 0.0},
}
# Gradients, with the operator they belong to.
_GRADIENTS: Mapping[str, str] = {
    "ResizeBicubicGrad": "ResizeBicubic",
    "ResizeBilinearGrad": "ResizeBilinear",
    "ResizeNearestNeighborGrad": "ResizeNearestNeighbor",
}
_FLOAT32 = TensorType.FLOAT32


def resample_by_products(function: Function, evaluate: Evaluate) -> None:
    """Replace every such operator. Raises ConversionError if a size is unknown."""
    for node in list(function.nodes):
        if node.op in _PAIRS or node.op in _GRADIENTS:
            _replace(function, node, evaluate)
    function.tidy()


def _replace(function: Function, node: Node, evaluate: Evaluate) -> None:
    x, size = node.input(0), _size(node)
    if x.shape is None or None in x.shape[1:] or size is None:
        raise ConversionError(f"{node}: the size of its images must be known; give input_shapes")
    batch, height, width, channels = x.shape
    assert height is not None and width is not None and channels is not None
    high, wide = (int(n) for n in size)
    if x.type != _FLOAT32:
        x = function.emit("Cast", [x], (_FLOAT32, x.shape), node.name, SrcT=x.type, DstT=_FLOAT32, Truncate=False)
    rows, columns = _matrix(node, evaluate, 0, height, high), _matrix(node, evaluate, 1, width, wide)
    flat = _reshaped(function, node, x, (-1, height, width * channels), (batch, height, width * channels))
    tall = _product(function, node, rows, flat, (batch, high, width * channels))
    count = None if batch is None else batch * high
    lines = _reshaped(function, node, tall, (-1, width, channels), (count, width, channels))
    resized = _product(function, node, columns, lines, (count, wide, channels))
    result = _reshaped(function, node, resized, (-1, high, wide, channels), (batch, high, wide, channels))
    function.replace_node(node, [result])


def _size(node: Node) -> Sequence[int] | None:
    """Return height and width of the result."""
    if node.op in _GRADIENTS:
        shape = node.output.shape
        return None if shape is None or shape[1] is None or shape[2] is None else (shape[1], shape[2])
    data = node.input(1).data
    return None if data is None else data.tolist()


def _matrix(node: Node, evaluate: Evaluate, axis: int, size: int, wanted: int) -> Array:
    """Return the weights of the elements along an axis, [wanted, size]."""
    if node.op in _GRADIENTS:
        forward = Node(_GRADIENTS[node.op_name], node.inputs, [Value(_FLOAT32, None)], node.options, node.name)
        try:
            return _matrix(forward, evaluate, axis, wanted, size).T.copy()
        finally:
            forward.rewire([])
    image = np.eye(size, dtype=np.float32).reshape((1, size, 1, size) if axis == 0 else (1, 1, size, size))
    target = [1, 1]
    target[axis] = wanted
    operands = [constant(image), constant(np.array(target, np.int32))]
    for position, neutral in _PAIRS.get(node.op_name, {}).items():
        data = node.input(position).data
        if data is None:
            raise ConversionError(f"{node}: its scale and translation must be constant at conversion")
        pair = np.full(2, neutral, np.float32)
        pair[axis] = data[axis]
        operands.append(constant(pair))
    probe = Node(node.op, operands, [Value(_FLOAT32, (1, *target, size))], node.options, node.name)
    (weights,) = evaluate([probe], [probe.output])
    return np.asarray(weights, np.float32).reshape(wanted, size)


def _reshaped(
    function: Function, node: Node, x: Value, target: tuple[int, ...], shape: tuple[int | None, ...]
) -> Value:
    return function.emit("Reshape", [x, constant(np.array(target, np.int32))], (x.type, shape), node.name)


def _product(function: Function, node: Node, matrix: Array, x: Value, shape: tuple[int | None, ...]) -> Value:
    attrs = {"adj_x": False, "adj_y": False}
    return function.emit("BatchMatMulV2", [constant(matrix, node.name), x], (_FLOAT32, shape), node.name, **attrs)
