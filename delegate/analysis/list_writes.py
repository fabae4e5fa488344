"""Replaces TensorList writes, as TensorFlow's converter emits them, with updates that keep the list's shape.

The converter lowers a TensorList to a tensor, and a write of ``item`` at index ``i`` to
``CONCATENATION(SLICE(list, 0, i), item, SLICE(list, i + 1, -1))``. The slices' sizes change at every step, so the shape
of the result is known only at run time. The equivalent ``DYNAMIC_UPDATE_SLICE(list, item, (i, 0, ...))`` has a static
shape.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from litecl.interpreter.errors import LiteclError
from litecl.interpreter.graph import Array, Model, Node, Shape, Subgraph, TensorSpec
from litecl.interpreter.op import ControlOp, NoOptions, Op
from litecl.interpreter.ops.binary import ADD
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.reshape import EXPAND_DIMS, RESHAPE
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.run.resources import agreed, running
from litecl.interpreter.run.shapes import propagate
from litecl.interpreter.schema import ActivationFunctionType

Specs = Sequence[Sequence[TensorSpec]]


def with_lists_in_place(model: Model, specs: Specs, entries: Mapping[int, Sequence[Shape]]) -> tuple[Model, Specs]:
    """Replace all list writes, and return the model with its tensors' new specs; the same model if there are none.

    Repeats, as a replaced write gives its list a static shape, which may reveal others. entries: input shapes of entry
    subgraphs.
    """
    variables = agreed(model, specs, running(model))
    while (changed := update_lists_in_place(model, specs)) is not model:
        try:
            model, specs = changed, propagate(changed, entries, lambda name, spec: variables.get(name) is not None)
        except LiteclError:  # slices that don't fit together, which only running the loop would show
            break
    return model, specs


def update_lists_in_place(model: Model, specs: Sequence[Sequence[TensorSpec]]) -> Model:
    """Replace list writes node by node: nodes keep their positions, and slices that nothing reads any longer remain.
    Return the same model if there are none.
    """
    graphs = tuple(_graph(graph, known) for graph, known in zip(model.subgraphs, specs, strict=True))
    changed = any(new is not old for new, old in zip(graphs, model.subgraphs, strict=True))
    return replace(model, subgraphs=graphs) if changed else model


def learned(graph: Subgraph, loaded: Sequence[TensorSpec], planned: Sequence[TensorSpec]) -> tuple[Node, ...]:
    """Return the node, if any, that provides the values known in the planned model but not in the loaded one.

    Nothing else computes them: their nodes count as folded.
    """
    computed = [t for node in graph.nodes for t in node.outputs if loaded[t].data is None]
    values = {t: value for t in computed if (value := planned[t].data) is not None}
    op = ControlOp("CL_KNOWN", NoOptions, lambda options, inputs: [], lambda options, inputs, _: [*values.values()])
    return (Node(op, (), tuple(values), NoOptions()),) if values else ()


def _graph(graph: Subgraph, specs: Sequence[TensorSpec]) -> Subgraph:
    search = _Writes(graph, specs)
    writes = [write for i in range(len(graph.nodes)) if (write := search.find(i))]
    if not writes:
        return graph
    nodes, tensors = list(graph.nodes), list(graph.tensors)
    for joined, head, start in writes:
        whole, item, position = nodes[head].inputs[0], nodes[joined].inputs[1], len(tensors)
        tensors.append(replace(graph.tensors[nodes[head].inputs[1]], data=None, name="place"))
        nodes[head] = Node(CONCATENATION, start, (position,), ConcatenationOptions(0, ActivationFunctionType.NONE))
        nodes[joined] = Node(DYNAMIC_UPDATE_SLICE, (whole, item, position), nodes[joined].outputs, NoOptions())
    return replace(graph, nodes=tuple(nodes), tensors=tuple(tensors))


class _Writes:
    """Searches one subgraph for list writes."""

    def __init__(self, graph: Subgraph, specs: Sequence[TensorSpec]) -> None:
        self._graph, self._specs = graph, specs
        self._maker = {t: i for i, node in enumerate(graph.nodes) for t in node.outputs}
        self._readers = Counter([*(t for node in graph.nodes for t in node.inputs), *graph.outputs])

    def find(self, joined: int) -> tuple[int, int, tuple[int, int]] | None:
        """Match a write that ends at node ``joined``; return that node, the SLICE of the elements before, and the two
        tensors that make up the write's start indices; None if there is no match.
        """
        node = self._graph.nodes[joined]
        if node.op is not CONCATENATION or len(node.inputs) != 3 or node.options.axis != 0:
            return None
        before, item, after = node.inputs
        head, tail = self._producer(before, SLICE), self._producer(after, SLICE)
        shape = self._specs[item].shape
        if head is None or tail is None or head.inputs[0] != tail.inputs[0] or not shape or shape[0] != 1:
            return None
        if not self._is(head.inputs[1], 0) or not self._is(tail.inputs[2], -1) or self._readers[before] != 1:
            return None
        length, first = self._parts(head.inputs[2], -1), self._parts(tail.inputs[1], 0)
        if length is None or first is None or not self._follows(first[0], length[0]):
            return None
        return joined, self._maker[before], (length[0], first[1])

    def _producer(self, tensor: int, op: Op) -> Node | None:
        node = self._graph.nodes[self._maker[tensor]] if tensor in self._maker else None
        return node if node is not None and node.op is op else None

    def _parts(self, tensor: int, rest: int) -> tuple[int, int] | None:
        """Return the two tensors that start indices or sizes concatenate: an index, and constants equal to ``rest``."""
        node = self._producer(tensor, CONCATENATION)
        if node is None or len(node.inputs) != 2 or not self._is(node.inputs[1], rest):
            return None
        return node.inputs[0], node.inputs[1]

    def _follows(self, following: int, index: int) -> bool:
        """Return whether ``following`` is ``index`` + 1."""
        node = self._producer(self._scalar(following), ADD)
        if node is None:
            return False
        terms = [t for t in node.inputs if t != self._scalar(index)]
        return len(terms) == 1 and self._is(terms[0], 1)

    def _scalar(self, tensor: int) -> int:
        """Return a one-element tensor before any RESHAPE or EXPAND_DIMS."""
        node = self._producer(tensor, RESHAPE) or self._producer(tensor, EXPAND_DIMS)
        return tensor if node is None else self._scalar(node.inputs[0])

    def _is(self, tensor: int, value: int) -> bool:
        data: Array | None = self._specs[tensor].data
        return data is not None and bool(np.all(data == value))
