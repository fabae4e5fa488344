"""Quantizes LSTM layers: 8-bit activations, and a 16-bit cell state whose scale is a power of two.

Only layers whose states start at zero qualify: a FILL writes the zeros, then also as integers.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from litecl.converter.quantization.observers import Observer, Range
from litecl.converter.quantization.rules import Rule
from litecl.converter.quantization.scales import Affine, given
from litecl.interpreter.graph import ABSENT, Array, Node, Subgraph, TensorSpec
from litecl.interpreter.ops.fill import FILL
from litecl.interpreter.ops.unidirectional_sequence_lstm import UNIDIRECTIONAL_SEQUENCE_LSTM
from litecl.interpreter.recurrent import lstm_cell
from litecl.interpreter.recurrent.lstm_cell import FULL
from litecl.interpreter.schema import ActivationFunctionType, TensorType

_GATES = range(4)
_WEIGHTS = range(FULL.input_weights, FULL.recurrent_weights + 4)
_BIASES = {FULL.bias + gate: FULL.input_weights + gate for gate in _GATES}
_STATES = (FULL.output_state, FULL.cell_state)
_OTHERS = (*range(FULL.peephole, FULL.bias), FULL.projection, FULL.projection + 1, *range(20, 24))
_GATE_SCALE = 2.0**-12

CELL = Rule((TensorType.INT8,), weights=dict.fromkeys(_WEIGHTS), biases=_BIASES, states=_STATES)
"""The rule of an LSTM layer; other nodes write its states, with scales of their own."""

STATE = Rule(shared=True, moves=True)
"""The rule of the nodes that write a layer's initial state."""


@dataclass(frozen=True)
class Cell:
    """The state tensors of a layer, the hidden and the cell state, and the nodes that write them."""

    hidden: int
    memory: int
    writers: tuple[int, ...]


def cells(graph: Subgraph) -> Mapping[int, Cell]:
    """Return the subgraph's layers that an integer kernel supports, by node number."""
    candidates = ((number, _cell(graph, number, node)) for number, node in enumerate(graph.nodes))
    return {number: cell for number, cell in candidates if cell is not None}


def _cell(graph: Subgraph, number: int, node: Node) -> Cell | None:
    if node.op is not UNIDIRECTIONAL_SEQUENCE_LSTM or len(node.inputs) <= FULL.cell_state:
        return None
    plain = node.options.fused_activation_function == ActivationFunctionType.TANH and node.options.cell_clip == 0
    absent = all(p >= len(node.inputs) or node.inputs[p] == ABSENT for p in _OTHERS)
    fixed = [*_WEIGHTS, *_BIASES]
    if not (plain and absent and all(_is_constant(graph, node.inputs[p]) for p in fixed)):
        return None
    if any(len(graph.tensors[node.inputs[p]].static_shape) != 2 for p in _WEIGHTS):  # diagonal weights
        return None
    hidden, memory = (node.inputs[p] for p in _STATES)
    writers = [_writer(graph, number, state) for state in (hidden, memory)]
    kept = [writer for writer in writers if writer is not None]
    return Cell(hidden, memory, tuple(kept)) if len(kept) == len(_STATES) else None


def _is_constant(graph: Subgraph, tensor: int) -> bool:
    spec = None if tensor == ABSENT else graph.tensors[tensor]
    return spec is not None and spec.data is not None and spec.type == TensorType.FLOAT32


def _writer(graph: Subgraph, reader: int, state: int) -> int | None:
    """Return the node that fills a state with zeros for its only reader; None if anything else uses the state."""
    uses = [n for n, node in enumerate(graph.nodes) if state in (*node.inputs, *node.outputs)]
    if len(uses) != 2 or uses[1] != reader or state in graph.outputs:
        return None
    writer = graph.nodes[uses[0]]
    value = graph.tensors[writer.inputs[1]].data if writer.op is FILL else None
    return uses[0] if value is not None and not value.any() else None


def watching(graph: Subgraph, number: int, observer: Observer) -> Callable[[Sequence[Array]], None]:
    """Return a function that runs the layer on its input and shows the cell state of every step to an observer."""
    node = graph.nodes[number]
    operands = [None if t == ABSENT else graph.tensors[t].data for t in node.inputs]

    def look(values: Sequence[Array]) -> None:
        (x,) = values
        steps = x if node.options.time_major else x.swapaxes(0, 1)
        layer = lstm_cell.cell(node.options, [x, *operands[1:]])
        h = c = np.zeros((steps.shape[1], graph.tensors[node.inputs[FULL.bias]].size), np.float32)
        for step in steps:
            _, h, c = layer.run(step[None], None, h, c)
            observer.see(c)

    return look


def memory_scale(values: Range) -> Affine:
    """Return the scale of a 16-bit cell state, 2**-15 times the smallest power of two >= 1 that covers the range."""
    largest = max(-values.low, values.high)
    bits = max(math.ceil(math.log2(largest)), 0) if largest > 0 else 0
    return given(2.0 ** (bits - 15), 0)


def intermediates(hidden: Affine) -> list[TensorSpec]:
    """Return the specs of a layer's intermediates: gates (used only by layer normalization) and hidden state.

    They only have scales. tflite-micro refuses any element in them, and a scalar, of shape [], has one.
    """
    gates = [TensorSpec(TensorType.INT16, (0,), quantization=given(_GATE_SCALE, 0)) for _ in _GATES]
    return [*gates, TensorSpec(TensorType.INT8, (0,), quantization=hidden)]
