"""The tensors that a layer provides to the rest of a model: steps, whole sequences, the last memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from litecl.converter.unrolled.cells import Cell
from litecl.interpreter.graph import Node, Shape
from litecl.interpreter.ops.concatenation import CONCATENATION
from litecl.interpreter.ops.pack import PACK
from litecl.interpreter.ops.reshape import RESHAPE
from litecl.interpreter.ops.transpose import TRANSPOSE
from litecl.interpreter.steps.links import Links
from litecl.interpreter.steps.views import SWAPPED, root


@dataclass(frozen=True)
class Result:
    """A tensor of the unrolled form, and its shape."""

    tensor: int
    shape: Shape


@dataclass(frozen=True)
class StepResult(Result):
    """The hidden state after a step."""

    index: int


@dataclass(frozen=True)
class MemoryResult(Result):
    """The cell state of an LSTM after the last step."""


@dataclass(frozen=True)
class SequenceResult(Result):
    """All hidden states: time comes first if ``axis`` is 0, batch if it is 1."""

    axis: int
    backwards: bool


def results_of(links: Links, chain: Sequence[Cell]) -> Iterator[Result]:
    """Yield the tensors that a layer can provide in place of a chain."""
    for index, cell in enumerate(chain):
        yield StepResult(cell.h, links.shape(cell.h), index)
    last = chain[-1]
    if last.state != last.h:
        yield MemoryResult(last.state, links.shape(last.state))
    for sequence in _sequences(links, chain):
        yield sequence
        yield from _reordered(links, sequence, chain)


def _sequences(links: Links, chain: Sequence[Cell]) -> Iterator[SequenceResult]:
    """Yield the tensors that join the hidden states of all steps."""
    order = [cell.h for cell in chain]
    for node in {id(node): node for node in _readers(links, order[0])}.values():
        if node.op not in (CONCATENATION, PACK) or not links.is_plain(node) or len(node.inputs) != len(order):
            continue
        joined = [root(links, t) for t in node.inputs]
        axis = _axis(links, node, chain[0])
        if axis is not None and joined in (order, order[::-1]):
            yield SequenceResult(node.outputs[0], links.shape(node.outputs[0]), axis, joined != order)


def _readers(links: Links, tensor: int) -> Iterator[Node]:
    """Yield the nodes that read a tensor, also through reshapes."""
    for node in links.consumers(tensor):
        yield node
        if node.op is RESHAPE and root(links, node.outputs[0]) == tensor:
            yield from links.consumers(node.outputs[0])


def _axis(links: Links, node: Node, cell: Cell) -> int | None:
    """Return the time axis in the element order of a node that joins hidden states."""
    shape = links.shape(node.inputs[0])
    if any(links.shape(t) != shape for t in node.inputs) or not links.shape(node.outputs[0]):
        return None
    axis = node.options.axis
    axis += len(links.shape(node.outputs[0])) if axis < 0 else 0
    outer = int(np.prod(shape[:axis]))
    if outer == 1:
        return 0
    return 1 if outer == cell.batch and int(np.prod(shape[axis:])) == cell.units else None


def _reordered(links: Links, sequence: SequenceResult, chain: Sequence[Cell]) -> Iterator[SequenceResult]:
    """Yield the sequence reshaped, or with time and batch swapped, as nodes compute it."""
    sizes = (len(chain), chain[0].batch)
    whole = (*(sizes if sequence.axis == 0 else sizes[::-1]), chain[0].units)
    for node in links.consumers(sequence.tensor):
        shape = links.shape(node.outputs[0]) if node.outputs else ()
        if node.op is RESHAPE and shape:
            yield replace(sequence, tensor=node.outputs[0], shape=shape)
        elif node.op is TRANSPOSE and links.integers(node.inputs[1]) == SWAPPED and sequence.shape == whole:
            yield replace(sequence, tensor=node.outputs[0], shape=shape, axis=1 - sequence.axis)
