"""A graph with separate activations, to search for layers."""

from dataclasses import replace

from litecl.interpreter.graph import Node, Subgraph
from litecl.interpreter.ops.binary import ADD
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED
from litecl.interpreter.ops.unary import RELU
from litecl.interpreter.schema import ActivationFunctionType


def unfused(graph: Subgraph) -> Subgraph:
    """Return a graph with a separate RELU after each sum that fuses one.

    Tensors keep their indices; the sums are appended.
    """
    tensors, nodes = list(graph.tensors), list[Node]()
    for node in graph.nodes:
        activation = getattr(node.options, "fused_activation_function", None)
        if node.op not in (ADD, FULLY_CONNECTED) or activation != ActivationFunctionType.RELU:
            nodes.append(node)
            continue
        options = replace(node.options, fused_activation_function=ActivationFunctionType.NONE)
        nodes.append(replace(node, outputs=(len(tensors),), options=options))
        nodes.append(Node(RELU, (len(tensors),), node.outputs, RELU.options()))
        tensors.append(tensors[node.outputs[0]])
    return replace(graph, tensors=tuple(tensors), nodes=tuple(nodes))
