"""Weights in int8, activations in float: operators with weights quantize their input row by row when they run.

Weights are symmetric, with a scale for every output channel where the kernels take that. Tables of GATHER are int8 too,
and what is gathered is widened. A constant that is also read by an operator without integer kernels is widened for that
operator.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from litecl.converter.quantization.scales import blocks, channels, integers
from litecl.converter.versions import version_of
from litecl.interpreter.graph import ABSENT, Node, Subgraph, TensorSpec
from litecl.interpreter.op import ControlOp, NoOptions, Op
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL
from litecl.interpreter.ops.bidirectional_sequence_lstm import BIDIRECTIONAL_SEQUENCE_LSTM
from litecl.interpreter.ops.conv_2d import CONV_2D
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED
from litecl.interpreter.ops.gather import GATHER
from litecl.interpreter.ops.lstm import LSTM
from litecl.interpreter.ops.quantize import DEQUANTIZE
from litecl.interpreter.ops.rnn import BIDIRECTIONAL_SEQUENCE_RNN, RNN, UNIDIRECTIONAL_SEQUENCE_RNN
from litecl.interpreter.ops.svdf import SVDF
from litecl.interpreter.ops.transpose_conv import TRANSPOSE_CONV
from litecl.interpreter.ops.unidirectional_sequence_lstm import UNIDIRECTIONAL_SEQUENCE_LSTM
from litecl.interpreter.schema import TensorType

_FEWEST = 1024  # elements, as in TensorFlow's converter: smaller weights save nothing


@dataclass(frozen=True)
class Weights:
    """The positions of weights, of which all or none are quantized, and the axis of their output channels."""

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
_TABLE = Weights((0,))
_NARROW = (FULLY_CONNECTED, CONV_2D, EMBEDDING_LOOKUP)
"""The operators that read weights of four bits, in LiteRT too."""


def dynamic_range(graph: Subgraph, per_channel: bool, *, narrow: bool = False, block: int | None = None) -> Subgraph:
    """Return a subgraph with its weights as int8 where its operators take these.

    narrow: as int4 where only operators that take these read them. block: with a scale for as many elements of the rows
    of FULLY_CONNECTED.
    """
    return _Rewrite(graph, per_channel, narrow, block).run()


class _Rewrite:
    def __init__(self, graph: Subgraph, per_channel: bool, narrow: bool, block: int | None) -> None:
        self._graph, self._per_channel, self._narrow, self._block = graph, per_channel, narrow, block
        self._tensors = list(graph.tensors)
        self._axes = self._chosen()
        self._wide: dict[int, int] = {}

    def run(self) -> Subgraph:
        """Return the new subgraph."""
        for tensor, axis in self._axes.items():
            self._tensors[tensor] = self._stored(tensor, axis)
        nodes = [new for node in self._graph.nodes for new in self._nodes(node)]
        outputs = tuple(self._widened(t) if t in self._axes else t for t in self._graph.outputs)
        widening = [self._node(DEQUANTIZE, (narrow,), (wide,)) for narrow, wide in self._wide.items()]
        return replace(self._graph, tensors=tuple(self._tensors), nodes=(*widening, *nodes), outputs=outputs)

    def _stored(self, tensor: int, axis: int | None) -> TensorSpec:
        spec = self._graph.tensors[tensor]
        if not (self._narrow and self._is_read_by(tensor, _NARROW)):
            return integers(spec, channels(spec, axis), TensorType.INT8, symmetric=True)
        dense = self._is_read_by(tensor, (FULLY_CONNECTED,))
        if dense and self._block is not None and spec.static_shape[1] % self._block == 0:
            return blocks(spec, self._block, TensorType.INT4)
        return integers(spec, channels(spec, axis, type_=TensorType.INT4), TensorType.INT4, symmetric=True)

    def _is_read_by(self, tensor: int, operators: Sequence[Op]) -> bool:
        """Return whether only such operators read a tensor, as weights."""
        readers = [node for node in self._graph.nodes if tensor in node.inputs]
        weights = all(node.op in operators and node.inputs[1] == tensor for node in readers)
        once = all(node.inputs.count(tensor) == 1 for node in readers)
        return weights and once and tensor not in self._graph.outputs

    def _chosen(self) -> dict[int, int | None]:
        """Return the tensors to quantize, each with the axis of its scales."""
        axes: dict[int, int | None] = {}
        tables: dict[int, int | None] = {}
        for node in self._graph.nodes:
            weights = WEIGHTS.get(node.op)
            if weights is not None and self._is_worth_it(self._given(node, weights)):
                for tensor in self._given(node, weights):
                    axes.setdefault(tensor, weights.axis if self._per_channel else None)
            elif node.op is GATHER and self._is_worth_it(self._given(node, _TABLE)):
                tables[node.inputs[0]] = None
        return tables | axes

    def _given(self, node: Node, weights: Weights) -> list[int]:
        positions = (p for p in weights.positions if p < len(node.inputs))
        return [node.inputs[p] for p in positions if node.inputs[p] != ABSENT]

    def _is_worth_it(self, given: list[int]) -> bool:
        specs = [self._graph.tensors[t] for t in given]
        constant = all(spec.data is not None and spec.type == TensorType.FLOAT32 for spec in specs)
        return constant and sum(spec.data.size for spec in specs if spec.data is not None) >= _FEWEST

    def _nodes(self, node: Node) -> Iterator[Node]:
        """Return a node that reads integers where it accepts them, and the floats that they represent elsewhere."""
        if not self._axes.keys() & set(node.inputs):
            yield node
            return
        if node.op is GATHER and self._axes.get(node.inputs[0], 0) is None:
            yield from self._gathered(node)
            return
        taken = self._taken(node)
        inputs = tuple(
            self._widened(t) if t in self._axes and position not in taken else t
            for position, t in enumerate(node.inputs)
        )
        yield self._versioned(replace(node, inputs=inputs))

    def _taken(self, node: Node) -> frozenset[int]:
        """Return the positions at which a node reads integers."""
        weights = WEIGHTS.get(node.op)
        if weights is None:
            return frozenset()
        axis = weights.axis if self._per_channel else None
        given = self._given(node, weights)
        fits = all(t in self._axes and self._axes[t] in (axis, None) for t in given)
        return frozenset(weights.positions) if fits else frozenset()

    def _gathered(self, node: Node) -> Iterator[Node]:
        (output,) = node.outputs
        spec = self._tensors[output]
        quantization = self._tensors[node.inputs[0]].quantization
        narrow = self._push(replace(spec, type=TensorType.INT8, quantization=quantization, name=f"{spec.name}/int8"))
        yield self._versioned(replace(node, outputs=(narrow,)))
        yield self._node(DEQUANTIZE, (narrow,), (output,))

    def _widened(self, tensor: int) -> int:
        if tensor not in self._wide:
            spec = self._graph.tensors[tensor]
            self._wide[tensor] = self._push(replace(spec, data=None, name=f"{spec.name}/float32"))
        return self._wide[tensor]

    def _push(self, spec: TensorSpec) -> int:
        self._tensors.append(spec)
        return len(self._tensors) - 1

    def _node(self, op: Op, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> Node:
        return self._versioned(Node(op, inputs, outputs, NoOptions()))

    def _versioned(self, node: Node) -> Node:
        specs = [None if t == ABSENT else self._tensors[t] for t in node.inputs]
        return replace(node, version=version_of(node, specs))
