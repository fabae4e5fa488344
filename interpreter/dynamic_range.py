"""How products of float activations and integer weights quantize the activations: ``dynamic_range``.

"reference" follows LiteRT's reference kernels: rows are symmetric unless the file says ``asymmetric_quantize_inputs``;
images of CONV_2D are symmetric if its filters share a scale. "asymmetric" follows XNNPACK, LiteRT's default: each row
has a zero point and uses all 256 steps; so does each image, or each pixel where CONV_2D is a product of pixels.
XNNPACK reads block scales of FULLY_CONNECTED's weights as bfloat16, rounded to nearest even. It has no such kernels for
DEPTHWISE_CONV_2D, recurrent operators, SVDF and embeddings, and quantizes images of TRANSPOSE_CONV as the reference
does: these compute the same in both modes.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from litecl.interpreter.arithmetic import hybrid
from litecl.interpreter.errors import ArgumentError
from litecl.interpreter.graph import ABSENT, Model, Node, Subgraph, TensorSpec
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL
from litecl.interpreter.ops.conv_2d import CONV_2D, NearestConv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED
from litecl.interpreter.tensor import Quantization

DynamicRange = Literal["reference", "asymmetric"]

TOLD = {
    "asymmetric": "activations get a zero point, as by XNNPACK, LiteRT's default",
    "reference": "activations are quantized as by LiteRT's reference kernels",
}
"""The modes in words, for reports."""

_PRODUCTS = (FULLY_CONNECTED, BATCH_MATMUL, CONV_2D)


def checked(mode: str) -> str:
    """Return a mode. Raises ArgumentError for an unknown one."""
    if mode not in get_args(DynamicRange):
        raise ArgumentError(f"dynamic_range: expected 'reference' or 'asymmetric', got {mode!r}")
    return mode


def quantized_as(model: Model, mode: str) -> Model:
    """Return a model whose products quantize their activations as ``mode`` says."""
    if checked(mode) == "reference" or not is_dynamic(model):
        return model
    return replace(model, subgraphs=tuple(map(_of_xnnpack, model.subgraphs)))


def with_scales_of(model: Model, specs: Sequence[Sequence[TensorSpec]]) -> list[list[TensorSpec]]:
    """Return the specs of a model's tensors with the model's own block scales."""
    pairs = (zip(own, graph.tensors, strict=True) for own, graph in zip(specs, model.subgraphs, strict=True))
    return [[_with_scales(spec, tensor.quantization) for spec, tensor in own] for own in pairs]


def _with_scales(spec: TensorSpec, by: Quantization | None) -> TensorSpec:
    return replace(spec, quantization=by) if by is not None and by.block_size else spec


def is_dynamic(model: Model) -> bool:
    """Return whether a model has products that the mode affects."""
    return any(_is_hybrid(graph, node) for graph in model.subgraphs for node in graph.nodes)


def _of_xnnpack(graph: Subgraph) -> Subgraph:
    dense = {n.inputs[1] for n in graph.nodes if n.op is FULLY_CONNECTED and _is_hybrid(graph, n)}
    dense -= {t for n in graph.nodes for p, t in enumerate(n.inputs) if n.op is not FULLY_CONNECTED or p != 1}
    tensors = tuple(_with_short_scales(spec) if t in dense else spec for t, spec in enumerate(graph.tensors))
    return replace(graph, tensors=tensors, nodes=tuple(_asymmetric(graph, node) for node in graph.nodes))


def _with_short_scales(weights: TensorSpec) -> TensorSpec:
    """Return weights with block scales, if any, rounded to bfloat16."""
    by = weights.quantization
    if by is None or not by.block_size:
        return weights
    bits = np.ascontiguousarray(by.scale, np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)
    return replace(weights, quantization=replace(by, scale=rounded))


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
