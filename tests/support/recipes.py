"""A model to quantize by recipes, and entries of these."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from litecl.converter import Quantization
from litecl.converter.quantization.quantize import quantize
from litecl.converter.quantization.recipes.names import entry
from litecl.interpreter.file.reader import read
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model, TensorSpec
from litecl.interpreter.ops import unary
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from support.build import model, randn
from support.quantize_models import Net


def network() -> Model:
    """A model with an operator of every kind that AEQ stores weights of, but for lookups."""
    g = Net()
    x = g.unary(unary.RELU, g.conv(g.input((1, 6, 6, 8)), 16))
    depthwise = DepthwiseConv2DOptions(stride_w=1, stride_h=1, depth_multiplier=1)
    x = g.op(
        DEPTHWISE_CONV_2D, [x, g.const(randn(g.rng, 1, 3, 3, 16, scale=0.3)), g.const(randn(g.rng, 16))], depthwise
    )
    x = g.op(RESHAPE, [x, g.const(np.array([9, 64], np.int32))], ReshapeOptions())
    x = g.unary(unary.TANH, g.dense(x, 64))
    x = g.op(BATCH_MATMUL, [x, g.const(randn(g.rng, 64, 32, scale=0.1))], BatchMatMulOptions())
    return named_results(
        model(g.build(g.dense(x, 12))),
        "first/conv first/relu first/depthwise flat second/dense second/tanh third/matmul head/dense",
    )


def repeated(g: Net, x: int, weights: int, count: int) -> int:
    """Return the result of dense layers in a row that all read the same weights."""
    for _ in range(count):
        x = g.op(FULLY_CONNECTED, [x, weights, None], FullyConnectedOptions())
    return x


def named_results(of: Model, names: str) -> Model:
    """Give the results of nodes names."""
    (graph,) = of.subgraphs
    tensors = list(graph.tensors)
    for node, name in zip(graph.nodes, names.split(), strict=True):
        tensors[node.outputs[0]] = replace(tensors[node.outputs[0]], name=name)
    return replace(of, subgraphs=(replace(graph, tensors=tuple(tensors)),))


def by_recipe(of: Model, recipe: Any, **options: Any) -> tuple[Model, Any]:
    return quantize(of, Quantization(recipe=recipe, **options))


def entries_of(*entries: tuple[str, str, int], **options: Any) -> list[dict[str, Any]]:
    return [
        entry(bits, regex=regex, operation=op, **options)
        if bits
        else {"regex": regex, "operation": op, "algorithm_key": "no_quantize"}
        for regex, op, bits in entries
    ]


def weights_of(of: Model) -> dict[str, TensorSpec]:
    """Return the weights of each node by the name of its result, seen through a DEQUANTIZE."""
    (graph,) = of.subgraphs
    sources = {node.outputs[0]: node.inputs[0] for node in graph.nodes if node.op.name == "DEQUANTIZE"}
    with_weights = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "BATCH_MATMUL", "EMBEDDING_LOOKUP")
    nodes = [node for node in graph.nodes if node.op.name in with_weights]
    return {graph.tensors[n.outputs[0]].name: graph.tensors[sources.get(n.inputs[1], n.inputs[1])] for n in nodes}


def by_peer(of: Model, recipe: Any) -> Model:
    quantizer = pytest.importorskip("ai_edge_quantizer.quantizer")
    work = quantizer.Quantizer(bytes(write(of)))
    work.load_quantization_recipe(recipe)
    return read(bytes(work.quantize().quantized_model))
