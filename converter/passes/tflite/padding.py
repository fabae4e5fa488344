"""Removes a PAD before a convolution that can pad as much itself."""

from dataclasses import replace

import numpy as np

from litecl.converter.graph import Function, Node
from litecl.interpreter.ops.conv_2d import CONV_2D
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D
from litecl.interpreter.ops.pad import PAD
from litecl.interpreter.schema import Padding


def fold_padding(function: Function) -> bool:
    """Make VALID convolutions whose PAD adds SAME padding SAME ones; return whether there was one."""
    changed = False
    for node in list(function.nodes):
        pad = node.input(0).producer if node.op in (CONV_2D, DEPTHWISE_CONV_2D) else None
        if pad is not None and pad.op is PAD and _is_same(node, pad):
            node.options = replace(node.options, padding=Padding.SAME)
            node.rewire([pad.input(0), *node.inputs[1:]])
            changed = True
    function.tidy()
    return changed


def _is_same(conv: Node, pad: Node) -> bool:
    x, pads, filters = pad.input(0).shape, pad.input(1).data, conv.input(1).shape
    if x is None or pads is None or filters is None or conv.options.padding != Padding.VALID:
        return False
    if pads[0].any() or pads[3].any():
        return False
    o = conv.options
    steps = ((o.stride_h, o.dilation_h_factor), (o.stride_w, o.dilation_w_factor))
    return all(pads[axis].tolist() == same_padding(x[axis], filters[axis], *steps[axis - 1]) for axis in (1, 2))


def same_padding(size: int | None, window: int | None, stride: int, dilation: int) -> list[int] | None:
    """Return SAME's padding before and after: enough for ceil(size / stride) windows, the odd one after."""
    if size is None or window is None:
        return None
    reach = (window - 1) * dilation + 1
    total = max(0, (int(np.ceil(size / stride)) - 1) * stride + reach - size)
    return [total // 2, total - total // 2]
