"""Constants in float16: every large one is widened by a DEQUANTIZE when the model runs."""

from dataclasses import replace

import numpy as np

from litecl.interpreter.errors import ConversionError
from litecl.interpreter.graph import Node, Subgraph
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops.quantize import DEQUANTIZE
from litecl.interpreter.schema import TensorType

_FEWEST = 64  # elements


def halves(graph: Subgraph) -> Subgraph:
    """Return a subgraph whose large constants are halves."""
    tensors, nodes = list(graph.tensors), []
    wide: dict[int, int] = {}
    _check_states(graph)
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


def _check_states(graph: Subgraph) -> None:
    """Refuse open dimensions next to states.

    LiteRT widens a constant once. When an input is resized, so are states, and the widened constants, which lie in the
    same memory, move without being computed again: the results would be wrong.
    """
    stateful = next((n for n in graph.nodes if isinstance(n.op, Op) and n.op.states), None)
    if stateful is not None and any(graph.tensors[t].shape_signature is not None for t in graph.inputs):
        raise ConversionError(
            f"float16 weights and {stateful.op.name} cannot be combined if an input has an open dimension: give "
            'input_shapes, or convert with quantize="int8" or lstm="while"'
        )
