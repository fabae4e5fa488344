"""From the converter's graph to a Model."""

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from litecl.converter import graph
from litecl.converter.graph import Dims, Function, Module, Value
from litecl.converter.versions import version_of
from litecl.interpreter import shapes
from litecl.interpreter.errors import ConversionError, ModelError
from litecl.interpreter.graph import ABSENT, Model, Node, Shape, Signature, Subgraph, TensorSpec
from litecl.interpreter.op import ControlOp, Op

_OPEN_SIZES = (1, 8, 32, 128, 256)


def emit(modules: dict[str, Module]) -> Model:
    """The model whose signatures, by key, are the modules' entry points."""
    subgraphs, signatures = [], []
    for index, (key, module) in enumerate(modules.items()):
        emitter = _Emitter(module)
        subgraphs.append(emitter.subgraph("main" if index == 0 else key))
        inputs = dict(zip(module.input_names, map(emitter.index, module.main.inputs), strict=True))
        outputs = dict(zip(module.output_names, map(emitter.index, module.main.outputs), strict=True))
        signatures.append(Signature(key, inputs, outputs, index))
    return _with_shapes(Model(tuple(subgraphs), tuple(signatures), description="litecl"))


class _Emitter:
    def __init__(self, module: Module) -> None:
        self._function: Function = module.main
        self._tensors: list[TensorSpec] = []
        self._indices: dict[Value, int] = {}
        self._constants: dict[Hashable, int] = {}
        self._names: dict[str, int] = {}
        for name, value in zip(module.input_names, module.main.inputs, strict=True):
            self._add(value, f"serving_default_{name}:0")

    def subgraph(self, name: str) -> Subgraph:
        function = self._function
        nodes = [self._node(node) for node in function.nodes]
        inputs = tuple(map(self.index, function.inputs))
        outputs = tuple(map(self.index, function.outputs))
        return Subgraph(tuple(self._tensors), inputs, outputs, tuple(nodes), name)

    def index(self, value: Value) -> int:
        """The tensor of a value; equal constants share one."""
        if value in self._indices:
            return self._indices[value]
        if value.data is None:
            return self._add(value, value.name)
        data = value.data
        content = data.tobytes() if not data.dtype.hasobject else repr(data.tolist()).encode()
        key = (value.type, data.shape, hashlib.blake2b(content, digest_size=16).digest())
        if key not in self._constants:
            self._constants[key] = self._add(value, value.name)
        self._indices[value] = self._constants[key]
        return self._indices[value]

    def _node(self, node: graph.Node) -> Node:
        assert isinstance(node.op, Op | ControlOp), f"{node} was not lowered"
        inputs = tuple(ABSENT if value is None else self.index(value) for value in node.inputs)
        outputs = tuple(self.index(value) for value in node.outputs)
        return Node(node.op, inputs, outputs, node.options, version=node.op.versions.start)

    def _add(self, value: Value, name: str) -> int:
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        shape = None if value.shape is None else tuple(1 if d is None else d for d in value.shape)
        signature = None if value.shape is None or None not in value.shape else _signature(value.shape)
        self._tensors.append(
            TensorSpec(
                value.type,
                shape,
                f"{name}_{count}" if count else name,
                None if value.data is None else np.asarray(value.data, order="C"),
                shape_signature=signature,
                is_variable=value.is_state,
            )
        )
        self._indices[value] = len(self._tensors) - 1
        return self._indices[value]


def _signature(shape: Dims) -> tuple[int, ...]:
    return tuple(-1 if d is None else d for d in shape)


def _with_shapes(model: Model) -> Model:
    """The model with the shapes that follow from its inputs, and the versions that its nodes need.

    Open dimensions get the smallest of some sizes that the model can be run with; an open batch is 1.
    """
    failure: ModelError | None = None
    for size in _OPEN_SIZES:
        try:
            known = shapes.propagate(model, {i: _entry(g, size) for i, g in enumerate(model.subgraphs)})
        except ModelError as error:
            failure = failure or error
            continue
        pairs = zip(model.subgraphs, known, strict=True)
        return replace(model, subgraphs=tuple(_completed(subgraph, specs) for subgraph, specs in pairs))
    raise ConversionError(f"the converted model does not hold together: {failure}") from failure


def _entry(subgraph: Subgraph, size: int) -> list[Shape]:
    """The shapes of the inputs, open dimensions other than the batch being ``size``."""
    specs = [subgraph.tensors[t] for t in subgraph.inputs]
    declared = [spec.shape_signature or spec.shape or () for spec in specs]
    return [tuple(d if d >= 0 else size if axis else 1 for axis, d in enumerate(shape)) for shape in declared]


def _completed(subgraph: Subgraph, known: Sequence[TensorSpec]) -> Subgraph:
    tensors = tuple(
        declared if spec.shape is None else replace(declared, shape=spec.shape)
        for declared, spec in zip(subgraph.tensors, known, strict=True)
    )
    nodes = tuple(
        replace(node, version=version_of(node, [None if t == ABSENT else tensors[t] for t in node.inputs]))
        for node in subgraph.nodes
    )
    return replace(subgraph, tensors=tensors, nodes=nodes)


