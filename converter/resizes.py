"""Fixes resizes of older litert-torch files, which set both align_corners and half_pixel_centers."""

from dataclasses import replace

from litecl.interpreter.graph import Model, Node, Subgraph
from litecl.interpreter.ops.resize import RESIZE_BILINEAR, of_constant_size


def with_one_option(model: Model) -> Model:
    """Return an equivalent model whose RESIZE_BILINEARs to constant sizes run on all of LiteRT's kernels."""
    return replace(
        model,
        subgraphs=tuple(
            replace(graph, nodes=tuple(_with_one_option(graph, node) for node in graph.nodes))
            for graph in model.subgraphs
        ),
    )


def _with_one_option(graph: Subgraph, node: Node) -> Node:
    if node.op is not RESIZE_BILINEAR or graph.tensors[node.inputs[1]].data is None:
        return node
    return replace(node, options=of_constant_size(node.options))
