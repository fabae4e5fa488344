"""Writes the converter's graph as a Model."""

import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from litecl.converter.graph import Function, Module, Operator, Value, constant
from litecl.converter.graph import Node as SourceNode
from litecl.converter.lower.tables import is_hashed, options_of
from litecl.converter.open_sizes import with_shapes
from litecl.converter.records import Dims, Grid, Table, Variable
from litecl.converter.tensors import Tensors
from litecl.interpreter.graph import ABSENT, Array, Model, Node, Quantization, Signature, Subgraph, TensorSpec
from litecl.interpreter.op import ControlOp, NoOptions, Op
from litecl.interpreter.ops.control import CALL_ONCE, IF, WHILE, CallOnceOptions, IfOptions, WhileOptions
from litecl.interpreter.ops.hashtable import HASHTABLE, HASHTABLE_IMPORT
from litecl.interpreter.ops.variables import ASSIGN_VARIABLE, VAR_HANDLE, VarHandleOptions
from litecl.interpreter.schema import TensorType

_OPTIONS: Mapping[Operator, Callable[..., Any]] = {IF: IfOptions, WHILE: WhileOptions}


def emit(modules: dict[str, Module]) -> Model:
    """Return the model whose signatures, by key, are the modules' entry points.

    Node bodies become subgraphs after the entry points. A subgraph that runs once initialises the variables.
    """
    program = _Program(len(modules))
    variables = {v.key: v for module in modules.values() for v in module.variables if not _is_compared(v)}
    initial = program.initialiser(list(variables.values())) if variables else None
    signatures = []
    for index, (key, module) in enumerate(modules.items()):
        emitter = _Emitter(program, module.main)
        for name, value in zip(module.input_names, module.main.inputs, strict=True):
            emitter.add(value, f"serving_default_{name}:0")
        program.subgraphs[index] = emitter.subgraph("main" if index == 0 else key, initial)
        inputs = dict(zip(module.input_names, map(emitter.index, module.main.inputs), strict=True))
        outputs = dict(zip(module.output_names, map(emitter.index, module.main.outputs), strict=True))
        signatures.append(Signature(key, inputs, outputs, index))
    model = with_shapes(Model(program.finished(), tuple(signatures), description="litecl"), len(modules))
    return replace(model, subgraphs=tuple(map(_with_versions, model.subgraphs)))


class _Program:
    """The subgraphs of a model, entry points first."""

    def __init__(self, entries: int) -> None:
        self.subgraphs: list[Subgraph | None] = [None] * entries

    def add(self, function: Function) -> int:
        """Add a function as a subgraph and return its index."""
        index = len(self.subgraphs)
        self.subgraphs.append(None)
        self.subgraphs[index] = _Emitter(self, function).subgraph(function.name)
        return index

    def initialiser(self, variables: Sequence[Variable]) -> int:
        """Add a subgraph that initialises variables to their present values, and return its index."""
        function = Function("initialise", [], [])
        for variable in variables:
            if isinstance(variable, Table):
                _import_table(function, variable)
                continue
            handle = Value(TensorType.RESOURCE, (), variable.name)
            options = VarHandleOptions("", variable.key)
            function.add(SourceNode(VAR_HANDLE, [], [handle], options, variable.name))
            value = constant(variable.data, f"{variable.name}/initial")
            function.add(SourceNode(ASSIGN_VARIABLE, [handle, value], [], NoOptions(), variable.name))
        return self.add(function)

    def finished(self) -> tuple[Subgraph, ...]:
        """Return all subgraphs."""
        return tuple(subgraph for subgraph in self.subgraphs if subgraph is not None)


def _is_compared(variable: Variable) -> bool:
    """Return whether a variable is a table that is searched in constants instead of a hash table."""
    return isinstance(variable, Table) and not is_hashed(variable)


