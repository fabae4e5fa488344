"""Divides a layer's input channel-wise at no run-time cost, by dividing the constants or weights of its producer."""

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from litecl.converter.quantization.inserted import Inserted
from litecl.interpreter.graph import ABSENT, Array, Subgraph
from litecl.interpreter.ops.binary import ADD, MUL
from litecl.interpreter.ops.conv_2d import CONV_2D
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED
from litecl.interpreter.schema import ActivationFunctionType, TensorType

_LINEAR = (None, ActivationFunctionType.NONE, ActivationFunctionType.RELU)  # RELU(x / s) is RELU(x) / s


@dataclass(frozen=True)
class _Edit:
    """A node's constant to divide along an axis."""

    number: int
    position: int
    axis: int


def divided(inserted: Inserted, graph: Subgraph, tensor: int, readers: Collection[int], scale: Array) -> bool:
    """Divide a tensor [..., depth] by a positive ``scale`` [depth] in its producer; return whether that is possible.

    readers: the only nodes that may read it, by number, in the graph before any insertions.
    """
    edits = _edits(inserted, graph, tensor, set(readers), len(scale))
    for edit in edits or ():
        _apply(inserted, edit, scale)
    return edits is not None


def _edits(inserted: Inserted, graph: Subgraph, tensor: int, readers: set[int], depth: int) -> list[_Edit] | None:
    """Return the constants to divide; None if the tensor has other readers or an unsuitable producer."""
    reading = {n for n, node in enumerate(graph.nodes) if tensor in node.inputs}
    number = next((n for n, node in enumerate(graph.nodes) if tensor in node.outputs), None)
    if number is None or reading - readers or tensor in graph.outputs or inserted.tensors[tensor].shape is None:
        return None
    node = inserted.nodes[number]
    if getattr(node.options, "fused_activation_function", None) not in _LINEAR:
        return None
    if node.op is FULLY_CONNECTED or node.op is CONV_2D:
        return _of_layer(inserted, graph, number, depth)
    constant = next((p for p, t in enumerate(node.inputs) if _is_row(inserted, t, depth)), None)
    if constant is None or node.op not in (MUL, ADD) or inserted.tensors[tensor].static_shape[-1:] != (depth,):
        return None
    edit = _Edit(number, constant, -1)
    if node.op is MUL:
        return [edit]
    rest = _edits(inserted, graph, node.inputs[1 - constant], {number}, depth)
    return None if rest is None else [edit, *rest]


def _of_layer(inserted: Inserted, graph: Subgraph, number: int, depth: int) -> list[_Edit] | None:
    node = inserted.nodes[number]
    weights, *bias = node.inputs[1:]
    alone = sum(graph.nodes[number].inputs[1] in other.inputs for other in graph.nodes) == 1
    known = all(_is_constant(inserted, t) for t in (weights, *bias) if t != ABSENT)
    if not (alone and known and inserted.tensors[weights].static_shape[0] == depth):
        return None
    return [_Edit(number, 1, 0), *(_Edit(number, 2, -1) for t in bias if t != ABSENT)]


def _apply(inserted: Inserted, edit: _Edit, scale: Array) -> None:
    spec = inserted.tensors[inserted.nodes[edit.number].inputs[edit.position]]
    assert spec.data is not None
    by = scale if edit.axis else scale.reshape(-1, *(1,) * (spec.data.ndim - 1))
    data: Array = np.asarray(spec.data / by, np.float32)
    inserted.replace_constant(edit.number, edit.position, replace(spec, data=data, shape=data.shape), f"divided{edit}")


def _is_constant(inserted: Inserted, tensor: int) -> bool:
    return inserted.tensors[tensor].data is not None and inserted.tensors[tensor].type == TensorType.FLOAT32


def _is_row(inserted: Inserted, tensor: int, depth: int) -> bool:
    """Return whether an operand is a constant with one element per channel."""
    if tensor == ABSENT or not _is_constant(inserted, tensor):
        return False
    spec = inserted.tensors[tensor]
    return spec.size == depth and spec.static_shape[-1:] == (depth,)
