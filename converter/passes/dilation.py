"""Turns SpaceToBatchND, convolution, BatchToSpaceND, as TensorFlow runs dilated convolutions, into a dilated convolution."""

from dataclasses import dataclass

import numpy as np

from litecl.converter.graph import Function, Node, Value
from litecl.interpreter.graph import Array

_CONVOLUTIONS = ("Conv2D", "DepthwiseConv2dNative")


def fold_dilation(function: Function) -> None:
    """Gives the dilation back to every convolution that is run on interleaved batches."""
    for node in list(function.nodes):
        found = _found(node)
        if found is not None:
            _rewrite(function, node, found)
    function.tidy()


@dataclass(frozen=True, eq=False)
class _Found:
    """space, [expand], conv, [squeeze], batch: the expand and squeeze of a 1-D convolution are not looked through."""

    space: Node
    conv: Node
    block: tuple[int, int]
    padding: str
    pads: Array


def _found(batch: Node) -> _Found | None:
    conv = batch.input(0).producer if batch.op == "BatchToSpaceND" else None
    if conv is None or conv.op not in _CONVOLUTIONS or conv.attrs["data_format"] != "NHWC":
        return None
    space = conv.input(0).producer
    if space is None or space.op != "SpaceToBatchND" or conv.attrs["padding"] != "VALID":
        return None
    operands = [space.input(1).data, space.input(2).data, batch.input(1).data, batch.input(2).data]
    block, pads, block_after, crops = operands
    if block is None or pads is None or block_after is None or crops is None or len(block) != 2:
        return None
    if block.tolist() != block_after.tolist() or list(conv.attrs["strides"]) != [1, 1, 1, 1]:
        return None
    # What remains of the padding once the crops, which only make the size divisible, are taken off.
    real = np.stack([pads[:, 0] - crops[:, 0], pads[:, 1] - crops[:, 1]], 1)
    return _Found(space, conv, (int(block[0]), int(block[1])), _padding(conv, block, real), real)


def _padding(conv: Node, block: Array, pads: Array) -> str:
    kernel = conv.input(1).shape
    if not pads.any():
        return "VALID"
    if kernel is None or kernel[0] is None or kernel[1] is None:
        return "EXPLICIT"
    total = (np.array([kernel[0], kernel[1]]) - 1) * block
    same = np.stack([total // 2, total - total // 2], 1)
    return "SAME" if (pads == same).all() else "EXPLICIT"


def _rewrite(function: Function, batch: Node, found: _Found) -> None:
    if (found.pads < 0).any():
        return
    conv = found.conv
    explicit = (0, 0, *found.pads.ravel().tolist(), 0, 0) if found.padding == "EXPLICIT" else ()
    options = {
        **conv.attrs,
        "dilations": (1, *found.block, 1),
        "padding": found.padding,
        "explicit_paddings": explicit,
    }
    old = batch.output
    result = Value(old.type, old.shape, old.name)
    function.add(Node(conv.op, [found.space.input(0), *conv.inputs[1:]], [result], options, conv.name))
    function.replace_node(batch, [result])
