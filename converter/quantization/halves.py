"""Stores large constants as float16; a DEQUANTIZE widens each at run time."""

from dataclasses import replace

import numpy as np

from litecl.converter.quantization.stored_weights import check_states
from litecl.interpreter.graph import Node, Subgraph
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.quantize import DEQUANTIZE
from litecl.interpreter.schema import TensorType

_FEWEST = 64  # elements


def halves(graph: Subgraph) -> Subgraph:
    """Return a subgraph with large constants in float16."""
    tensors, nodes = list(graph.tensors), []
    wide: dict[int, int] = {}
    check_states(graph, "float16 weights")
    for index, spec in enumerate(graph.tensors):
        if spec.data is None or spec.type != TensorType.FLOAT32 or spec.data.size < _FEWEST:
            continue
        half = replace(spec, type=TensorType.FLOAT16, data=spec.data.astype(np.float16))
        tensors[index] = half
        wide[index] = len(tensors)
        tensors.append(replace(spec, data=None, name=f"{spec.name}/float32"))
        nodes.append(Node(DEQUANTIZE, (index,), (wide[index],), NoOptions(), version=3))
    nodes += [replace(node, inputs=tuple(wide.get(t, t) for t in node.inputs)) for node in graph.nodes]
    outputs = tuple(wide.get(t, t) for t in graph.outputs)
    return replace(graph, tensors=tuple(tensors), nodes=tuple(nodes), outputs=outputs)
