"""Converts TensorFlow's types, shapes and attributes to those of the converter's graph."""

from typing import Any

import tensorflow as tf

from litecl.converter.records import Callee, Dims
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.schema import TensorType

_SPECIAL = {
    tf.string: TensorType.STRING,
    tf.resource: TensorType.RESOURCE,
    tf.variant: TensorType.VARIANT,
    tf.bfloat16: TensorType.BFLOAT16,
}
_SPECIAL_BACK = {type_: dtype for dtype, type_ in _SPECIAL.items()}


def tensor_type(dtype: Any, name: str) -> TensorType:
    """Return the type of a tensor, given TensorFlow's DType or its enumeration; ``name`` is for the error."""
    dtype = tf.as_dtype(dtype)
    if dtype in _SPECIAL:
        return _SPECIAL[dtype]
    try:
        return TensorType.of(dtype.as_numpy_dtype)
    except (KeyError, TypeError):
        raise ConversionError(f"{name!r} is of type {dtype.name}, which a .tflite file cannot hold") from None


def tf_type(type_: TensorType) -> Any:
    """Return TensorFlow's DType."""
    return _SPECIAL_BACK[type_] if type_ in _SPECIAL_BACK else tf.as_dtype(type_.dtype)


def dims(shape: Any) -> Dims | None:
    """Return a TensorShape as a tuple."""
    return None if shape.rank is None else tuple(shape.as_list())


def proto_dims(shape: Any) -> Dims | None:
    """Return a TensorShapeProto as a tuple."""
    return None if shape.unknown_rank else tuple(None if dim.size < 0 else dim.size for dim in shape.dim)


def attribute(attr: Any) -> Any:
    """Return an AttrValue in Python: lists as tuples, types as TensorType, functions as Callee, tensors as arrays."""
    kind = attr.WhichOneof("value")
    if kind is None:
        return None
    if kind != "list":
        return _scalar(kind, getattr(attr, kind))
    return tuple(_scalar(field.name, item) for field, items in attr.list.ListFields() for item in items)


def _scalar(kind: str, value: Any) -> Any:
    if kind == "s":
        return value.decode("utf-8", "surrogateescape")
    if kind == "type":
        return _type_or_none(value)
    if kind == "shape":
        return proto_dims(value)
    if kind == "tensor":
        return tf.make_ndarray(value)
    if kind == "func":
        return Callee(value.name, {name: attribute(attr) for name, attr in value.attr.items()})
    return value


def _type_or_none(enum: int) -> TensorType | None:
    try:
        return tensor_type(enum, "attribute")
    except ConversionError:
        return None
