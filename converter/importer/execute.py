"""Runs TensorFlow's own operators during conversion, to fold constants and to re-infer shapes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_library, op_def_registry

from litecl.converter.graph import Function, Node, Value
from litecl.converter.importer.types import dims, tf_type
from litecl.converter.records import Callee, Dims, OwnOp
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.graph import Array
from litecl.interpreter.schema import TensorType

# Operators whose declared result shapes are kept; list operators are replaced later.
_DECLARED = ("ReadVariableOp", "LookupTable", "TensorList", "EmptyTensorList")
# TensorFlow evaluates operands that shapes depend on; larger ones are never shapes.
_LARGEST_SHAPE_OPERAND = 1024


def evaluate(nodes: Sequence[Node], wanted: Sequence[Value]) -> list[Array]:
    """Run nodes that depend only on constants and each other; return the wanted values."""
    with tf.Graph().as_default(), tf.device("CPU:0"):
        tensors: dict[Value, Any] = {}
        feeds: dict[Any, Array] = {}
        for node in nodes:
            inputs = [value for value in node.inputs if value is not None]
            for value in inputs:
                if value not in tensors and value.data is not None:
                    tensors[value] = tf.compat.v1.placeholder(tf_type(value.type), value.shape)
                    feeds[tensors[value]] = value.data
            tensors.update(zip(node.outputs, _apply(node, [tensors[v] for v in inputs]), strict=True))
        with tf.compat.v1.Session(config=tf.compat.v1.ConfigProto(device_count={"GPU": 0})) as session:
            try:
                results = session.run([tensors[value] for value in wanted], feeds)
            except tf.errors.OpError as error:
                raise ConversionError(f"a constant part of the model fails: {error.message}") from error
    return [np.asarray(result) for result in results]


def infer_shapes(function: Function) -> None:
    """Infer the shapes of all values of a function and its bodies from the shapes of its inputs."""
    with tf.Graph().as_default():
        tensors = {value: tf.compat.v1.placeholder(tf_type(value.type), value.shape) for value in function.inputs}
        for node in function.nodes:
            inputs = [_symbolic(value, tensors) for value in node.inputs]
            results = _of_bodies(node, inputs) if node.bodies else _apply(node, inputs)
            for value, tensor in zip(node.outputs, results, strict=True):
                tensors[value] = tensor
                value.shape = dims(tensor.shape)


def _of_bodies(node: Node, inputs: Sequence[Any]) -> list[Any]:
    """Return placeholders with the shapes that a node's bodies return; a loop's hold after any number of steps."""
    shapes = [dims(tensor.shape) for tensor in inputs]
    if node.op == "While":
        cond, body = node.bodies
        while True:
            common = list(map(_common, shapes, _shapes_after(body, shapes)))
            if common == shapes:
                break
            shapes = common
        _shapes_after(cond, shapes)
    elif node.op == "If":
        shapes = list(map(_common, *(_shapes_after(branch, shapes[1:]) for branch in node.bodies)))
    else:
        shapes = _shapes_after(node.bodies[0], shapes)
    return [tf.compat.v1.placeholder(tf_type(v.type), s) for v, s in zip(node.outputs, shapes, strict=True)]


def _shapes_after(function: Function, shapes: Sequence[Dims | None]) -> list[Dims | None]:
    for value, shape in zip(function.inputs, shapes, strict=True):
        value.shape = shape
    infer_shapes(function)
    return [value.shape for value in function.outputs]


def _common(a: Dims | None, b: Dims | None) -> Dims | None:
    """Return the dimensions on which two shapes agree."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else None for x, y in zip(a, b, strict=True))


def _symbolic(value: Value | None, tensors: dict[Value, Any]) -> Any:
    assert value is not None
    if value.variable is not None:
        return None  # a handle, which doesn't affect shapes
    if value not in tensors:
        small = value.data is not None and value.data.size <= _LARGEST_SHAPE_OPERAND
        tensors[value] = (
            tf.constant(value.data) if small else tf.compat.v1.placeholder(tf_type(value.type), value.shape)
        )
    return tensors[value]


def _apply(node: Node, inputs: Sequence[Any]) -> list[Any]:
    """Add an operator with the attributes of ``node`` to the current graph."""
    if isinstance(node.op, OwnOp) or node.op_name.startswith(_DECLARED) or not node.outputs:
        shapes = _declared(node, inputs)
        return [tf.compat.v1.placeholder(tf_type(v.type), s) for v, s in zip(node.outputs, shapes, strict=True)]
    definition = op_def_registry.get(node.op)
    if definition is None or any(isinstance(value, Callee) for value in node.attrs.values()):
        raise ConversionError(f"{node}: its shapes cannot be inferred anew; build the model with the wanted shapes")
    try:
        results = op_def_library.apply_op(definition.name, **_arguments(definition, node, inputs))
    except (ValueError, TypeError) as error:
        raise ConversionError(f"{node} does not fit its operands: {error}") from error
    if results is None or isinstance(results, tf.Operation):
        return []
    return list(results) if isinstance(results, list | tuple) else [results]


def _arguments(definition: Any, node: Node, inputs: Sequence[Any]) -> dict[str, Any]:
    """Return operands and attributes by their OpDef names, without attributes that follow from operands."""
    arguments: dict[str, Any] = {}
    inferred: set[str] = set()
    rest = list(inputs)
    for argument in definition.input_arg:
        inferred |= {argument.type_attr, argument.number_attr, argument.type_list_attr}
        count = _count(argument, node)
        taken, rest = rest[:count], rest[count:]
        is_list = bool(argument.number_attr or argument.type_list_attr)
        arguments[argument.name] = taken if is_list else taken[0]
    for attribute in definition.attr:
        value = node.attrs.get(attribute.name)
        if attribute.name not in inferred and (value is not None or attribute.HasField("default_value")):
            arguments[attribute.name] = _raw(value)
    return arguments


def _declared(node: Node, inputs: Sequence[Any]) -> Sequence[Dims | None]:
    """Return the shapes of results that TensorFlow doesn't infer."""
    if isinstance(node.op, OwnOp) and node.op.infer is not None:
        return node.op.infer([dims(tensor.shape) for tensor in inputs])
    return [value.shape for value in node.outputs]


def _count(argument: Any, node: Node) -> int:
    if argument.type_list_attr:
        return len(node.attrs[argument.type_list_attr])
    return int(node.attrs[argument.number_attr]) if argument.number_attr else 1


def _raw(value: Any) -> Any:
    if isinstance(value, TensorType):
        return tf_type(value)
    if isinstance(value, tuple):
        return [_raw(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value
