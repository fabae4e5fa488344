"""Converts images with channels first to channels last, as TFLite has them.

Transposes are put around image operators, then moved past elementwise operators until they meet the next one and cancel
out.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from litecl.converter.graph import Function, Node, Value, constant
from litecl.converter.traits import traits_of

# The position of the image operand.
_IMAGES: Mapping[str, int] = {
    **dict.fromkeys(("AvgPool", "BiasAdd", "Conv2D", "DepthToSpace", "DepthwiseConv2dNative", "MaxPool"), 0),
    **dict.fromkeys(("AvgPool3D", "Conv3D", "MaxPool3D", "SpaceToDepth"), 0),
    "Conv2DBackpropInput": 2,
}
_BY_DIMENSION = ("dilations", "ksize", "strides")
_CHANNELS_LAST = {"NCHW": "NHWC", "NCDHW": "NDHWC"}
_ELEMENTWISE = (
    "LeakyRelu",
    "Relu",
    "Relu6",
    "Elu",
    "Selu",
    "Sigmoid",
    "Tanh",
    "Softplus",
    "Abs",
    "Neg",
    "Square",
    "Exp",
)
_OF_TWO = ("Add", "AddV2", "Maximum", "Minimum", "Mul", "Sub")


def put_channels_last(function: Function) -> None:
    """Rewrite every operator that has channels first."""
    channels_first = [node for node in function.nodes if node.op in _IMAGES and _format(node) in _CHANNELS_LAST]
    for node in channels_first:
        _rewrite(function, node)
    if channels_first:
        function.tidy()
        _sink_transposes(function)


def _format(node: Node) -> str:
    return str(node.attrs.get("data_format", ""))


def _rewrite(function: Function, node: Node) -> None:
    position = _IMAGES[node.op_name]
    rank = len(_format(node)) if node.op != "BiasAdd" else (node.output.rank or 4)  # takes tensors of any rank
    last, first = _orders(rank)
    attrs = dict(node.attrs)
    attrs["data_format"] = _CHANNELS_LAST[_format(node)]
    for name in _BY_DIMENSION:
        if attrs.get(name):
            attrs[name] = tuple(attrs[name][i] for i in last)
    if attrs.get("explicit_paddings"):
        pads = np.array(attrs["explicit_paddings"]).reshape(-1, 2)
        attrs["explicit_paddings"] = tuple(pads[last].reshape(-1).tolist())
    inputs = [value for value in node.inputs if value is not None]
    inputs[position] = _transposed(function, inputs[position], last)
    if node.op == "Conv2DBackpropInput":
        inputs[0] = _permuted(function, inputs[0], last)
    shape = None if node.output.shape is None else tuple(node.output.shape[i] for i in last)
    channels_last = function.add(
        Node(node.op, inputs, [Value(node.output.type, shape, node.name)], attrs, node.name), before=node
    )
    function.replace_node(node, [_transposed(function, channels_last.output, first, node.output)])


def _orders(rank: int) -> tuple[list[int], list[int]]:
    """Return the orders of dimensions to channels last, and back to channels first."""
    return [0, *range(2, rank), 1], [0, rank - 1, *range(1, rank - 1)]


def _transposed(function: Function, x: Value, order: Sequence[int], like: Value | None = None) -> Value:
    shape = None if x.shape is None else tuple(x.shape[i] for i in order)
    shape = shape if like is None else like.shape
    return function.emit("Transpose", [x, constant(np.array(order, np.int32))], (x.type, shape), x.name)


def _permuted(function: Function, sizes: Value, order: Sequence[int]) -> Value:
    if sizes.data is not None:
        return constant(sizes.data[list(order)], sizes.name)
    operands = [sizes, constant(np.array(order, np.int32)), constant(np.array(0, np.int32))]
    return function.emit("GatherV2", operands, sizes, sizes.name, batch_dims=0)


def _sink_transposes(function: Function) -> None:
    """Move transposes past elementwise operators that are their only readers."""
    for node in list(function.nodes):
        if node.op in _ELEMENTWISE and traits_of(node.op).like == 0:
            order = _order(function, node.input(0))
            if order is not None:
                _swap(function, node, order, [0])
        elif node.op in _OF_TWO:
            _sink_through(function, node)
    function.tidy()


def _sink_through(function: Function, node: Node) -> None:
    """Move the transpose past an operator if the other operand has the same transpose or is a scalar."""
    orders = [_order(function, value) for value in (node.input(0), node.input(1))]
    known = [i for i in (0, 1) if orders[i] is not None]
    others = [node.input(i) for i in (0, 1) if i not in known]
    if known and all(value.data is not None and value.data.size == 1 and value.data.ndim == 0 for value in others):
        order = orders[known[0]]
        if order is not None and all(orders[i] == order for i in known) and node.output.rank == len(order):
            _swap(function, node, order, known)


def _order(function: Function, value: Value) -> list[int] | None:
    """Return the order of a transpose that only one node reads."""
    node: Any = value.producer
    if node is None or node.op != "Transpose" or function.only_user(value) is None or node.input(1).data is None:
        return None
    return [int(i) for i in node.input(1).data]


def _swap(function: Function, node: Node, order: Sequence[int], positions: Sequence[int]) -> None:
    inputs = list(node.inputs)
    for position in positions:
        producer = node.input(position).producer
        assert producer is not None
        inputs[position] = producer.input(0)
    back = np.argsort(order)
    shape = None if node.output.shape is None else tuple(node.output.shape[i] for i in back)
    outputs = [Value(node.output.type, shape, node.name)]
    swapped = function.add(Node(node.op, inputs, outputs, node.attrs, node.name), before=node)
    operands = [swapped.output, constant(np.array(order, np.int32))]
    moved = Node("Transpose", operands, [Value(node.output.type, node.output.shape, node.name)], {}, node.name)
    function.add(moved, before=node)
    function.replace_node(node, [moved.output])
