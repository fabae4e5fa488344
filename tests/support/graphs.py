"""Graphs of the converter, made by hand."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from litecl.converter.graph import Function, Node, Value, constant
from litecl.converter.records import OwnOp, Variable
from litecl.interpreter.schema import TensorType

F, I, B = TensorType.FLOAT32, TensorType.INT32, TensorType.BOOL  # noqa: E741


def a_value(type_: TensorType = F, *shape: int | None, name: str = "x", **known: Any) -> Value:
    return Value(type_, shape, name, **known)


def an_int(number: int) -> Value:
    return constant(np.array(number, np.int32))


def graph(name: str, inputs: Sequence[Value], nodes: Sequence[Node], outputs: Sequence[Value]) -> Function:
    return Function(name, list(inputs), list(outputs), list(nodes))


def a_node(op: Any, inputs: Sequence[Value], *outputs: Value, bodies: Sequence[Function] = (), **attrs: Any) -> Node:
    return Node(op, inputs, outputs, attrs, f"{op}", bodies)


def ops_of(function: Function) -> list[Any]:
    """The operators of a function: the records of the converter's own, the names of others."""
    return [node.op if isinstance(node.op, OwnOp) else node.op_name for node in function.nodes]


def a_variable(name: str, value: Any) -> Variable:
    return Variable(name, np.asarray(value, np.float32), f"key of {name}")
