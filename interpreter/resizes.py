"""RESIZE_BILINEARs with both align_corners and half_pixel_centers, which files of older litert-torch have.

To a size that the file holds, LiteRT's default kernels (XNNPACK, which takes no other) only align the corners. To a
size that nodes compute, even from constants, LiteRT applies both, as RESIZE_NEAREST_NEIGHBOR always does.
"""

from dataclasses import replace

from litecl.interpreter.graph import ABSENT, Model, Node, Subgraph
from litecl.interpreter.ops.resize import RESIZE_BILINEAR


def with_one_option(model: Model) -> Model:
    """Return a model whose RESIZE_BILINEARs to constant sizes have the option that LiteRT heeds."""
    if not any(_has_both(graph, node) for graph in model.subgraphs for node in graph.nodes):
        return model
    return replace(model, subgraphs=tuple(map(_of_subgraph, model.subgraphs)))


def _of_subgraph(graph: Subgraph) -> Subgraph:
    nodes = (_aligned(node) if _has_both(graph, node) else node for node in graph.nodes)
    return replace(graph, nodes=tuple(nodes))


def _has_both(graph: Subgraph, node: Node) -> bool:
    if node.op is not RESIZE_BILINEAR or not (node.options.align_corners and node.options.half_pixel_centers):
        return False
    return any(t != ABSENT and graph.tensors[t].data is not None for t in node.inputs[1:2])


def _aligned(node: Node) -> Node:
    return replace(node, options=replace(node.options, half_pixel_centers=False))
