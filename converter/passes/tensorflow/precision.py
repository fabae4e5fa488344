"""Computes other floating-point types in float32, since TFLite has few kernels for them.

The model's inputs and results keep their types by a cast. TFLite can't cast complex128: its operators take the parts
and the magnitude of such inputs, and such results are assembled from their bits.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from litecl.converter.graph import Function, Module, Node, Value
from litecl.converter.records import Callee, Variable
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.graph import Array
from litecl.interpreter.schema import TensorType

Types = Mapping[TensorType, TensorType]

HALVES: Types = {TensorType.FLOAT16: TensorType.FLOAT32, TensorType.BFLOAT16: TensorType.FLOAT32}
DOUBLES: Types = {TensorType.FLOAT64: TensorType.FLOAT32, TensorType.COMPLEX128: TensorType.COMPLEX64}
_PARTS = ("Real", "Imag", "ComplexAbs")
_BY_BITS = ("Bitcast", "DecodeRaw", "ParseTensor", "SerializeTensor")


def use_float32(module: Module, types: Types) -> None:
    """Change all tensors of ``types`` to the types these map to. Raises ConversionError if their bits matter."""
    main = module.main
    before = {value: value.type for value in (*main.inputs, *main.outputs) if value.type in types}
    variables: dict[str, Variable] = {}
    for function in (*main.walk(), *(f for library in module.functions.values() for f in library.walk())):
        _retype(function, types, variables)
    module.variables = [variables.get(variable.key, variable) for variable in module.variables]
    for position, value in enumerate(main.inputs):
        if value in before:
            main.inputs[position] = Value(before[value], value.shape, value.name)
            _narrow(main, main.inputs[position], value)
    for position, value in enumerate(main.outputs):
        if value in before:
            main.outputs[position] = _widened(main, value, before[value])
    if TensorType.COMPLEX128 in before.values():
        main.tidy()


def whole_doubles(module: Module) -> list[str]:
    """Return the names of the casts that make int64 of float64, which may be whole numbers beyond float32's."""
    casts = [node for function in module.main.walk() for node in function.nodes if node.op == "Cast"]
    types = (TensorType.FLOAT64, TensorType.INT64)
    return [cast.name for cast in casts if (cast.input(0).type, cast.output.type) == types]


def _narrow(function: Function, given: Value, value: Value) -> None:
    """Compute a value of the function from an input of another type."""
    if given.type != TensorType.COMPLEX128:
        function.nodes.insert(0, _cast(given, value))
        return
    for node in [node for node in value.users if node.op in _PARTS]:
        _narrow(function, _part(function, node.op_name, given), node.output)
        node.rewire(())
        function.nodes.remove(node)
    if value.users or function.is_output(value):
        parts = [_cast_to(function, _part(function, op, given), TensorType.FLOAT32) for op in ("Real", "Imag")]
        attrs = {"T": TensorType.FLOAT32, "Tout": value.type}
        function.add(Node("Complex", parts, [value], attrs, value.name))


def _part(function: Function, op: str, value: Value) -> Value:
    """Return the real or imaginary part, or the magnitude, of complex128 numbers."""
    types = {"T": TensorType.COMPLEX128, "Tout": TensorType.FLOAT64}
    return function.emit(op, [value], (TensorType.FLOAT64, value.shape), value.name, **types)


def _widened(function: Function, value: Value, to: TensorType) -> Value:
    """Return a result of the function in the model's type."""
    part = value.producer
    if part is not None and part.op == "Cast" and part.input(0).type == to and part.input(0).producer is not None:
        return part.input(0)  # which was only rounded
    if to != TensorType.COMPLEX128:
        return _cast_to(function, value, to)
    types = {"T": value.type, "Tout": TensorType.FLOAT32}
    parts = [function.emit(op, [value], (TensorType.FLOAT32, value.shape), value.name, **types) for op in _PARTS[:2]]
    shape = None if value.shape is None else (*value.shape, 2)
    packed = function.emit("Pack", parts, (TensorType.FLOAT32, shape), value.name, N=2, axis=-1, T=TensorType.FLOAT32)
    wide = _cast_to(function, packed, TensorType.FLOAT64)
    return function.emit("Bitcast", [wide], (to, value.shape), value.name, T=wide.type, type=to)


def _cast(value: Value, result: Value) -> Node:
    return Node("Cast", [value], [result], {"SrcT": value.type, "DstT": result.type, "Truncate": False}, value.name)


def _cast_to(function: Function, value: Value, to: TensorType) -> Value:
    return function.add(_cast(value, Value(to, value.shape, value.name))).output


def _retype(function: Function, types: Types, variables: dict[str, Variable]) -> None:
    values = {value for node in function.nodes for value in (*node.inputs, *node.outputs) if value is not None}
    for node in function.nodes:
        is_by_bits = node.op in _BY_BITS
        if is_by_bits and any(value is not None and value.type in types for value in (*node.inputs, *node.outputs)):
            raise ConversionError(f"{node}: the model computes in float32, so the bits of other types are unknown")
    for node in function.nodes:
        if isinstance(node.options, Mapping):
            node.options = {name: _mapped(option, types) for name, option in node.options.items()}
    for value in (*values, *function.inputs, *function.outputs):
        _retype_value(value, types, variables)


def _retype_value(value: Value, types: Types, variables: dict[str, Variable]) -> None:
    if value.type in types:
        value.type = types[value.type]
        value.data = None if value.data is None else _cast_data(value.data, value.type)
    variable = value.variable
    if variable is not None:
        to = next((new for old, new in types.items() if _is_of(variable.data, old)), None)
        if variable.key not in variables:
            data = variable.data if to is None else _cast_data(variable.data, to)
            variables[variable.key] = replace(variable, data=data)
        value.variable = variables[variable.key]


def _is_of(data: Array, type_: TensorType) -> bool:
    return data.dtype.name == type_.name.lower()


def _cast_data(data: Array, to: TensorType) -> Array:
    """Return an array in another type; finite numbers stay finite."""
    if to == TensorType.FLOAT32 and data.dtype == np.float64:
        largest = np.finfo(np.float32).max
        data = np.where(np.isinf(data), data, np.clip(data, -largest, largest))
    return np.asarray(data.astype(to.dtype))


def _mapped(option: Any, types: Types) -> Any:
    """Return an attribute with its types replaced."""
    if isinstance(option, TensorType):
        return types.get(option, option)
    if isinstance(option, tuple):
        return tuple(_mapped(item, types) for item in option)
    if isinstance(option, Callee):
        return Callee(option.name, {name: _mapped(item, types) for name, item in option.attrs.items()})
    return option
