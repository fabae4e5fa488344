"""Dynamic range quantization: int8 weights, float activations. Kernels quantize their input row by row at run time.

Weights are symmetric, with a scale per output channel if the kernels support that. GATHER's tables are int8 too; its
results are dequantized. A constant that an operator without integer kernels reads too is dequantized for that operator.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from litecl.converter.quantization.formats import Format, stored
from litecl.converter.quantization.stored_weights import Use, with_stored_weights
from litecl.interpreter.graph import ABSENT, Node, Subgraph, TensorSpec
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL
from litecl.interpreter.ops.bidirectional_sequence_lstm import BIDIRECTIONAL_SEQUENCE_LSTM
from litecl.interpreter.ops.conv_2d import CONV_2D
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED
from litecl.interpreter.ops.gather import GATHER
from litecl.interpreter.ops.lstm import LSTM
from litecl.interpreter.ops.rnn import BIDIRECTIONAL_SEQUENCE_RNN, RNN, UNIDIRECTIONAL_SEQUENCE_RNN
from litecl.interpreter.ops.svdf import SVDF
from litecl.interpreter.ops.transpose_conv import TRANSPOSE_CONV
from litecl.interpreter.ops.unidirectional_sequence_lstm import UNIDIRECTIONAL_SEQUENCE_LSTM
from litecl.interpreter.schema import TensorType

_FEWEST = 1024  # elements, as in TensorFlow's converter: smaller weights save nothing

_FEWEST_UNITS = 4  # of blockwise weights


@dataclass(frozen=True)
class Weights:
    """The positions of weights, which are quantized all or none, and the axis of their output channels."""

    positions: tuple[int, ...]
    axis: int | None = None


_CELL = (*range(1, 9), 16)
WEIGHTS: Mapping[Op | ControlOp, Weights] = {
    FULLY_CONNECTED: Weights((1,), 0),
    CONV_2D: Weights((1,), 0),
    DEPTHWISE_CONV_2D: Weights((1,), 3),
    TRANSPOSE_CONV: Weights((1,), 0),
    EMBEDDING_LOOKUP: Weights((1,), 0),
    BATCH_MATMUL: Weights((1,)),
    LSTM: Weights(_CELL),
    UNIDIRECTIONAL_SEQUENCE_LSTM: Weights(_CELL),
    BIDIRECTIONAL_SEQUENCE_LSTM: Weights((*_CELL, *range(18, 26), 33)),
    RNN: Weights((1, 2)),
    UNIDIRECTIONAL_SEQUENCE_RNN: Weights((1, 2)),
    BIDIRECTIONAL_SEQUENCE_RNN: Weights((1, 2, 5, 6)),
    SVDF: Weights((1, 2)),
}
TABLE = Weights((0,))
"""GATHER's, which any operator may follow."""
_NARROW = (FULLY_CONNECTED, CONV_2D, EMBEDDING_LOOKUP)
"""Operators that read 4-bit weights, in LiteRT too."""


def dynamic_range(graph: Subgraph, per_channel: bool, *, narrow: bool = False, block: int | None = None) -> Subgraph:
    """Return a subgraph whose weights are int8 if its operators support that.

    narrow: use int4 for weights that only operators with int4 support read. block: elements per scale along the rows of
    FULLY_CONNECTED's weights.
    """
    formats = _Formats(graph, per_channel, narrow, block).chosen()
    uses = {
        (number, position): Use(formats[tensor], widened=position not in taken)
        for number, node in enumerate(graph.nodes)
        for taken in [_taken(node, formats, per_channel)]
        for position, tensor in enumerate(node.inputs)
        if tensor in formats
    }
    returned = {t: formats[t] for t in graph.outputs if t in formats}
    return with_stored_weights(graph, uses, lambda tensor, form: stored(graph.tensors[tensor], form), returned)


def _taken(node: Node, formats: Mapping[int, Format], per_channel: bool) -> frozenset[int]:
    """Return the positions at which a node reads integers directly."""
    if node.op is GATHER and node.inputs[0] in formats:
        return frozenset({0}) if formats[node.inputs[0]].axis is None else frozenset()
    weights = WEIGHTS.get(node.op)
    if weights is None:
        return frozenset()
    axis = weights.axis if per_channel else None
    fits = all(t in formats and formats[t].axis in (axis, None) for t in given(node, weights))
    return frozenset(weights.positions) if fits else frozenset()


def divides(block: int, op: Op | ControlOp, weights: TensorSpec) -> bool:
    """Return whether kernels can read weights [units, depth] in blocks; LiteRT's optimised one fails for few units."""
    shape = weights.static_shape
    return len(shape) == 2 and shape[1] % block == 0 and (op is not FULLY_CONNECTED or shape[0] >= _FEWEST_UNITS)


def given(node: Node, weights: Weights) -> list[int]:
    """Return the tensors of a node's weights."""
    positions = (p for p in weights.positions if p < len(node.inputs))
    return [node.inputs[p] for p in positions if node.inputs[p] != ABSENT]


@dataclass(frozen=True)
class _Formats:
    """Chooses formats for a subgraph's constants."""

    graph: Subgraph
    per_channel: bool
    narrow: bool
    block: int | None

    def chosen(self) -> dict[int, Format]:
        """Return the constants to quantize, with their formats."""
        axes: dict[int, int | None] = {}
        tables: dict[int, int | None] = {}
        for node in self.graph.nodes:
            weights = WEIGHTS.get(node.op)
            if weights is not None and self._is_worth_it(given(node, weights)):
                for tensor in given(node, weights):
                    axes.setdefault(tensor, weights.axis if self.per_channel else None)
            elif node.op is GATHER and self._is_worth_it(given(node, TABLE)):
                tables[node.inputs[0]] = None
        return {tensor: self._format(tensor, axis) for tensor, axis in (tables | axes).items()}

    def _format(self, tensor: int, axis: int | None) -> Format:
        if not (self.narrow and self._is_read_by(tensor, _NARROW)):
            return Format(TensorType.INT8, axis)
        dense = self._is_read_by(tensor, (FULLY_CONNECTED,))
        if dense and self.block is not None and divides(self.block, FULLY_CONNECTED, self.graph.tensors[tensor]):
            return Format(TensorType.INT4, axis, self.block)
        return Format(TensorType.INT4, axis)

    def _is_read_by(self, tensor: int, operators: Sequence[Op]) -> bool:
        """Return whether only these operators read a tensor, and only as weights."""
        readers = [node for node in self.graph.nodes if tensor in node.inputs]
        weights = all(node.op in operators and node.inputs[1] == tensor for node in readers)
        once = all(node.inputs.count(tensor) == 1 for node in readers)
        return weights and once and tensor not in self.graph.outputs

    def _is_worth_it(self, tensors: list[int]) -> bool:
        specs = [self.graph.tensors[t] for t in tensors]
        constant = all(spec.data is not None and spec.type == TensorType.FLOAT32 for spec in specs)
        return constant and sum(spec.data.size for spec in specs if spec.data is not None) >= _FEWEST
