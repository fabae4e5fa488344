"""Counts a node's multiply-adds from shapes."""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from litecl.interpreter.graph import ABSENT, Node, TensorSpec

Specs = Sequence[TensorSpec | None]


def multiply_adds(node: Node, tensors: Sequence[TensorSpec]) -> int | None:
    """Return a node's multiply-adds, None if it isn't a product or if shapes are unknown."""
    count = _COUNTS.get(node.op.name)
    inputs = [None if t == ABSENT else tensors[t] for t in node.inputs]
    outputs = [tensors[t] for t in node.outputs]
    if count is None or any(spec is not None and spec.shape is None for spec in (*inputs, *outputs)):
        return None
    return count(inputs, outputs, node.options)


def _per_output(channels: int) -> Callable[[Specs, Specs, Any], int]:
    """Return a counter in which every output uses the weights of its channel. channels: the weights' channel axis."""

    def count(inputs: Specs, outputs: Specs, options: Any) -> int:
        weights = _shape(inputs[1])
        return _size(outputs[0]) * prod(weights) // max(1, weights[channels])

    return count


def _transposed(inputs: Specs, outputs: Specs, options: Any) -> int:
    weights = _shape(inputs[1])
    return _size(inputs[2]) * prod(weights) // max(1, weights[-1])


def _matmul(inputs: Specs, outputs: Specs, options: Any) -> int:
    return _size(outputs[0]) * _shape(inputs[0])[-2 if options.adj_x else -1]


def _recurrent(inputs: Specs, outputs: Specs, options: Any) -> int:
    """Count all matrices once per step of every sequence."""
    x = _shape(inputs[0])
    matrices = [spec for spec in inputs[1:] if spec is not None and spec.data is not None and len(_shape(spec)) == 2]
    return prod(x[:-1]) * sum(map(_size, matrices))


def _shape(spec: TensorSpec | None) -> tuple[int, ...]:
    assert spec is not None and spec.shape is not None
    return spec.shape


def _size(spec: TensorSpec | None) -> int:
    return prod(_shape(spec))


_COUNTS: Mapping[str, Callable[[Specs, Specs, Any], int]] = {
    "CONV_2D": _per_output(0),
    "DEPTHWISE_CONV_2D": _per_output(-1),
    "CONV_3D": _per_output(-1),
    "FULLY_CONNECTED": _per_output(0),
    "TRANSPOSE_CONV": _transposed,
    "CONV_3D_TRANSPOSE": _transposed,
    "BATCH_MATMUL": _matmul,
    **dict.fromkeys(
        (
            *("LSTM", "RNN", "UNIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN"),
            *("BIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_RNN"),
        ),
        _recurrent,
    ),
}
