"""Joins two LSTM layers that read one sequence forwards and backwards, as Keras' Bidirectional does.

TFLite's backward sequence is in time order; Keras' is in the order of computation, and Keras reverses it.
"""

from collections.abc import Hashable

import numpy as np

from litecl.converter.graph import Function, Node, Value, constant
from litecl.converter.own_ops import BIDIRECTIONAL_LSTM, LSTM


def fuse_bidirectional(function: Function) -> None:
    """Replace every such pair."""
    waiting: dict[Hashable, Node] = {}
    for node in list(function.nodes):
        if node.op is not LSTM:
            continue
        key = (_origin(node.input(0)), node.attrs["activation"])
        other = waiting.get(key)
        if other is not None and other.attrs["go_backwards"] != node.attrs["go_backwards"]:
            del waiting[key]
            _join(function, *sorted((other, node), key=lambda lstm: bool(lstm.attrs["go_backwards"])))
        else:
            waiting[key] = node
    function.tidy()


def _origin(x: Value) -> Value:
    """Return the sequence without transpositions to time-major and back."""
    outer = x.producer
    inner = outer.input(0).producer if outer is not None and outer.op == "Transpose" else None
    if outer is None or inner is None or inner.op != "Transpose":
        return x
    first, second = inner.input(1).data, outer.input(1).data
    if first is None or second is None or first[second].tolist() != sorted(first.tolist()):
        return x
    return _origin(inner.input(0))


def _join(function: Function, forward: Node, backward: Node) -> None:
    # The operator supports only equal numbers of units.
    if forward.input(1).shape != backward.input(1).shape or _depends(forward, backward) or _depends(backward, forward):
        return
    outputs = [Value(v.type, v.shape, v.name) for v in (*forward.outputs, *backward.outputs)]
    attrs = {"activation": forward.attrs["activation"]}
    operands = [_origin(forward.input(0)), *forward.inputs[1:], *backward.inputs[1:]]
    function.add(Node(BIDIRECTIONAL_LSTM, operands, outputs, attrs, backward.name))
    function.replace_node(forward, outputs[:3])
    function.replace_node(backward, [_reversed(function, outputs[3]), *outputs[4:]])


def _depends(node: Node, on: Node) -> bool:
    seen: set[Node] = set()
    pending = [value.producer for value in node.inputs if value is not None]
    while pending:
        producer = pending.pop()
        if producer is None or producer in seen:
            continue
        seen.add(producer)
        pending += [value.producer for value in producer.inputs if value is not None]
    return on in seen


def _reversed(function: Function, sequence: Value) -> Value:
    axis = constant(np.array([1], np.int32))
    return function.emit("ReverseV2", [sequence, axis], sequence, f"{sequence.name}/reversed")
