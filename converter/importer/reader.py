"""Builds functions of the converter's graph from the nodes of a GraphDef or FunctionDef."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tensorflow.python.framework import op_def_registry

from litecl.converter.graph import Function, Node, Value
from litecl.converter.importer.effects import effects_of
from litecl.converter.importer.types import attribute, proto_dims, tensor_type
from litecl.converter.own_ops import GATED
from litecl.converter.records import Dims
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.schema import TensorType


class Reader:
    """Builds a function from NodeDefs. Operands are ``node:k`` in a GraphDef, ``node:result:k`` in a FunctionDef.

    signatures: the OpDefs of functions that nodes call by name, as if they were operators.
    """

    def __init__(
        self, name: str, definitions: Sequence[Any], signatures: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        self.name = name
        self.signatures = signatures
        self.definitions = {definition.name: definition for definition in definitions}
        self.values: dict[str, Value] = {}
        self.nodes: list[Node] = []

    def function(self, inputs: Sequence[str], outputs: Sequence[str]) -> Function:
        """Return the function from the input tensors to the output tensors, by name."""
        arguments = [self._argument(name) for name in inputs]
        for definition in self._in_order():
            self._node(definition)
        return Function(self.name, arguments, [self.values[_tensor(name)] for name in outputs], self.nodes)

    def _argument(self, name: str) -> Value:
        """Return an argument's value; its Placeholder in a GraphDef becomes no node."""
        key = _tensor(name)
        if key not in self.values:
            definition = self.definitions.pop(key)
            (shape,) = _output_shapes(definition)
            self.values[key] = Value(tensor_type(definition.attr["dtype"].type, key), shape, key)
        return self.values[key]

    def _in_order(self) -> Iterator[Any]:
        """Yield the nodes, each after its operands, since a GraphDef's order guarantees nothing.

        In a TensorFlow 1 loop, Merge reads the value of NextIteration before it exists.
        """
        done: set[str] = set()
        for root in self.definitions:
            path = {root: None}
            while path:
                name = next(reversed(path))
                needed = [] if name in done else self._needed(name)
                missing = [n for n in needed if n in self.definitions and n not in done]
                if missing:
                    self._no_cycle(missing[0], path)
                    path[missing[0]] = None
                    continue
                del path[name]
                if name not in done:
                    done.add(name)
                    yield self.definitions[name]

    def _needed(self, name: str) -> list[str]:
        definition = self.definitions[name]
        owners = [_owner(operand) for operand in definition.input]
        return [owner for owner in owners if definition.op != "Merge" or not self._is(owner, "NextIteration")]

    def _is(self, name: str, *ops: str) -> bool:
        return name in self.definitions and self.definitions[name].op in ops

    def _no_cycle(self, name: str, path: Mapping[str, None]) -> None:
        if name in path:
            raise ConversionError(f"{self.definitions[name].op} {name!r} depends on its own result")

    def _operand(self, name: str) -> Value:
        key = _tensor(name)
        if key not in self.values:  # a later NextIteration's
            self.values[key] = Value(TensorType.FLOAT32, None, key)
        return self.values[key]

    def _node(self, definition: Any) -> None:
        if definition.op == "Const":
            options = {"value": attribute(definition.attr["value"])}
            type_, data = tensor_type(definition.attr["dtype"].type, definition.name), options["value"]
            value = self._gated(definition, Value(type_, data.shape, definition.name, data))
            self.values[definition.name] = self.values[f"{definition.name}:output:0"] = value
            return
        operands = [self._operand(name) for name in definition.input if not name.startswith("^")]
        op = self.signatures.get(definition.op) or _defined(definition)
        options = _options(op, definition)
        layout = list(_results(op, definition, options))
        shapes = _output_shapes(definition) or [None] * len(layout)
        outputs = []
        for position, ((result, index, type_), shape) in enumerate(zip(layout, shapes, strict=True)):
            name = f"{definition.name}:{position}" if position else definition.name
            value = self.values.get(name) or Value(type_, shape, name)
            value.type, value.shape = type_, shape
            self.values[name] = self.values[f"{definition.name}:{result}:{index}"] = value
            outputs.append(value)
        self.nodes.append(Node(definition.op, operands, outputs, options, definition.name, effects=effects_of(op)))

    def _gated(self, definition: Any, value: Value) -> Value:
        """Return a constant in a TensorFlow 1 branch, live only where the branch's pivot is."""
        for name in (operand[1:] for operand in definition.input if operand.startswith("^")):
            pivot = self.definitions.get(name)
            is_branch = pivot is not None and pivot.op in ("Identity", "Switch") and name in self.values
            if pivot is not None and is_branch and (pivot.op == "Switch" or self._is(_owner(pivot.input[0]), "Switch")):
                gated = Value(value.type, value.shape, value.name)
                self.nodes.append(Node(GATED, [value, self.values[name]], [gated], {}, definition.name))
                return gated
        return value


def _defined(definition: Any) -> Any:
    """Return the OpDef of a node's operator."""
    op = op_def_registry.get(definition.op)
    if op is None:
        raise ConversionError(
            f"{definition.op} {definition.name!r}: TensorFlow does not know this operator; import the library that "
            "defines it before converting, or take it out of the model"
        )
    return op


def _options(op: Any, definition: Any) -> dict[str, Any]:
    """Return a node's attributes; those that the file leaves out get the operator's defaults."""
    given = {name: attribute(attr) for name, attr in definition.attr.items() if name != "_output_shapes"}
    defaults = (attr for attr in op.attr if attr.name not in given and attr.HasField("default_value"))
    return {attr.name: attribute(attr.default_value) for attr in defaults} | given


def _results(op: Any, definition: Any, options: Mapping[str, Any]) -> Iterator[tuple[str, int, TensorType]]:
    """Yield name, index within the name, and type of every result of a node."""
    for argument in op.output_arg:
        for index, type_ in enumerate(_argument_types(argument, definition, options)):
            yield argument.name, index, type_


def _argument_types(argument: Any, definition: Any, options: Mapping[str, Any]) -> Sequence[TensorType]:
    if argument.type_list_attr:
        enums = definition.attr[argument.type_list_attr].list.type
        return [tensor_type(enum, definition.name) for enum in enums]
    type_ = tensor_type(argument.type, definition.name) if argument.type else options[argument.type_attr]
    if type_ is None:  # a type that .tflite files lack
        type_ = tensor_type(definition.attr[argument.type_attr].type, definition.name)
    return [type_] * (options[argument.number_attr] if argument.number_attr else 1)


def _tensor(name: str) -> str:
    """Return a tensor's name without ``:0``."""
    return name.removesuffix(":0") if name.count(":") == 1 else name


def _owner(name: str) -> str:
    return name.lstrip("^").split(":")[0]


def _output_shapes(definition: Any) -> list[Dims | None]:
    return [proto_dims(shape) for shape in definition.attr["_output_shapes"].list.shape]
