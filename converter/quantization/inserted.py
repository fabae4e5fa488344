"""Inserts nodes that rotate or scale what a layer reads or writes."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from litecl.converter.quantization.rotation import hadamard
from litecl.converter.quantization.scales import given
from litecl.converter.tensors import Tensors
from litecl.interpreter.graph import ABSENT, Array, Node, Subgraph, TensorSpec
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops.binary import MUL, MulOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.hadamard import HADAMARD_ROTATION, HadamardRotationOptions
from litecl.interpreter.ops.quantize import DEQUANTIZE
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.schema import TensorType


class Inserted:
    """A subgraph under change; nodes keep their numbers until it is finished."""

    def __init__(self, graph: Subgraph) -> None:
        self._graph = graph
        self.tensors = Tensors(graph.tensors)
        self.nodes = list(graph.nodes)
        self._before: dict[int, list[Node]] = {}
        self._after: dict[int, list[Node]] = {}
        self._constants: dict[str, int] = {}
        self._replaced: dict[tuple[int, str], int] = {}
        self._sources: dict[int, int] = {}
        self._first: list[Node] = []
        self._matrices: dict[int, int] = {}
        self._rotated: dict[tuple[int, int, bool], int] = {}

    def replace_weights(self, number: int, spec: TensorSpec, kind: str) -> None:
        """Replace a node's weights. Nodes that shared weights share the replacement of one ``kind``."""
        self.replace_constant(number, 1, spec, kind)

    def replace_constant(self, number: int, position: int, spec: TensorSpec, kind: str) -> None:
        """Replace a node's constant, like ``replace_weights``."""
        node, inputs = self.nodes[number], list(self.nodes[number].inputs)
        source = self._sources.get(inputs[position], inputs[position])
        if (source, kind) not in self._replaced:
            self._replaced[source, kind] = self.tensors.push(replace(spec, name=f"{spec.name}/{kind}"))
            self._sources[self._replaced[source, kind]] = source
        inputs[position] = self._replaced[source, kind]
        self.nodes[number] = replace(node, inputs=tuple(inputs))

    def can_rotate(self, tensor: int, size: int) -> bool:
        """Return whether a tensor's rotation can be expressed: the RESHAPE back allows only one open dimension."""
        spec = self.tensors[tensor]
        if spec.shape is None or not spec.shape:
            return False
        return spec.shape[-1] == size or (spec.shape_signature or ()).count(-1) < 2

    def rotate_input(self, number: int, size: int, *, custom: bool) -> None:
        """Rotate a node's first operand in blocks of its last dimension, once for all nodes that read the tensor."""
        node = self.nodes[number]
        key = (node.inputs[0], size, custom)
        if key not in self._rotated:
            spec = self.tensors[node.inputs[0]]
            self._rotated[key] = self.tensors.push(replace(spec, name=f"{spec.name}/rotated{size}"))
            self._before.setdefault(number, []).extend(self._rotation(key[0], self._rotated[key], size, custom))
        self.nodes[number] = replace(node, inputs=(self._rotated[key], *node.inputs[1:]))

    def rotate_output(self, number: int, size: int, *, custom: bool) -> None:
        """Rotate a node's result."""
        node, (result,) = self.nodes[number], self.nodes[number].outputs
        spec = self.tensors[result]
        inner = self.tensors.push(replace(spec, name=f"{spec.name}/rotated{size}"))
        self._after.setdefault(number, []).extend(self._rotation(inner, result, size, custom))
        self.nodes[number] = replace(node, outputs=(inner,))

    def scale_input(self, numbers: Sequence[int], factors: Array) -> None:
        """Multiply the first operand that these nodes (in order) share by a factor per channel."""
        source = self.nodes[numbers[0]].inputs[0]
        spec = self.tensors[source]
        by = self.tensors.constant(f"{spec.name}/factors{numbers[0]}", factors)
        product = self.tensors.push(replace(spec, name=f"{spec.name}/scaled{numbers[0]}"))
        self._before.setdefault(numbers[0], []).append(self._node(MUL, (source, by), product, MulOptions()))
        for number in numbers:
            self.nodes[number] = replace(self.nodes[number], inputs=(product, *self.nodes[number].inputs[1:]))

    def finished(self) -> tuple[Subgraph, dict[int, int]]:
        """Return the subgraph, and each node's new number."""
        nodes = list(self._first)
        places = {}
        for number, node in enumerate(self.nodes):
            nodes += self._before.get(number, [])
            places[number] = len(nodes)
            nodes += [node, *self._after.get(number, [])]
        tensors, moved = self._compact(nodes)
        return replace(self._graph, tensors=tensors, nodes=tuple(node.moved(moved) for node in nodes)), places

    def _compact(self, nodes: Sequence[Node]) -> tuple[tuple[TensorSpec, ...], dict[int, int]]:
        """Return the tensors and their new indices; replacements take the places of unread tensors."""
        count = len(self._graph.tensors)
        tensors, moved = self.tensors[:count], {t: t for t in (ABSENT, *range(count))}
        read = {t for node in nodes for t in node.inputs} | set(self._graph.outputs)
        used = read | {t for node in nodes for t in node.outputs}
        for (source, _), new in self._replaced.items():
            if source not in read and new in read:
                read.add(source)
                tensors[source], moved[new] = self.tensors[new], source
        for index in range(count, len(self.tensors)):
            if index not in moved and index in used:
                moved[index] = len(tensors)
                tensors.append(self.tensors[index])
        return tuple(tensors), moved

    def _rotation(self, source: int, target: int, size: int, custom: bool) -> list[Node]:
        """Return a rotation's nodes: LiteRT's custom operator, or a matrix product, between RESHAPEs if needed."""
        spec = self.tensors[source]
        if custom and spec.static_shape[-1] % size == 0 and len(spec.static_shape) in (2, 3):
            return [self._node(HADAMARD_ROTATION, (source,), target, HadamardRotationOptions(size, (1,) * size))]
        if spec.static_shape[-1] == size:
            options = FullyConnectedOptions(keep_num_dims=True)
            return [self._node(FULLY_CONNECTED, (source, self._matrix(size), ABSENT), target, options)]
        signature = None if spec.shape_signature is None else (-1, size)
        flat = replace(spec, shape=(spec.size // size, size), shape_signature=signature)
        blocks, product = (
            self.tensors.push(replace(flat, name=f"{spec.name}/{kind}{target}")) for kind in ("blocks", "product")
        )
        dims = spec.shape_signature or spec.static_shape
        return [
            self._node(RESHAPE, (source, self._dims((-1, size))), blocks, ReshapeOptions()),
            self._node(FULLY_CONNECTED, (blocks, self._matrix(size), ABSENT), product, FullyConnectedOptions()),
            self._node(RESHAPE, (product, self._dims(dims)), target, ReshapeOptions()),
        ]

    def _dims(self, dims: tuple[int, ...]) -> int:
        return self._shared(f"dims{dims}", np.array(dims, np.int32))

    def _matrix(self, size: int) -> int:
        """Return the rotation matrix, dequantized from INT2: its elements all have one magnitude."""
        if size not in self._matrices:
            signs = np.sign(hadamard(size)).astype(np.int8)
            by = given(float(hadamard(size)[0, 0]), 0)
            stored = self.tensors.push(TensorSpec(TensorType.INT2, signs.shape, f"hadamard{size}", signs, by))
            wide = self.tensors.push(TensorSpec(TensorType.FLOAT32, signs.shape, f"hadamard{size}/float32"))
            self._first.append(self._node(DEQUANTIZE, (stored,), wide, NoOptions()))
            self._matrices[size] = wide
        return self._matrices[size]

    def _shared(self, name: str, data: Array) -> int:
        if name not in self._constants:
            self._constants[name] = self.tensors.constant(name, data)
        return self._constants[name]

    def _node(self, op: Op, inputs: tuple[int, ...], output: int, options: object) -> Node:
        return self.tensors.versioned(Node(op, inputs, (output,), options))
