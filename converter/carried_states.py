"""Leaves out the nodes that zero an LSTM's or RNN's states at every run, for runtimes that need states without writers.

TFLite sets variables to their zero point when they are allocated or reset. So the first run is the same, but the next
one goes on from its states, until ``reset_all_variables()`` or tflite-micro's ``reset()``.
"""

from dataclasses import replace

from litecl.converter.compact import compact
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.graph import Model, Node, Subgraph
from litecl.interpreter.ops.fill import FILL


def carry_states(model: Model) -> Model:
    """Return the model without these nodes. Raises ConversionError if the size of a state is known only at run time."""
    graphs = tuple(
        replace(graph, nodes=tuple(node for node in graph.nodes if not _zeroes_a_state(graph, node)))
        for graph in model.subgraphs
    )
    return compact(replace(model, subgraphs=graphs))


def _zeroes_a_state(graph: Subgraph, node: Node) -> bool:
    if node.op is not FILL:
        return False
    state = graph.tensors[node.outputs[0]]
    if not state.is_variable:
        return False
    dims, value = (graph.tensors[t].data for t in node.inputs)
    zero = 0 if state.quantization is None else state.quantization.zero_point
    if value is None or (value != zero).any():
        return False
    if dims is None:
        raise ConversionError(
            f'lstm="variables": expected a batch of fixed size, got {state.name!r} of any; set input_shapes'
        )
    return True
