"""Stores a subgraph's constants in fewer bits; nodes read them directly, or dequantized."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from litecl.converter.quantization.formats import Format
from litecl.converter.tensors import Tensors
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.graph import Node, Subgraph, TensorSpec
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops.gather import GATHER
from litecl.interpreter.ops.quantize import DEQUANTIZE
from litecl.interpreter.ops.unary import RELU, RELU6, RELU_N1_TO_1, TANH
from litecl.interpreter.schema import ActivationFunctionType


@dataclass(frozen=True)
class Use:
    """How a node reads a constant: its stored format, and whether a DEQUANTIZE widens it first."""

    form: Format
    widened: bool = False


_ACTIVATIONS = {
    ActivationFunctionType.RELU: RELU,
    ActivationFunctionType.RELU6: RELU6,
    ActivationFunctionType.RELU_N1_TO_1: RELU_N1_TO_1,
    ActivationFunctionType.TANH: TANH,
}

Uses = Mapping[tuple[int, int], Use]
"""By node and position. GATHER reads the stored table, and its result is dequantized."""

Store = Callable[[int, Format], TensorSpec]
"""Makes the stored constant of a tensor."""


def with_stored_weights(
    graph: Subgraph, uses: Uses, store: Store, outputs: Mapping[int, Format] | None = None
) -> Subgraph:
    """Return a subgraph that reads constants as ``uses`` says; constants that nothing reads as before are dropped.

    outputs: the formats of constants that the subgraph returns, dequantized.
    """
    return _Rewrite(graph, uses, store, outputs or {}).run()


def stateful(graph: Subgraph) -> Node | None:
    """Return an operator with states if inputs have open dimensions: LiteRT then gets dequantized constants wrong.

    It dequantizes a constant only once. Resizing an input also resizes states, and dequantized constants in the same
    memory move without being recomputed.
    """
    open_ = any(graph.tensors[t].shape_signature is not None for t in graph.inputs)
    return next((n for n in graph.nodes if open_ and isinstance(n.op, Op) and n.op.states), None)


def check_states(graph: Subgraph, constants: str) -> None:
    """Raise ConversionError if dequantized constants would give wrong results. constants: what to call them."""
    node = stateful(graph)
    if node is not None:
        raise ConversionError(
            f"{constants} and {node.op.name} cannot be combined if an input has an open dimension: give "
            'input_shapes, or convert with quantize="int8" or lstm="while"'
        )


def _activation(node: Node) -> Any:
    return getattr(node.options, "fused_activation_function", None)


class _Rewrite:
    def __init__(self, graph: Subgraph, uses: Uses, store: Store, outputs: Mapping[int, Format]) -> None:
        self._graph, self._uses, self._store, self._outputs = graph, uses, store, outputs
        self._tensors = Tensors(graph.tensors)
        self._stored: dict[tuple[int, Format], int] = {}
        self._wide: dict[tuple[int, Format], int] = {}
        self._free = self._replaced()

    def _replaced(self) -> set[int]:
        """Return the constants that nothing reads as before; their first stored forms take their indices."""
        read = {(n, p): t for n, node in enumerate(self._graph.nodes) for p, t in enumerate(node.inputs)}
        kept = {t for use, t in read.items() if use not in self._uses}
        kept |= {t for t in self._graph.outputs if t not in self._outputs}
        return ({read[use] for use in self._uses} | set(self._outputs)) - kept

    def run(self) -> Subgraph:
        """Return the new subgraph."""
        nodes = [new for number, node in enumerate(self._graph.nodes) for new in self._nodes(number, node)]
        outputs = tuple(self._widened(t, self._outputs[t]) if t in self._outputs else t for t in self._graph.outputs)
        widening = [self._node(DEQUANTIZE, (self._stored[key],), (wide,)) for key, wide in self._wide.items()]
        return replace(self._graph, tensors=tuple(self._tensors), nodes=(*widening, *nodes), outputs=outputs)

    def _nodes(self, number: int, node: Node) -> Iterator[Node]:
        uses = {p: self._uses[number, p] for p in range(len(node.inputs)) if (number, p) in self._uses}
        if not uses:
            yield node
            return
        inputs = list(node.inputs)
        for position, use in uses.items():
            inputs[position] = (self._widened if use.widened else self._narrow)(inputs[position], use.form)
        if node.op is GATHER and not all(use.widened for use in uses.values()):
            yield from self._gathered(replace(node, inputs=tuple(inputs)))
        elif any(use.form.block for use in uses.values()) and _activation(node) in _ACTIVATIONS:
            yield from self._activated(replace(node, inputs=tuple(inputs)))
        else:
            yield self._tensors.versioned(replace(node, inputs=tuple(inputs)))

    def _gathered(self, node: Node) -> Iterator[Node]:
        (output,) = node.outputs
        spec, table = self._tensors[output], self._tensors[node.inputs[0]]
        name = f"{spec.name}/{table.type.name.lower()}"
        narrow = self._tensors.push(replace(spec, type=table.type, quantization=table.quantization, name=name))
        yield self._tensors.versioned(replace(node, outputs=(narrow,)))
        yield self._node(DEQUANTIZE, (narrow,), (output,))

    def _activated(self, node: Node) -> Iterator[Node]:
        """Yield a node and its activation: LiteRT's own blockwise kernels don't apply a fused one."""
        (output,) = node.outputs
        inner = self._tensors.push(replace(self._tensors[output], name=f"{self._tensors[output].name}/linear"))
        options = replace(node.options, fused_activation_function=ActivationFunctionType.NONE)
        yield self._tensors.versioned(replace(node, outputs=(inner,), options=options))
        yield self._node(_ACTIVATIONS[_activation(node)], (inner,), (output,))

    def _narrow(self, tensor: int, form: Format) -> int:
        """Return the stored form of a constant."""
        if (tensor, form) not in self._stored:
            spec = self._store(tensor, form)
            if tensor in self._free:
                self._free.discard(tensor)
                self._tensors[tensor] = spec
                self._stored[tensor, form] = tensor
            else:
                name = f"{spec.name}/{spec.type.name.lower()}"
                self._stored[tensor, form] = self._tensors.push(replace(spec, name=name))
        return self._stored[tensor, form]

    def _widened(self, tensor: int, form: Format) -> int:
        if (tensor, form) not in self._wide:
            self._narrow(tensor, form)
            spec = self._graph.tensors[tensor]
            wide = replace(spec, data=None, quantization=None, name=f"{spec.name}/float32")
            self._wide[tensor, form] = self._tensors.push(wide)
        return self._wide[tensor, form]

    def _node(self, op: Op, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> Node:
        return self._tensors.versioned(Node(op, inputs, outputs, NoOptions()))
