"""Lowers list operators to operators on dense tensors."""

from collections.abc import Callable, Mapping

import numpy as np

from litecl.converter.graph import Node, Value, constant
from litecl.converter.own_ops import UPDATE_SLICE
from litecl.converter.passes.lists.builder import ListNode
from litecl.converter.passes.lists.elements import Extent, dimension, element, resizes
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.schema import TensorType

_INT32 = TensorType.INT32


def _element_type(node: Node) -> TensorType:
    type_ = node.attrs["element_dtype"]
    if type_ is None or type_ == TensorType.VARIANT:
        raise ConversionError(f"{node}: a .tflite file cannot hold a list of lists")
    assert isinstance(type_, TensorType)
    return type_


def _zeros(a: ListNode, length: Value, element_shape: Value) -> list[Value]:
    declared = element_shape.data
    extents: list[Extent] | None = None
    if declared is not None and declared.ndim == 1 and (declared >= 0).all():
        extents = [int(d) for d in declared]
    else:
        extents = element(a.node.output, a.scope)
    if extents is None:
        raise a.error("the size of its elements is known only once one is written; give input_shapes")
    return [a.zeros(length, extents, _element_type(a.node))]


def _reserve(a: ListNode) -> list[Value]:
    return _zeros(a, a.int32(a.node.input(1)), a.node.input(0))


def _empty(a: ListNode) -> list[Value]:
    return _zeros(a, a.const(0), a.node.input(0))


def _set_item(a: ListNode) -> list[Value]:
    dense, index, item = a.dense, a.int32(a.node.input(1)), a.node.input(2)
    row, length = a.row(item), None if dense.shape is None else dense.shape[0]
    if resizes(a.node) and _appends(a, dense, index):
        return [a.joined([dense, row], None if length is None else length + 1)]
    if resizes(a.node) and (length is None or index.data is None or int(index.data) >= length):
        return [_anywhere(a, dense, index, row)]
    if length == 1 and index.data is not None:
        return [row]
    start = a.vector(index)
    if dense.rank != 1:
        first = a.const([1] + [0] * (len(dense.shape or ()) - 1))
        start = a.emit("Mul", [index, first], _INT32, (dense.rank,))
    return [a.emit(UPDATE_SLICE, [dense, row, start], dense.type, dense.shape)]


def _appends(a: ListNode, dense: Value, index: Value) -> bool:
    """Return whether the index is certainly the length of the list."""
    if index.data is not None and dense.shape is not None and dense.shape[0] is not None:
        return bool(int(index.data) == dense.shape[0])
    owner, body = a.scope.owner, a.function
    if owner is None or owner.op != "While" or dense not in body.inputs or index not in body.inputs:
        return False
    k, j = body.inputs.index(dense), body.inputs.index(index)
    start, outer = owner.input(j).data, owner.input(k)
    step = body.outputs[j].producer
    if start is None or outer.shape is None or outer.shape[0] != int(start) or step is None or step.op != "AddV2":
        return False
    if body.outputs[k] is not a.node.output or index not in step.inputs:
        return False
    return any(v is not None and v.data is not None and v.data.size == 1 and int(v.data) == 1 for v in step.inputs)


def _anywhere(a: ListNode, dense: Value, index: Value, row: Value) -> Value:
    """Write at any index, after zeros if the list is shorter."""
    after = a.emit("AddV2", [index, a.const(1)], _INT32, ())
    return a.joined([_resized(a, dense, index), row, a.part(dense, after, None)], None)


def _push_back(a: ListNode) -> list[Value]:
    length = (a.dense.shape or (None,))[0]
    return [a.joined([a.dense, a.row(a.node.input(1))], None if length is None else length + 1)]


def _pop_back(a: ListNode) -> list[Value]:
    last = a.emit("Sub", [a.size(a.dense, 0), a.const(1)], _INT32, ())
    return [a.part(a.dense, None, last), a.pick(a.dense, last)]


def _resized(a: ListNode, dense: Value, size: Value) -> Value:
    """Return the requested number of elements: the first ones, or all and then zeros."""
    shape = dense.shape or ()
    length = a.size(dense, 0)
    if size.data is not None and length.data is not None:
        missing = int(size.data - length.data)
        if missing <= 0:
            return a.part(dense, None, size) if missing else dense
    missing_rows = a.emit("Maximum", [a.emit("Sub", [size, length], _INT32, ()), a.const(0)], _INT32, ())
    first = np.zeros((len(shape), 2), np.int32)
    first[0, 1] = 1
    pads = a.emit("Mul", [missing_rows, constant(first)], _INT32, first.shape)
    known = None if size.data is None else int(size.data)
    kept = a.part(dense, None, size)
    return a.emit("Pad", [kept, pads], dense.type, (known, *shape[1:]))


