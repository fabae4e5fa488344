"""Graphs of the converter: as text, in the form that ``describe`` prints, and their parts made by hand."""

import ast
import re
from collections.abc import Mapping, Sequence
from textwrap import dedent
from typing import Any

import numpy as np

from litecl.converter.graph import Function, Module, Node, Value, constant
from litecl.converter.own_ops import OWN_OPS
from litecl.converter.records import Callee, OwnOp, Variable
from litecl.interpreter.schema import TensorType

F, I, B = TensorType.FLOAT32, TensorType.INT32, TensorType.BOOL  # noqa: E741
LIST, HANDLE = TensorType.VARIANT, TensorType.RESOURCE
_OWN_OPS = {op.name: op for op in OWN_OPS}
_ATTRIBUTES = {"F": F, "I": I, "LIST": LIST, "Callee": Callee}


def module_of(text: str) -> Module:
    """Return the program of a text; its functions after the first are the library.

    Numbers stand for constants (int32, or float32 with a point), ``variable NAME`` for a handle, and keyword arguments
    of Python after an operator for its attributes. A value may be read before the line that makes it.
    """
    lines = dedent(text).strip().splitlines()
    main, *library = (_function(lines) for _ in range(sum(line[0] != " " for line in lines)))
    names = ([value.name for value in values] for values in (main.inputs, main.outputs))
    return Module(main, *names, {function.name: function for function in library})


def _function(lines: list[str]) -> Function:
    """Take a function from the lines."""
    head, calls = lines.pop(0), []
    name, arguments = head.strip().removesuffix(")").split("(", 1)
    inputs = _values(arguments)
    while not (line := lines.pop(0)).strip().startswith("return"):
        results, _, call = line.strip().rpartition(" = ")
        bodies = []
        while lines[0].startswith(head[: -len(head.lstrip())] + "    "):
            bodies.append(_function(lines))
        calls.append((_values(results), call, bodies))
    known = {value.name: value for values in (inputs, *(results for results, *_ in calls)) for value in values}
    nodes = [_node(results, call, bodies, known) for results, call, bodies in calls]
    outputs = [_operand(text, known) for text in _split(line.strip().removeprefix("return").strip())]
    return Function(name, inputs, [value for value in outputs if value is not None], nodes)


def _node(results: Sequence[Value], call: str, bodies: Sequence[Function], known: Mapping[str, Value]) -> Node:
    op, operands, attributes = re.fullmatch(r"([\w.]+)\((.*?)\)(?: (.*))?", call).groups()  # type: ignore[union-attr]
    inputs = [_operand(text, known) for text in _split(operands)]
    options = eval(f"dict({attributes or ''})", _ATTRIBUTES.copy())
    return Node(_OWN_OPS.get(op, op), inputs, results, options, op, bodies)


def _operand(text: str, known: Mapping[str, Value]) -> Value | None:
    if text == "-" or text in known:
        return known.get(text)
    if text.startswith("variable "):
        name = text.removeprefix("variable ")
        return Value(HANDLE, (), name, variable=a_variable(name, 2.0))
    data = np.array(ast.literal_eval(text))
    return constant(data.astype({"i": np.int32, "f": np.float32}.get(data.dtype.kind, data.dtype)))


def _values(text: str) -> list[Value]:
    return [_value(*part.removesuffix("]").replace("[", ":").split(":")) for part in _split(text)]


def _value(name: str, type_: str, shape: str) -> Value:
    return Value(TensorType[type_.upper()], tuple(None if d == "?" else int(d) for d in shape.split(",") if d), name)


def _split(text: str) -> list[str]:
    return re.split(r", (?![^\[]*\])", text) if text else []


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
