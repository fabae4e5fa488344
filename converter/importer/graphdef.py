"""From a ConcreteFunction to the converter's graph.

Its GraphDef carries a shape for every tensor; the variables that it captures are bound as numpy arrays, so that no
weight passes through a protobuf message (which may not exceed 2 GiB).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from litecl.converter.graph import Dims, Function, Module, Node, Value, Variable
from litecl.converter.importer.types import attribute, proto_dims, tensor_type
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.schema import TensorType


def import_function(concrete: Any, input_names: Sequence[str], output_names: Sequence[str]) -> Module:
    """A module whose entry point is a ConcreteFunction, its captures bound to their present values."""
    graph = concrete.graph
    definition = graph.as_graph_def(add_shapes=True)
    main = _Reader("main", definition.node).function(
        [tensor.name for tensor in graph.inputs], [tensor.name for tensor in graph.outputs]
    )
    captures = _captures(graph)
    arguments = []
    for tensor, value in zip(graph.inputs, main.inputs, strict=True):
        if tensor.name in captures:
            _bind(value, captures[tensor.name])
        else:
            arguments.append(value)
    main.inputs = arguments
    functions = {f.signature.name: _library_function(f) for f in definition.library.function}
    return Module(main, list(input_names), list(output_names), functions)


def _captures(graph: Any) -> dict[str, Any]:
    """What a function captured, by the name of the tensor that stands for it inside."""
    variables = {id(variable.handle): variable for variable in graph.variables}
    return {inner.name: variables.get(id(outer), outer) for outer, inner in graph.captures}


def _bind(value: Value, captured: Any) -> None:
    if hasattr(captured, "handle"):
        key = getattr(captured, "_unique_id", captured.name)
        value.variable = Variable(captured.name, captured.numpy(), key)
    elif captured.dtype == tf.resource:
        raise ConversionError(
            f"the model captures the resource {value.name!r} (a lookup table, an iterator or an untracked variable), "
            "which a .tflite file cannot hold; keep it out of the function that is converted"
        )
    else:
        value.data = captured.numpy()


def _library_function(definition: Any) -> Function:
    arguments = definition.signature.input_arg
    reader = _Reader(definition.signature.name, definition.node_def)
    for index, argument in enumerate(arguments):
        attrs = definition.arg_attr[index].attr if index in definition.arg_attr else {}
        shapes = attrs["_output_shapes"].list.shape if "_output_shapes" in attrs else ()
        shape = proto_dims(next(iter(shapes))) if len(shapes) else None
        reader.values[argument.name] = Value(tensor_type(argument.type, argument.name), shape, argument.name)
    results = [definition.ret[result.name] for result in definition.signature.output_arg]
    function = reader.function([argument.name for argument in arguments], results)
    function.attrs = {name: attribute(attr) for name, attr in definition.attr.items()}
    return function


class _Reader:
    """Builds a function from NodeDefs. Operands are ``node:k`` in a GraphDef, ``node:result:k`` in a FunctionDef."""

    def __init__(self, name: str, definitions: Sequence[Any]) -> None:
        self.name = name
        self.definitions = {definition.name: definition for definition in definitions}
        self.values: dict[str, Value] = {}
        self.nodes: list[Node] = []

    def function(self, inputs: Sequence[str], outputs: Sequence[str]) -> Function:
        """The function that computes the named tensors from others."""
        arguments = [self._argument(name) for name in inputs]
        for definition in self._in_order():
            self._node(definition)
        return Function(self.name, arguments, [self.values[_tensor(name)] for name in outputs], self.nodes)

    def _argument(self, name: str) -> Value:
        """The value of an argument; the Placeholder that stands for it in a GraphDef is no node."""
        key = _tensor(name)
        if key not in self.values:
            definition = self.definitions.pop(key)
            (shape,) = _output_shapes(definition)
            self.values[key] = Value(tensor_type(definition.attr["dtype"].type, key), shape, key)
        return self.values[key]

    def _in_order(self) -> Iterator[Any]:
        """The nodes, each after those that it reads (the order of a GraphDef promises nothing)."""
        done: set[str] = set()
        for root in self.definitions:
            path = {root: None}
            while path:
                name = next(reversed(path))
                needed = [] if name in done else [_owner(i) for i in self.definitions[name].input]
                missing = [n for n in needed if n in self.definitions and n not in done]
                if missing:
                    self._no_cycle(missing[0], path)
                    path[missing[0]] = None
                    continue
                del path[name]
                if name not in done:
                    done.add(name)
                    yield self.definitions[name]

    def _no_cycle(self, name: str, path: Mapping[str, None]) -> None:
        if name in path:
            raise ConversionError(
                f"{self.definitions[name].op} {name!r} is part of a loop of TensorFlow 1's control flow (Enter, "
                "Switch, Merge, NextIteration); build the model with tf.compat.v1.enable_control_flow_v2()"
            )

    def _node(self, definition: Any) -> None:
        options = {name: attribute(attr) for name, attr in definition.attr.items() if name != "_output_shapes"}
        if definition.op == "Const":
            type_, data = tensor_type(definition.attr["dtype"].type, definition.name), options["value"]
            value = Value(type_, data.shape, definition.name, data)
            self.values[definition.name] = self.values[f"{definition.name}:output:0"] = value
            return
        operands = [self.values[_tensor(name)] for name in definition.input if not name.startswith("^")]
        layout = list(_results(definition, options))
        shapes = _output_shapes(definition) or [None] * len(layout)
        outputs = []
        for position, ((result, index, type_), shape) in enumerate(zip(layout, shapes, strict=True)):
            name = f"{definition.name}:{position}" if position else definition.name
            value = Value(type_, shape, name)
            self.values[name] = self.values[f"{definition.name}:{result}:{index}"] = value
            outputs.append(value)
        self.nodes.append(Node(definition.op, operands, outputs, options, definition.name))


def _results(definition: Any, options: Mapping[str, Any]) -> Iterator[tuple[str, int, TensorType]]:
    """Name, index within the name, and type of every result of a node."""
    op = op_def_registry.get(definition.op)
    if op is None:
        raise ConversionError(
            f"{definition.op} {definition.name!r}: TensorFlow does not know this operator; import the library that "
            "defines it before converting, or take it out of the model"
        )
    for argument in op.output_arg:
        for index, type_ in enumerate(_argument_types(argument, definition, options)):
            yield argument.name, index, type_


def _argument_types(argument: Any, definition: Any, options: Mapping[str, Any]) -> Sequence[TensorType]:
    if argument.type_list_attr:
        enums = definition.attr[argument.type_list_attr].list.type
        return [tensor_type(enum, definition.name) for enum in enums]
    enum = definition.attr[argument.type_attr].type if argument.type_attr else argument.type
    return [tensor_type(enum, definition.name)] * (options[argument.number_attr] if argument.number_attr else 1)


def _tensor(name: str) -> str:
    """The name of a tensor without the index of a first and only one."""
    return name.removesuffix(":0") if name.count(":") == 1 else name


def _owner(name: str) -> str:
    return name.lstrip("^").split(":")[0]


def _output_shapes(definition: Any) -> list[Dims | None]:
    return [proto_dims(shape) for shape in definition.attr["_output_shapes"].list.shape]
