"""Turns TensorFlow 1's arrays into lists: the flow value becomes the list, and the handle goes away."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from litecl.converter.graph import Function, Node, Value, constant
from litecl.converter.own_ops import GATED
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.schema import TensorType

_PASS_ON = ("Enter", "Merge", "Switch", "Exit", "NextIteration", "Identity", GATED)


def raise_arrays(function: Function) -> None:
    """Replace every array operator by a list operator. Raises ConversionError for flows of other arrays."""
    arrays = [node for node in function.nodes if node.op_name in _RULES]
    for node in arrays:
        if node.op != "TensorArrayV3" and _origins(node.inputs[-1]) - {_array(node.input(0))}:
            raise ConversionError(f"{node}: a loop or branch swaps its array for another; write to each in its place")
    if not arrays:
        return
    for op, rule in _RULES.items():
        for node in function.nodes:
            if node.op == op:
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


def _array(handle: Value) -> Node | None:
    """Return the TensorArrayV3 of a handle, which loops and branches may pass on."""
    while handle.producer is not None and handle.producer.op in _PASS_ON:
        handle = handle.producer.input(0)
    return handle.producer


def _origins(flow: Value | None) -> set[Node]:
    """Return the TensorArrayV3 of all arrays that a flow value may stand for."""
    left, seen = [flow], set[Node]()
    while left:
        node = None if (value := left.pop()) is None else value.producer
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.op in _PASS_ON:
            left += node.inputs if node.op == "Merge" else node.inputs[:1]
        elif node.op in _RULES and node.op != "TensorArrayV3":
            left.append(node.inputs[-1])
    return {node for node in seen if node.op == "TensorArrayV3"}


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
    array, index, item, flow = _array(node.input(0)), node.input(1), node.input(2), node.input(3)
    grows = array is not None and bool(array.attrs.get("dynamic_size"))
    node.output.type = TensorType.VARIANT
    _become(node, "TensorListSetItem", [flow, index, item], item.type, resize_if_index_out_of_bounds=grows)


def _read(node: Node) -> None:
    _become(node, "TensorListGetItem", [node.input(2), node.input(1)], node.output.type)


def _gather(node: Node) -> None:
    if _is_whole(node):
        _become(node, "TensorListStack", [node.input(2)], node.output.type)
    else:
        _become(node, "TensorListGather", [node.input(2), node.input(1)], node.output.type)


def _is_whole(gather: Node) -> bool:
    """Return whether indices are range(0, size), as TensorArray.stack writes them."""
    indices, array = gather.input(1).producer, _array(gather.input(0))
    if indices is None or indices.op != "Range" or array is None:
        return False
    start, limit, step = indices.input(0), indices.input(1), indices.input(2)
    if not (_is(start, 0) and _is(step, 1)):
        return False
    length = limit.producer
    if length is not None and length.op == "TensorArraySizeV3":
        return _array(length.input(0)) is array and length.input(1) is gather.input(2)
    size = array.input(0)
    return not array.attrs.get("dynamic_size") and (
        limit is size or (size.data is not None and _is(limit, int(size.data)))
    )


def _is(value: Value, number: int) -> bool:
    return value.data is not None and int(value.data) == number


def _scatter(node: Node) -> None:
    _, indices, item, flow = (node.input(i) for i in range(4))
    array = flow.producer
    node.output.type = TensorType.VARIANT
    if array is not None and array.op == "TensorArrayV3":  # nothing is in it yet
        unknown = constant(np.array(-1, np.int32))
        _become(node, "TensorListScatterV2", [item, indices, unknown, array.input(0)], item.type)
    else:
        _become(node, "TensorListScatterIntoExistingList", [flow, item, indices], item.type)


def _split(node: Node) -> None:
    node.output.type = TensorType.VARIANT
    _become(node, "TensorListSplit", [node.input(1), constant(np.array(-1, np.int32)), node.input(2)], None)


def _concat(node: Node) -> None:
    _become(node, "TensorListConcat", [node.input(1)], node.outputs[0].type)


def _size(node: Node) -> None:
    _become(node, "TensorListLength", [node.input(1)], None)


_RULES: Mapping[str, Callable[[Node], None]] = {  # in order: the others look at sizes and arrays
    "TensorArrayWriteV3": _write,
    "TensorArrayReadV3": _read,
    "TensorArrayGatherV3": _gather,
    "TensorArrayScatterV3": _scatter,
    "TensorArraySplitV3": _split,
    "TensorArrayConcatV3": _concat,
    "TensorArraySizeV3": _size,
    "TensorArrayV3": _reserve,
}