def _import_table(function: Function, table: Table) -> None:
    handle = Value(TensorType.RESOURCE, (1,), table.name)
    function.add(SourceNode(HASHTABLE, [], [handle], options_of(table), table.name))
    content = [constant(table.data, f"{table.name}/keys"), constant(table.values, f"{table.name}/values")]
    function.add(SourceNode(HASHTABLE_IMPORT, [handle, *content], [], NoOptions(), table.name))


class _Emitter:
    def __init__(self, program: _Program, function: Function) -> None:
        self._program = program
        self._function = function
        self._tensors = Tensors()
        self._indices: dict[Value, int] = {}
        self._constants: dict[Hashable, int] = {}
        self._names: dict[str, int] = {}

    def subgraph(self, name: str, initial: int | None = None) -> Subgraph:
        """Return the function as a subgraph; it first runs the initialiser, if there is one."""
        function = self._function
        inputs = tuple(map(self.index, function.inputs))
        nodes = [] if initial is None else [Node(CALL_ONCE, (), (), CallOnceOptions(initial))]
        nodes += [self._node(node) for node in function.nodes]
        outputs = tuple(map(self.index, function.outputs))
        return Subgraph(tuple(self._tensors), inputs, outputs, tuple(nodes), name)

    def index(self, value: Value) -> int:
        """Return the index of a value's tensor; equal constants share one."""
        if value in self._indices:
            return self._indices[value]
        if value.data is None:
            return self.add(value, value.name)
        data = value.data
        content = data.tobytes() if not data.dtype.hasobject else repr(data.tolist()).encode()
        grid = None if value.grid is None else (value.grid.low.tobytes(), value.grid.high.tobytes(), value.grid.axis)
        key = (value.type, data.shape, grid, hashlib.blake2b(content, digest_size=16).digest())
        if key not in self._constants:
            self._constants[key] = self.add(value, value.name)
        self._indices[value] = self._constants[key]
        return self._indices[value]

    def _node(self, node: SourceNode) -> Node:
        assert isinstance(node.op, Op | ControlOp), f"{node} was not lowered"
        inputs = tuple(ABSENT if value is None else self.index(value) for value in node.inputs)
        outputs = tuple(self.index(value) for value in node.outputs)
        options = _OPTIONS[node.op](*map(self._program.add, node.bodies)) if node.bodies else node.options
        return Node(node.op, inputs, outputs, options, version=node.op.versions.start)

    def _unique(self, name: str) -> str:
        """Return an unused tensor name: litert-quantizer rejects files with duplicate names."""
        unique, count = name, self._names.get(name, 0)
        while count and unique in self._names:
            unique = f"{name}_{count}"
            count += 1
        self._names[name] = max(count, 1)
        self._names.setdefault(unique, 1)
        return unique

    def add(self, value: Value, name: str) -> int:
        """Add a tensor for a value and return its index."""
        name = self._unique(name)
        shape = None if value.shape is None else tuple(1 if d is None else d for d in value.shape)
        signature = None if value.shape is None or None not in value.shape else _signature(value.shape)
        self._indices[value] = self._tensors.push(
            TensorSpec(
                value.type,
                shape,
                name,
                None if value.data is None else np.asarray(value.data, order="C"),
                quantization=None if value.grid is None else _rounded(value.grid, value.type),
                shape_signature=signature,
                is_variable=value.is_state,
            )
        )
        return self._indices[value]


def _rounded(grid: Grid, type_: TensorType) -> Quantization:
    """Return the scales of an INT8 constant; for floats only the ranges, in case quantization asks for them."""
    if type_ == TensorType.INT8:
        scale = (grid.high / 127).astype(np.float32)
        return Quantization(scale, np.zeros(scale.size, np.int64), grid.axis)
    nothing: Array = np.zeros(0)
    return Quantization(nothing, nothing, grid.axis, grid.low, grid.high)


def _signature(shape: Dims) -> tuple[int, ...]:
    return tuple(-1 if d is None else d for d in shape)


def _with_versions(subgraph: Subgraph) -> Subgraph:
    return replace(subgraph, nodes=tuple(map(Tensors(subgraph.tensors).versioned, subgraph.nodes)))