def _concat(a: ListNode) -> list[Value]:
    """Return the concatenated elements and their lengths, which are equal."""
    dense = a.dense
    shape = dense.shape or ()
    rest = shape[2:]
    if len(shape) < 2 or None in rest:
        raise a.error("the size of its elements is not known")
    total = None if shape[0] is None or shape[1] is None else shape[0] * shape[1]
    target = a.const([-1, *(d for d in rest if d is not None)])
    joined = a.emit("Reshape", [dense, target], dense.type, (total, *rest))
    lengths = a.emit("Fill", [a.vector(a.size(dense, 0)), a.size(dense, 1)], _INT32, (shape[0],))
    type_ = a.node.outputs[1].type
    return [joined, a.emit("Cast", [lengths], type_, lengths.shape, DstT=type_)]


def _split(a: ListNode) -> list[Value]:
    x, lengths = a.node.input(0), a.node.input(2).data
    if lengths is None or not lengths.size or (lengths != lengths[0]).any() or x.shape is None or None in x.shape[1:]:
        raise a.error("its parts may differ in size")
    shape = (len(lengths), int(lengths[0]), *x.shape[1:])
    return [a.emit("Reshape", [x, a.const(shape)], x.type, shape)]


def _scatter(a: ListNode) -> list[Value]:
    x, indices = a.node.input(0), a.node.input(1)
    size = a.node.input(3) if len(a.node.inputs) > 3 else a.const(-1)
    rows = None if x.shape is None else x.shape[0]
    counts = _counts_rows(indices, x) if indices.data is None else indices.data.tolist() == list(range(rows or 0))
    if counts and (_is_rows(size, x) or (size.data is not None and int(size.data) <= (rows or 0))):
        return [x]
    if counts and x.shape is not None:
        return [_resized(a, x, a.emit("Maximum", [a.int32(size), a.size(x, 0)], _INT32, ()))]
    if indices.data is None or size.data is None or x.shape is None or None in x.shape[1:]:
        raise a.error("the indices that it writes to, or the length of its list, are not constant")
    length = max(int(indices.data.max(initial=-1)) + 1, int(size.data))
    shape = (length, *x.shape[1:])
    where = a.const(indices.data.reshape(-1, 1))
    return [a.emit("ScatterNd", [where, x, a.const(shape)], x.type, shape)]


def _scatter_into(a: ListNode) -> list[Value]:
    dense, x, indices = a.dense, a.node.input(1), a.int32(a.node.input(2))
    length = (dense.shape or (None,))[0]
    if indices.data is not None and length is not None and int(indices.data.max(initial=-1)) >= length:
        raise a.error("it writes past the end")
    where = a.emit("ExpandDims", [indices, a.const(1)], _INT32, (*(indices.shape or (None,)), 1))
    return [a.emit("TensorScatterUpdate", [dense, where, x], dense.type, dense.shape)]


def _counts_rows(indices: Value, x: Value) -> bool:
    """Return whether indices are range(0, n) for the n rows of x, as TensorArray.unstack writes them."""
    node = indices.producer
    start = None if node is None or node.op != "Range" else node.input(0).data
    if node is None or start is None or int(start):
        return False
    return _is_rows(node.input(1), x)


def _is_rows(size: Value, x: Value) -> bool:
    """Return whether a number is shape(x)[0]."""
    return dimension(size) == (x, 0)


def _element_shape(a: ListNode) -> list[Value]:
    dense = a.dense
    shape = a.emit("Shape", [dense], a.node.output.type, (dense.rank,), out_type=a.node.output.type)
    return [a.part(shape, a.const(1), None)]


LIST_RULES: Mapping[str, Callable[[ListNode], list[Value]]] = {
    "TensorListFromTensor": lambda a: [a.node.input(0)],
    "TensorListReserve": _reserve,
    "EmptyTensorList": _empty,
    "TensorListGetItem": lambda a: [a.pick(a.dense, a.int32(a.node.input(1)))],
    "TensorListSetItem": _set_item,
    "TensorListPushBack": _push_back,
    "TensorListPopBack": _pop_back,
    "TensorListResize": lambda a: [_resized(a, a.dense, a.int32(a.node.input(1)))],
    "TensorListStack": lambda a: [a.dense],
    "TensorListLength": lambda a: [a.size(a.dense, 0)],
    "TensorListGather": lambda a: [a.pick(a.dense, a.int32(a.node.input(1)))],
    "TensorListScatter": _scatter,
    "TensorListScatterV2": _scatter,
    "TensorListScatterIntoExistingList": _scatter_into,
    "TensorListConcatV2": _concat,
    "TensorListConcat": _concat,
    "TensorListSplit": _split,
    "TensorListElementShape": _element_shape,
}
