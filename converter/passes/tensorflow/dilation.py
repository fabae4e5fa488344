"""Turns SpaceToBatchND, convolution, BatchToSpaceND, TensorFlow's dilated convolution, into one convolution."""

from dataclasses import dataclass

import numpy as np

from litecl.converter.graph import Function, Node, Value, constant
from litecl.converter.records import Dims
from litecl.interpreter.graph import Array

_CONVOLUTIONS = ("Conv2D", "DepthwiseConv2dNative")


def fold_dilation(function: Function) -> None:
    """Restore the dilation of convolutions that run on interleaved batches."""
    for node in list(function.nodes):
        dilated = _dilated(node) if node.op == "BatchToSpaceND" else None
        if dilated is not None:
            _rewrite(function, node, dilated)
    function.tidy()


@dataclass(frozen=True, eq=False)
class _Dilated:
    """The nodes of the chain; a 1-D convolution has ExpandDims before it and Squeeze after it, at ``axis``."""

    space: Node
    conv: Node
    axis: int | None
    block: tuple[int, int]
    pads: Array


def _dilated(batch: Node) -> _Dilated | None:
    conv, axis = _producer(batch), None
    if conv is not None and conv.op == "Squeeze" and len(conv.attrs["squeeze_dims"]) == 1:
        axis, conv = conv.attrs["squeeze_dims"][0] % 4, _producer(conv)
    if conv is None or conv.op not in _CONVOLUTIONS or not _is_plain(conv):
        return None
    space = _producer(conv)
    if axis is not None:
        space = _producer(space) if space is not None and space.op == "ExpandDims" else None
    if space is None or space.op != "SpaceToBatchND":
        return None
    block, pads, block_after, crops = (node.input(i).data for node in (space, batch) for i in (1, 2))
    if block is None or pads is None or block_after is None or crops is None:
        return None
    if block.tolist() != block_after.tolist() or len(block) != (2 if axis is None else 1):
        return None
    # Padding minus crops, which only make the size divisible.
    return _spread(space, conv, axis, block, pads - crops)


def _spread(space: Node, conv: Node, axis: int | None, block: Array, pads: Array) -> _Dilated | None:
    if (pads < 0).any():
        return None
    if axis is None:
        return _Dilated(space, conv, axis, (int(block[0]), int(block[1])), pads)
    none = np.zeros_like(pads)
    if axis == 1:
        return _Dilated(space, conv, axis, (1, int(block[0])), np.concatenate([none, pads]))
    return _Dilated(space, conv, axis, (int(block[0]), 1), np.concatenate([pads, none])) if axis == 2 else None


def _producer(node: Node) -> Node | None:
    return node.input(0).producer


def _is_plain(conv: Node) -> bool:
    a = conv.attrs
    return a["data_format"] == "NHWC" and a["padding"] == "VALID" and list(a["strides"]) == [1, 1, 1, 1]


def _padding(conv: Node, block: tuple[int, int], pads: Array) -> str:
    kernel = conv.input(1).shape
    if not pads.any():
        return "VALID"
    if kernel is None or kernel[0] is None or kernel[1] is None:
        return "EXPLICIT"
    total = (np.array([kernel[0], kernel[1]]) - 1) * block
    return "SAME" if (pads == np.stack([total // 2, total - total // 2], 1)).all() else "EXPLICIT"


def _rewrite(function: Function, batch: Node, dilated: _Dilated) -> None:
    x, old, conv = dilated.space.input(0), batch.output, dilated.conv
    padding = _padding(conv, dilated.block, dilated.pads)
    explicit = (0, 0, *dilated.pads.ravel().tolist(), 0, 0) if padding == "EXPLICIT" else ()
    changed = {"dilations": (1, *dilated.block, 1), "padding": padding, "explicit_paddings": explicit}
    if dilated.axis is not None:
        x = _expanded(function, conv, x, dilated.axis)
    result = Value(old.type, _with_one(old.shape, dilated.axis), old.name)
    function.add(Node(conv.op, [x, *conv.inputs[1:]], [result], {**conv.attrs, **changed}, conv.name))
    if dilated.axis is not None:
        squeezed = Value(old.type, old.shape, old.name)
        function.add(Node("Squeeze", [result], [squeezed], {"squeeze_dims": (dilated.axis,)}, conv.name))
        result = squeezed
    function.replace_node(batch, [result])


def _expanded(function: Function, conv: Node, x: Value, axis: int) -> Value:
    result = Value(x.type, _with_one(x.shape, axis), f"{conv.name}/expanded")
    node = Node("ExpandDims", [x, constant(np.array(axis, np.int32))], [result], {}, conv.name)
    return function.add(node).output


def _with_one(shape: Dims | None, axis: int | None) -> Dims | None:
    return shape if shape is None or axis is None else (*shape[:axis], 1, *shape[axis:])
