"""Turns TensorFlow 1's arrays into lists: the flow value becomes the list, and the handle goes away."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from litecl.converter.graph import Function, Node, Value, constant
from litecl.converter.own_ops import GATED
from litecl.interpreter.schema import TensorType

_PASS_ON = ("Enter", "Merge", "Switch", "Exit", "NextIteration", "Identity", GATED)


def raise_arrays(function: Function) -> None:
    """Replace every array operator by a list operator."""
    arrays = [node for node in function.nodes if node.op == "TensorArrayV3"]
    if not arrays:
        return
    for node in list(function.nodes):
        rule = _RULES.get(node.op_name)
        if rule is not None:
            rule(node)
    _mark_lists(function)


def _mark_lists(function: Function) -> None:
    """Give the list type to everything that passes a list on."""
    changed = True
    while changed:
        changed = False
        for node in function.nodes:
            operands = node.inputs[:1] if node.op == "Switch" else node.inputs
            if node.op not in _PASS_ON or not any(v is not None and v.type == TensorType.VARIANT for v in operands):
                continue
            results = node.outputs[:1] if node.op == "Merge" else node.outputs
            changed |= any(value.type != TensorType.VARIANT for value in results)
            for value in results:
                value.type, value.shape = TensorType.VARIANT, ()


def _become(node: Node, op: str, inputs: list[Value], element: TensorType | None, **attrs: Any) -> None:
    node.become(op, inputs, {"element_dtype": element, **attrs})


def _reserve(node: Node) -> None:
    shape = node.attrs["element_shape"]
    dims = np.array(-1, np.int32) if shape is None else np.array([-1 if d is None else d for d in shape], np.int32)
    element = node.attrs["dtype"]
    handle, flow = node.outputs
    flow.type = TensorType.VARIANT
    for user in handle.users:
        if user.op == "Enter":
            user.options = {**user.attrs, "is_constant": True}
    node.outputs = (flow,)
    handle.producer, handle.data = None, np.array(0, np.float32)  # unread in the end
    handle.type, handle.shape = TensorType.FLOAT32, ()
    _become(node, "TensorListReserve", [constant(dims), node.input(0)], element)


def _write(node: Node) -> None:
    _, index, item, flow = node.inputs
    assert index is not None and item is not None and flow is not None
    node.output.type = TensorType.VARIANT
    _become(node, "TensorListSetItem", [flow, index, item], item.type, resize_if_index_out_of_bounds=False)


def _read(node: Node) -> None:
    _become(node, "TensorListGetItem", [node.input(2), node.input(1)], node.output.type)


def _gather(node: Node) -> None:
    indices = node.input(1).producer
    whole = indices is not None and indices.op == "Range" and _is_zero(indices.input(0))
    if whole:
        _become(node, "TensorListStack", [node.input(2)], node.output.type)
    else:
        _become(node, "TensorListGather", [node.input(2), node.input(1)], node.output.type)


def _is_zero(value: Value) -> bool:
    return value.data is not None and not value.data.any()


def _scatter(node: Node) -> None:
    item = node.input(2)
    node.output.type = TensorType.VARIANT
    _become(node, "TensorListScatter", [item, node.input(1)], item.type)


def _concat(node: Node) -> None:
    _become(node, "TensorListConcat", [node.input(1)], node.outputs[0].type)


def _size(node: Node) -> None:
    _become(node, "TensorListLength", [node.input(1)], None)


_RULES: Mapping[str, Callable[[Node], None]] = {
    "TensorArrayV3": _reserve,
    "TensorArrayWriteV3": _write,
    "TensorArrayReadV3": _read,
    "TensorArrayGatherV3": _gather,
    "TensorArrayScatterV3": _scatter,
    "TensorArrayConcatV3": _concat,
    "TensorArraySizeV3": _size,
}
