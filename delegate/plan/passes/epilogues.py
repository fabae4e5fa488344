"""Fuses residual additions and activations into their producer, if its kernel supports them."""

from functools import partial

from litecl.delegate.plan.activations import activation_after
from litecl.delegate.plan.fusion import fuse
from litecl.delegate.plan.graph import NONE, RegionGraph, RegionNode
from litecl.delegate.plan.passes.joins import Places, joins
from litecl.interpreter.match import AnyTensor, Pattern, match_node
from litecl.interpreter.ops.binary import ADD
from litecl.interpreter.schema import TensorType

_SUM = Pattern(ADD, [AnyTensor("result"), AnyTensor("addend")])


def epilogues(graph: RegionGraph) -> RegionGraph:
    """Fuse residual additions and activations into the producers of their inputs."""
    places = joins(graph).places  # kernels read residuals as dense memory, not as rows of a wider tensor
    return fuse(graph, partial(_with_residual, places), _with_activation)


def _is_open(graph: RegionGraph, node: RegionNode) -> bool:
    """Return whether a node can take an epilogue; additions of integers have scales of their own."""
    return graph.specs[node.outputs[0]].type == TensorType.FLOAT32 and node.activation == NONE


def _with_activation(graph: RegionGraph, node: RegionNode) -> RegionNode | None:
    if node.cl_op is None or not node.cl_op.fuses_activation or not _is_open(graph, node):
        return None
    following = activation_after(graph, node.outputs[0])
    return None if following is None else node.followed_by(*following[1], activation=following[0])


def _with_residual(places: Places, graph: RegionGraph, node: RegionNode) -> RegionNode | None:
    """Fuse the addition of a tensor of the same shape and type."""
    if node.cl_op is None or not node.cl_op.fuses_residual or node.residual is not None or not _is_open(graph, node):
        return None
    result = node.outputs[0]
    reader = graph.only_reader(result)
    found = None if reader is None else match_node(graph, _SUM, reader, result=result)
    if reader is None or found is None:
        return None
    addend = found["addend"]
    specs = [graph.specs[t] for t in (result, addend, reader.outputs[0])]
    alike = len({spec.shape for spec in specs}) == 1 and len({spec.type for spec in specs}) == 1
    if not alike or (addend in places and places[addend].row_step is not None):
        return None
    return node.followed_by(reader, residual=addend, activation=reader.activation)
