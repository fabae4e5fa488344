"""Fuses loops that compute a simple recurrent layer, h = f(x W + h R + b), as Keras 3 traces SimpleRNN.

An ``RNN`` node replaces the loop.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from litecl.converter.graph import Function, Node, Value, constant
from litecl.converter.own_ops import RNN
from litecl.converter.passes.match import Any, Pattern, Tree, match
from litecl.converter.passes.recurrent.list_loop import ListLoop, Store, batch_major, replace_stores
from litecl.converter.passes.sizes import Sizes, known_sizes


def _sums() -> tuple[Pattern, ...]:
    """Return the sum in the orders that Keras writes; for batch 1 it adds the second product as a bias."""
    from_x: Tree = Pattern("MatMul", [Any("x"), Any("kernel")])
    from_h: Tree = Pattern("MatMul", [Any("h"), Any("recurrent")])
    biased: Tree = Pattern("BiasAdd", [from_x, Any("bias")])
    sums = [Pattern("AddV2", [left, from_h]) for left in (biased, from_x)]
    return (*sums, *(Pattern("BiasAdd", [left, Pattern("Squeeze", [from_h])]) for left in (biased, from_x)))


_CELLS: Mapping[str, tuple[Pattern, ...]] = {
    name: tuple(Pattern(op, [total]) for total in _sums()) for op, name in (("Tanh", "tanh"), ("Relu", "relu"))
}


@dataclass(frozen=True, eq=False)
class _Found:
    activation: str
    time_major: Value
    h: int
    weights: tuple[Value, Value, Value | None]
    stores: list[Store]


def fuse_rnn_loops(function: Function) -> None:
    """Replace every loop of a function that is only a simple recurrent layer."""
    sizes = known_sizes(function)
    for node in list(function.nodes):
        found = _find(ListLoop(node), sizes) if node.op == "While" else None
        if found is not None:
            _rewrite(function, node, found)
    function.tidy()


def _find(loop: ListLoop, sizes: Sizes) -> _Found | None:
    for h, result in enumerate(loop.body.outputs):
        for activation, patterns in _CELLS.items():
            bound = next((b for b in (match(pattern, result) for pattern in patterns) if b is not None), None)
            if bound is None or loop.argument(bound["h"]) != h:
                continue
            kernel, recurrent, bias = (
                loop.outside(bound[name]) if name in bound else None for name in ("kernel", "recurrent", "bias")
            )
            time_major, stores = loop.rows(bound["x"], sizes), loop.stores(result, bound["x"])
            if kernel is None or recurrent is None or time_major is None or stores is None:
                continue
            if any(w is not None and w.data is None for w in (kernel, recurrent, bias)):
                continue
            if loop.leaves_only({h, *(store.position for store in stores)}):
                return _Found(activation, time_major, h, (kernel, recurrent, bias), stores)
    return None


def _rewrite(function: Function, loop: Node, found: _Found) -> None:
    x, backwards = batch_major(function, found.time_major, loop.name)
    kernel, recurrent, bias = found.weights
    assert recurrent.shape is not None
    units = recurrent.shape[0] or 0
    bias = constant(np.zeros(units, np.float32)) if bias is None else bias
    batch, time = (x.shape or (None, None))[:2]
    outputs = [Value(x.type, shape, loop.name) for shape in ((batch, time, units), (batch, units))]
    attrs = {"activation": found.activation, "go_backwards": backwards}
    operands = [x, loop.input(found.h), kernel, recurrent, bias]
    sequence, h = function.add(Node(RNN, operands, outputs, attrs, loop.name)).outputs
    replace_stores(function, loop, found.stores, sequence, h)
    function.replace(loop.outputs[found.h], h)
