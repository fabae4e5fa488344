"""Fuses loops that compute an LSTM or a simple recurrent layer, which Keras 3 traces unless it keeps the layer whole.

An ``LSTM`` or ``RNN`` node replaces the loop. An RNN's step is h' = f(z), an LSTM's ``lstm_step`` of four parts of z,
where z = x W + h R + b.
"""

from dataclasses import dataclass

import numpy as np

from litecl.converter.graph import Function, Node, Value, constant
from litecl.converter.own_ops import LSTM, RNN
from litecl.converter.passes.match import AnyTensor, Bindings, Number, Pattern, match
from litecl.converter.passes.recurrent.list_loop import ListLoop, Store, batch_major, replace_stores
from litecl.converter.passes.sizes import Sizes, known_sizes
from litecl.converter.records import OwnOp
from litecl.interpreter.recurrent.patterns import Operators, lstm_step, part_of

_OPERATORS = Operators("AddV2", "Mul", "Sigmoid", "Split")


@dataclass(frozen=True, eq=False)
class _Step:
    """What a step computes from z. op: that of the layer."""

    op: OwnOp
    activation: str
    pattern: Pattern


_STEPS = tuple(
    step
    for function, name in (("Tanh", "tanh"), ("Relu", "relu"))
    for step in (
        *(_Step(LSTM, name, lstm_step(_OPERATORS, function, part_of(_OPERATORS, Number(axis)))) for axis in (1, -1)),
        _Step(RNN, name, Pattern(function, [AnyTensor("z")])),
    )
)


def _sums() -> tuple[Pattern, ...]:
    """Return z in the forms that Keras traces; for batch 1 it squeezes the second product and adds it as a bias."""
    from_x, from_h = (
        Pattern("MatMul", [AnyTensor("x"), AnyTensor("kernel")]),
        Pattern("MatMul", [AnyTensor("h"), AnyTensor("recurrent")]),
    )
    biased = Pattern("BiasAdd", [from_x, AnyTensor("bias")])
    forms = [("AddV2", from_h), ("BiasAdd", Pattern("Squeeze", [from_h]))]
    plain = [Pattern(op, [from_x, product]) for op, product in forms]
    return (
        *(Pattern("BiasAdd", [total, AnyTensor("bias")]) for total in plain),
        *(Pattern(op, [biased, product]) for op, product in forms),
        *plain,
    )


_SUMS = _sums()


def fuse_layers(function: Function) -> None:
    """Replace every loop of a function that is only a recurrent layer."""
    sizes = known_sizes(function)
    for node in list(function.nodes):
        layer = _layer(ListLoop(node), sizes) if node.op == "While" else None
        if layer is not None:
            _rewrite(function, node, layer)
    function.tidy()


@dataclass(frozen=True, eq=False)
class _Layer:
    """A layer in a loop: the outside values it uses, and the positions of its states, h and an LSTM's c."""

    step: _Step
    time_major: Value
    states: tuple[int, ...]
    weights: tuple[Value, Value, Value | None]
    stores: list[Store]


def _layer(loop: ListLoop, sizes: Sizes) -> _Layer | None:
    for h, result in enumerate(loop.body.outputs):
        for step in _STEPS:
            bound = match(step.pattern, result)
            layer = None if bound is None else _of_step(loop, step, bound, h, sizes)
            if layer is not None:
                return layer
    return None


def _of_step(loop: ListLoop, step: _Step, bound: Bindings, h: int, sizes: Sizes) -> _Layer | None:
    total = next((b for b in (match(tree, bound["z"]) for tree in _SUMS) if b is not None), None)
    states = _states(loop, step, bound, h)
    if total is None or states is None or loop.argument(total["h"]) != h or any(map(_transposes, total.nodes)):
        return None
    kernel, recurrent, bias = (
        loop.outside(total[name]) if name in total else None for name in ("kernel", "recurrent", "bias")
    )
    time_major, stores = loop.rows(total["x"], sizes), loop.stores(loop.body.outputs[h], total["x"])
    if time_major is None or stores is None or kernel is None or recurrent is None:
        return None
    if "bias" in total and bias is None:
        return None
    if step.op is RNN and any(w is not None and w.data is None for w in (kernel, recurrent, bias)):
        return None
    if not loop.leaves_only({*states, *(store.position for store in stores)}):
        return None
    return _Layer(step, time_major, states, (kernel, recurrent, bias), stores)


def _transposes(node: Node) -> bool:
    return node.op == "MatMul" and bool(node.attrs["transpose_a"] or node.attrs["transpose_b"])


def _states(loop: ListLoop, step: _Step, bound: Bindings, h: int) -> tuple[int, ...] | None:
    if step.op is RNN:
        return (h,)
    c = loop.argument(bound["before"])
    return None if c is None or loop.body.outputs[c] is not bound["state"] else (h, c)


def _rewrite(function: Function, loop: Node, layer: _Layer) -> None:
    x, backwards = batch_major(function, layer.time_major, loop.name)
    kernel, recurrent, bias = layer.weights
    assert recurrent.shape is not None
    units = recurrent.shape[0] or 0
    gates = 4 if layer.step.op is LSTM else 1
    bias = constant(np.zeros(gates * units, np.float32)) if bias is None else bias
    batch, time = (x.shape or (None, None))[:2]
    shapes = [(batch, time, units), *((batch, units) for _ in layer.states)]
    outputs = [Value(x.type, shape, loop.name) for shape in shapes]
    attrs = {"activation": layer.step.activation, "go_backwards": backwards}
    operands = [x, *map(loop.input, layer.states), kernel, recurrent, bias]
    sequence, *states = function.add(Node(layer.step.op, operands, outputs, attrs, loop.name)).outputs
    replace_stores(function, loop, layer.stores, sequence, states[0])
    for position, state in zip(layer.states, states, strict=True):
        function.replace(loop.outputs[position], state)
