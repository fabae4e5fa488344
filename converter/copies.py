"""Copies values that LiteRT would overwrite; ``interpreter/overwritten.py`` explains which, and why.

This is the last step of a conversion, so that nothing removes the copies. A copy is a RESHAPE to the same shape; LiteRT
gives it its own memory if it reads an input or makes an output of a subgraph.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby

from litecl.interpreter.graph import Model, Node, Subgraph, TensorSpec
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.shape import SHAPE, ShapeOptions
from litecl.interpreter.overwritten import handed_on
from litecl.interpreter.schema import TensorType

_HANDLES = (TensorType.RESOURCE, TensorType.VARIANT)


def copy_handed_on(model: Model) -> Model:
    """Return the model with a copy of every output that needs its own memory."""
    graphs = list(model.subgraphs)
    for index, outputs in groupby(handed_on(model), lambda one: one.subgraph):
        graphs[index] = _with_copies(graphs[index], [one.output for one in outputs])
    return replace(model, subgraphs=tuple(graphs))


def _with_copies(graph: Subgraph, positions: Iterable[int]) -> Subgraph:
    tensors, nodes, outputs = list(graph.tensors), list(graph.nodes), list(graph.outputs)
    for position in positions:
        source = outputs[position]
        spec = tensors[source]
        if spec.type in _HANDLES:
            continue
        name, shape, copy = f"{spec.name}/copy{position}", len(tensors), len(tensors) + 1
        rank = None if spec.shape is None else (len(spec.shape),)
        tensors.append(TensorSpec(TensorType.INT32, rank, f"{name}/shape"))
        tensors.append(replace(spec, name=name, is_variable=False))
        nodes.append(Node(SHAPE, (source,), (shape,), ShapeOptions(TensorType.INT32)))
        nodes.append(Node(RESHAPE, (source, shape), (copy,), ReshapeOptions()))
        outputs[position] = copy
    return replace(graph, tensors=tuple(tensors), nodes=tuple(nodes), outputs=tuple(outputs))
