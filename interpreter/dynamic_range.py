"""How products of float activations and integer weights quantize the activations: ``dynamic_range``.

"reference" is LiteRT's reference kernels: rows are symmetric unless the file says ``asymmetric_quantize_inputs``;
images of CONV_2D are if its filters share a scale. "asymmetric" is XNNPACK, which LiteRT uses by default: each row has
a zero point, and uses all 256 steps; so has each image, or each pixel of one where CONV_2D is a product of pixels.
XNNPACK has no such kernels for DEPTHWISE_CONV_2D, recurrent operators, SVDF and embeddings, and its images of
TRANSPOSE_CONV are those of the reference: these compute the same in both.
"""

from dataclasses import replace
from typing import Literal, get_args

from litecl.interpreter.arithmetic import hybrid
from litecl.interpreter.errors import ArgumentError
from litecl.interpreter.graph import ABSENT, Model, Node, Subgraph
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL
from litecl.interpreter.ops.conv_2d import CONV_2D, NearestConv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED

DynamicRange = Literal["reference", "asymmetric"]

TOLD = {
    "asymmetric": "activations get a zero point, as by XNNPACK, LiteRT's default",
    "reference": "activations are quantized as by LiteRT's reference kernels",
}
"""The modes in words, for reports."""

_PRODUCTS = (FULLY_CONNECTED, BATCH_MATMUL, CONV_2D)


def checked(mode: str) -> str:
    """Return a mode. Raises ArgumentError for a word that is none."""
    if mode not in get_args(DynamicRange):
        raise ArgumentError(f"dynamic_range: expected 'reference' or 'asymmetric', got {mode!r}")
    return mode


def quantized_as(model: Model, mode: str) -> Model:
    """Return a model whose products quantize their activations as ``mode`` says."""
    if checked(mode) == "reference" or not is_dynamic(model):
        return model
    graphs = (replace(g, nodes=tuple(_asymmetric(g, node) for node in g.nodes)) for g in model.subgraphs)
    return replace(model, subgraphs=tuple(graphs))


def is_dynamic(model: Model) -> bool:
    """Return whether a model has products that the mode matters to."""
    return any(_is_hybrid(graph, node) for graph in model.subgraphs for node in graph.nodes)


def _is_hybrid(graph: Subgraph, node: Node) -> bool:
    if node.op not in _PRODUCTS or ABSENT in node.inputs[:2]:
        return False
    x, weights = (graph.tensors[t] for t in node.inputs[:2])
    return hybrid.applies(x, weights)


def _asymmetric(graph: Subgraph, node: Node) -> Node:
    if not _is_hybrid(graph, node):
        return node
    if node.op is CONV_2D:
        return replace(node, options=NearestConv2DOptions(**vars(node.options)))
    return replace(node, options=replace(node.options, asymmetric_quantize_inputs=hybrid.RowKind.NEAREST))
