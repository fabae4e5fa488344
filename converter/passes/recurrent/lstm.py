"""Fuses loops that compute an LSTM, which Keras 3 traces unless asked to keep the layer whole, e.g. in a SavedModel.

An ``LSTM`` node replaces the loop.
"""

from dataclasses import dataclass

import numpy as np

from litecl.converter.graph import Function, Node, Value, constant
from litecl.converter.own_ops import LSTM
from litecl.converter.passes.match import Any, Bindings, Number, Pattern, Tree, match
from litecl.converter.passes.recurrent.list_loop import ListLoop, Store, batch_major, replace_stores
from litecl.converter.passes.sizes import Sizes, known_sizes


def _cell(axis: int, activation: str) -> Pattern:
    def gate(index: int) -> Pattern:
        return Pattern("Split", [Number(axis), Any("z")], index)

    def sigmoid(index: int) -> Pattern:
        return Pattern("Sigmoid", [gate(index)])

    update = Pattern("Mul", [sigmoid(0), Pattern(activation, [gate(2)])])
    c = Pattern("AddV2", [Pattern("Mul", [sigmoid(1), Any("c")]), update], name="new_c")
    return Pattern("Mul", [sigmoid(3), Pattern(activation, [c])])


_CELLS = {_cell(axis, op): name for axis in (1, -1) for op, name in (("Tanh", "tanh"), ("Relu", "relu"))}


def _pre_activations() -> tuple[Pattern, ...]:
    """x @ kernel + h @ recurrent + bias. For batch 1 Keras squeezes the second product and adds it as a bias."""
    from_x: Tree = Pattern("MatMul", [Any("x"), Any("kernel")])
    from_h: Tree = Pattern("MatMul", [Any("h"), Any("recurrent")])
    sums = (Pattern("AddV2", [from_x, from_h]), Pattern("BiasAdd", [from_x, Pattern("Squeeze", [from_h])]))
    return (*(Pattern("BiasAdd", [total, Any("bias")]) for total in sums), *sums)


_PRE_ACTIVATIONS = _pre_activations()


def fuse_lstm_loops(function: Function) -> None:
    """Replace every loop of a function that is only an LSTM."""
    sizes = known_sizes(function)
    for node in list(function.nodes):
        found = _find(ListLoop(node), sizes) if node.op == "While" else None
        if found is not None:
            _rewrite(function, node, found)
    function.tidy()


@dataclass(frozen=True, eq=False)
class _Found:
    """An LSTM in a loop: the outside values it uses, and the positions of its results."""

    activation: str
    time_major: Value
    h: int
    c: int
    weights: tuple[Value, Value, Value | None]
    stores: list[Store]


def _find(loop: ListLoop, sizes: Sizes) -> _Found | None:
    for h, result in enumerate(loop.body.outputs):
        for cell, activation in _CELLS.items():
            bound = match(cell, result)
            found = None if bound is None else _lstm(loop, bound, activation, h, sizes)
            if found is not None:
                return found
    return None


def _lstm(loop: ListLoop, bound: Bindings, activation: str, h: int, sizes: Sizes) -> _Found | None:
    inner = next((b for b in (match(tree, bound["z"]) for tree in _PRE_ACTIVATIONS) if b is not None), None)
    if inner is None or loop.argument(inner["h"]) != h:
        return None
    c = loop.argument(bound["c"])
    kernel, recurrent, bias = (
        loop.outside(inner[name]) if name in inner else None for name in ("kernel", "recurrent", "bias")
    )
    time_major, stores = loop.rows(inner["x"], sizes), loop.stores(loop.body.outputs[h], inner["x"])
    if c is None or time_major is None or stores is None or kernel is None or recurrent is None:
        return None
    if ("bias" in inner and bias is None) or loop.body.outputs[c] is not bound["new_c"]:
        return None
    if not loop.leaves_only({h, c, *(store.position for store in stores)}):
        return None
    return _Found(activation, time_major, h, c, (kernel, recurrent, bias), stores)


def _rewrite(function: Function, loop: Node, found: _Found) -> None:
    x, backwards = batch_major(function, found.time_major, loop.name)
    kernel, recurrent, bias = found.weights
    assert recurrent.shape is not None
    units = recurrent.shape[0] or 0
    bias = constant(np.zeros(4 * units, np.float32)) if bias is None else bias
    batch, time = (x.shape or (None, None))[:2]
    outputs = [Value(x.type, shape, loop.name) for shape in ((batch, time, units), (batch, units), (batch, units))]
    attrs = {"activation": found.activation, "go_backwards": backwards}
    operands = [x, loop.input(found.h), loop.input(found.c), kernel, recurrent, bias]
    sequence, h, c = function.add(Node(LSTM, operands, outputs, attrs, loop.name)).outputs
    replace_stores(function, loop, found.stores, sequence, h)
    function.replace(loop.outputs[found.h], h)
    function.replace(loop.outputs[found.c], c)
