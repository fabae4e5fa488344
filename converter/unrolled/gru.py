"""Writes a GRU, which TensorFlow Lite has no operator for, as a loop over the steps of a sequence.

The products with the sequence are computed before the loop, for all steps at once.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from litecl.converter.graph import Function, Node, Value, constant
from litecl.converter.lower.builder import Builder
from litecl.converter.unrolled.layer import Layer, LayerGate
from litecl.interpreter.op import Op
from litecl.interpreter.ops.binary import ADD, MUL, SUB
from litecl.interpreter.ops.compare import LESS
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.control import WHILE
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.gather import GATHER, GatherOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.unary import LOGISTIC, TANH
from litecl.interpreter.schema import TensorType
from litecl.interpreter.steps.views import SWAPPED

_FLOAT32, _BOOL = TensorType.FLOAT32, TensorType.BOOL
_FED = ("reset", "update", "new")
_RECURRENT = ("reset", "update", "recurrent")
_AT_ONCE = 8
"""The most steps per iteration: LiteRT starts one in the time of several narrow steps."""
LEAST = 1500
"""Steps times units from which a loop may be as fast as its steps in LiteRT (times: docs/guides/converting.md)."""


def pays(layer: Layer) -> bool:
    """Return whether a layer is long or wide enough for a loop to be no slower."""
    return len(layer.chain) * layer.units >= LEAST


def gru_layer(b: Builder, layer: Layer, x: Value, h: Value) -> Sequence[Value]:
    """Return a layer's hidden states [T,B,U] over x, starting from h, and the last of them [B,U]."""
    products, firsts = _products(b, layer, x)
    if layer.sequence.backwards:
        products = b.reverse(products, layer.sequence.axis)
    if layer.sequence.axis == 1:
        products = b.transpose(products, SWAPPED)
    steps = len(layer.chain)
    at_once = next(n for n in range(min(_AT_ONCE, steps), 0, -1) if steps % n == 0)
    parts = (steps // at_once, at_once, layer.batch, (products.static_shape or ())[-1])
    sequence = b.const(np.zeros((steps, layer.batch, layer.units)), np.float32)
    state = [b.const(0, np.int32), sequence, h, b.reshape(products, parts, parts)]
    bodies = [
        _function("condition", state, _condition(parts[0])),
        _function("body", state, _body(layer, firsts)),
    ]
    results = [Value(value.type, value.shape, b.node.name) for value in state]
    return b.add(Node(WHILE, state, results, WHILE.options(), b.node.name, bodies)).outputs[1:3]


def _products(b: Builder, layer: Layer, x: Value) -> tuple[Value, Sequence[int]]:
    """Return the gates' products with the sequence, and the first column of each.

    They include the constant row of the "new" gate; the loop adds those of the others.
    """
    gates, row = [layer.gates[name] for name in _FED], layer.gates["new"].row.astype(np.float32)
    if any(gate.weights is not None for gate in gates):
        weights = b.const(np.concatenate([gate.weights for gate in gates if gate.weights is not None]))
        bias = b.const(np.concatenate([np.zeros(2 * layer.units, np.float32), row]))
        options = FullyConnectedOptions(keep_num_dims=True)
        shape = (*(x.static_shape or ())[:2], 3 * layer.units)
        product = b.op(FULLY_CONNECTED, [x, weights, bias], options, type=_FLOAT32, shape=shape)
        return product, [layer.units * i for i in range(len(gates))]
    firsts = [gate.first for gate in gates]
    if row.any():
        added = np.zeros((x.static_shape or ())[-1], np.float32)
        added[firsts[2] : firsts[2] + layer.units] = row
        x = b.op(ADD, [x, b.const(added)], type=_FLOAT32, shape=x.shape)
    return x, firsts


def _function(name: str, state: Sequence[Value], build: Callable[["_Body", Sequence[Value]], list[Value]]) -> Function:
    arguments = [Value(value.type, value.shape, value.name) for value in state]
    function = Function(name, arguments, [])
    function.outputs = build(_Body(function), arguments)
    return function


class _Body:
    """The nodes of a loop's function."""

    def __init__(self, function: Function) -> None:
        self._function = function

    def op(self, op: Op, *operands: Value, options: Any = None, like: Value | None = None, **changes: Any) -> Value:
        """Add a node and return its result; type and shape are those of ``like``, by default the first operand."""
        base = operands[0] if like is None else like
        result = Value(changes.get("type", base.type), changes.get("shape", base.shape), op.name.lower())
        options = op.options() if options is None else options
        return self._function.add(Node(op, operands, [result], options, op.name.lower())).output

    def sigmoid(self, a: Value, b: Value) -> Value:
        """Return sigmoid(a + b)."""
        return self.op(LOGISTIC, self.op(ADD, a, b))

    def columns(self, rows: Value, first: int, like: Value, step: int | None = None) -> Value:
        """Return columns of [B,_], or of a step of [N,B,_], from ``first``, as many as ``like`` has."""
        begin = (0, first) if step is None else (step, 0, first)
        size = (*(1,) * (step is not None), *(like.static_shape or ()))
        cut = self.op(SLICE, rows, *(constant(np.array(bound, np.int32)) for bound in (begin, size)), shape=size)
        return cut if step is None else self.reshape(cut, like.static_shape or ())

    def reshape(self, x: Value, shape: tuple[int, ...]) -> Value:
        """Return a reshaped tensor."""
        return self.op(RESHAPE, x, constant(np.array(shape, np.int32)), options=ReshapeOptions(shape), shape=shape)

    def joined(self, rows: Sequence[Value]) -> Value:
        """Concatenate rows [1,B,U]."""
        if len(rows) == 1:
            return rows[0]
        shape = (len(rows), *(rows[0].static_shape or ())[1:])
        return self.op(CONCATENATION, *rows, options=ConcatenationOptions(axis=0), shape=shape)

    def product(self, x: Value, gates: Sequence[LayerGate], *, bias: bool = True) -> Value:
        """Return the gates' products with a state, plus their constants."""
        weights = constant(np.concatenate([gate.recurrent for gate in gates if gate.recurrent is not None]))
        rows = [constant(np.concatenate([gate.row for gate in gates]).astype(np.float32))] if bias else []
        shape = ((x.static_shape or ())[0], (weights.static_shape or ())[0])
        return self.op(FULLY_CONNECTED, x, weights, *rows, shape=shape)


def _condition(trips: int) -> Callable[[_Body, Sequence[Value]], list[Value]]:
    def build(body: _Body, arguments: Sequence[Value]) -> list[Value]:
        return [body.op(LESS, arguments[0], constant(np.array(trips, np.int32)), type=_BOOL)]

    return build


def _body(layer: Layer, firsts: Sequence[int]) -> Callable[[_Body, Sequence[Value]], list[Value]]:
    def build(body: _Body, arguments: Sequence[Value]) -> list[Value]:
        time, sequence, h, products = arguments
        shape = (products.static_shape or ())[1:]
        x = body.op(GATHER, products, time, options=GatherOptions(axis=0), shape=shape)
        made_now = []
        for step in range(shape[0]):
            h = _step(body, layer, h, [body.columns(x, first, h, step) for first in firsts])
            made_now.append(body.reshape(h, (1, layer.batch, layer.units)))
        rows = body.joined(made_now)
        begin = body.op(MUL, time, constant(np.array([shape[0], 0, 0], np.int32)), shape=(3,))
        after = body.op(DYNAMIC_UPDATE_SLICE, sequence, rows, begin)
        return [body.op(ADD, time, constant(np.array(1, np.int32))), after, h, products]

    return build


def _step(body: _Body, layer: Layer, h: Value, products: Sequence[Value]) -> Value:
    """Return the state after h; products: the sequence's parts of the gates reset, update and new."""
    gates = [layer.gates[name] for name in _RECURRENT if name in layer.gates]
    recurrent = body.product(h, gates)
    parts = [body.columns(recurrent, layer.units * i, h) for i in range(len(gates))]
    reset, update = (body.sigmoid(a, b) for a, b in zip(products[:2], parts[:2], strict=True))
    if len(parts) == len(_RECURRENT):
        scaled = body.op(MUL, parts[2], reset)
    else:
        scaled = body.product(body.op(MUL, h, reset), [layer.gates["new"]], bias=False)
    new = body.op(TANH, body.op(ADD, products[2], scaled))
    return body.op(ADD, body.op(MUL, body.op(SUB, h, new), update), new)
