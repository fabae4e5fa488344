"""The nodes that compute a layer: an operator for an LSTM or a simple layer, a loop for a GRU."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from litecl.converter.graph import Function, Module, Node, Value, constant
from litecl.converter.lower.builder import Builder
from litecl.converter.lower.lstm import lstm_layer, rnn_layer
from litecl.converter.passes.tflite.duplicates import merge_duplicates
from litecl.converter.passes.tflite.reshapes import join_reshapes
from litecl.converter.unrolled import gru
from litecl.converter.unrolled.layer import Layer
from litecl.converter.unrolled.results import MemoryResult, Result, SequenceResult, StepResult
from litecl.interpreter.graph import Array, Subgraph
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.recurrent.patterns import LSTM_GATES
from litecl.interpreter.schema import TensorType
from litecl.interpreter.steps.views import SWAPPED

_FLOAT32 = TensorType.FLOAT32


def operands_of(layer: Layer) -> list[int]:
    """Return the tensors that a layer reads: its sequence, and initial states other than zeros."""
    return list(dict.fromkeys(t for t in (layer.sequence.tensor, layer.h, layer.c) if t is not None))


def pays(layer: Layer) -> bool:
    """Return whether a layer's nodes are no slower than its steps."""
    return layer.kind != "GRU" or gru.pays(layer)


def module_of(graph: Subgraph, layer: Layer, wanted: Sequence[Result], name: str) -> Module:
    """Return a program from a layer's operands to the wanted results."""
    operands = {t: Value(_FLOAT32, graph.tensors[t].static_shape, graph.tensors[t].name) for t in operands_of(layer)}
    function = Function(name, list(operands.values()), [])
    b = Builder(function, Node("", [], [Value(_FLOAT32, (layer.batch, layer.units), name)], {}, name))
    states = [_state(b, layer, None if t is None else operands[t]) for t in (layer.h, layer.c)]
    results = _Results(b, layer, _LAYERS[layer.kind](b, layer, operands[layer.sequence.tensor], *states))
    steps = {result.index for result in wanted if isinstance(result, StepResult)}
    alone = steps == {len(layer.chain) - 1}
    function.outputs = [results.result(result, alone=alone) for result in wanted]
    function.tidy()
    while join_reshapes(function):
        pass
    merge_duplicates(function)
    return Module(function, [f"operand{t}" for t in operands], [f"result{result.tensor}" for result in wanted])


def _state(b: Builder, layer: Layer, value: Value | None) -> Value:
    shape = (layer.batch, layer.units)
    return constant(np.zeros(shape, np.float32)) if value is None else _shaped(b, value, shape)


def _lstm(b: Builder, layer: Layer, x: Value, h: Value, c: Value) -> Sequence[Value]:
    gates = [layer.gates[name] for name in LSTM_GATES]
    kernel, recurrent = (_side_by_side(part) for part in zip(*((g.weights, g.recurrent) for g in gates), strict=True))
    bias: Array = np.concatenate([gate.row for gate in gates]).astype(np.float32)
    sequence = layer.sequence
    shape = (*(x.static_shape or ())[:2], layer.units)
    return lstm_layer(b, x, h, c, (kernel, recurrent, bias), "tanh", sequence.backwards, shape, sequence.axis)


def _side_by_side(weights: Sequence[Array | None]) -> Array:
    """Join matrices [units, depth] into one [depth, gates * units]."""
    return np.concatenate([part.T for part in weights if part is not None], axis=1)


def _gru(b: Builder, layer: Layer, x: Value, h: Value, c: Value) -> Sequence[Value]:
    return gru.gru_layer(b, layer, x, h)


def _rnn(b: Builder, layer: Layer, x: Value, h: Value, c: Value) -> Sequence[Value]:
    gate, sequence = layer.gates["new"], layer.sequence
    assert gate.weights is not None and gate.recurrent is not None
    weights = [b.const(gate.weights), b.const(gate.recurrent), b.const(gate.row, np.float32)]
    shape = (*(x.static_shape or ())[:2], layer.units)
    return rnn_layer(b, x, h, weights, layer.chain[0].activation, sequence.backwards, shape, sequence.axis)


_LAYERS: dict[str, Callable[[Builder, Layer, Value, Value, Value], Sequence[Value]]] = {
    "LSTM": _lstm,
    "GRU": _gru,
    "RNN": _rnn,
}


@dataclass(frozen=True)
class _Results:
    """The results of a layer's nodes: the hidden states, the last of them, and an LSTM's last memory."""

    b: Builder
    layer: Layer
    values: Sequence[Value]

    @property
    def axis(self) -> int:
        """The time axis of the sequence."""
        return 0 if self.layer.kind == "GRU" else self.layer.sequence.axis

    def result(self, result: Result, *, alone: bool) -> Value:
        """Return a result. alone: only the last step is wanted, so none need be sliced from the sequence."""
        if isinstance(result, MemoryResult):
            value = self.values[2]
        elif isinstance(result, SequenceResult):
            value = self._sequence(result)
        else:
            assert isinstance(result, StepResult)
            value = self.values[1] if alone else self._step(result.index)
        return _shaped(self.b, value, result.shape)

    def _step(self, index: int) -> Value:
        begin, size = [0, 0, 0], [self.layer.batch, self.layer.batch, self.layer.units]
        begin[self.axis], size[self.axis] = index, 1
        bounds = [self.b.const(bound, np.int32) for bound in (begin, size)]
        return self.b.op(SLICE, [self.values[0], *bounds], type=_FLOAT32, shape=tuple(size))

    def _sequence(self, result: SequenceResult) -> Value:
        value = self.b.reverse(self.values[0], self.axis) if result.backwards else self.values[0]
        return value if result.axis == self.axis else self.b.transpose(value, SWAPPED)


def _shaped(b: Builder, value: Value, shape: Sequence[int]) -> Value:
    return value if value.shape == tuple(shape) else b.reshape(value, shape, tuple(shape))
