"""TensorFlow's FakeQuant operators, which simulate rounding in quantization-aware training."""

from dataclasses import dataclass

import numpy as np

from litecl.converter.graph import Node
from litecl.converter.records import Grid
from litecl.interpreter.graph import Array

OF_VARIABLES = ("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
FAKE_QUANTS = ("FakeQuantWithMinMaxArgs", *OF_VARIABLES)


@dataclass(frozen=True)
class Rounding:
    """How a FakeQuant operator rounds. low, high: [1], or one element per index of the last dimension."""

    low: Array
    high: Array
    num_bits: int
    narrow_range: bool


def rounding_of(node: Node) -> Rounding | None:
    """Return how a FakeQuant node rounds; None for other nodes, and if the model computes the range."""
    if node.op not in FAKE_QUANTS:
        return None
    bits, narrow = int(node.attrs["num_bits"]), bool(node.attrs["narrow_range"])
    if node.op not in OF_VARIABLES:
        low, high = (np.full(1, node.attrs[name], np.float32) for name in ("min", "max"))
        return Rounding(low, high, bits, narrow)
    known = [node.input(position).data for position in (1, 2)]
    if known[0] is None or known[1] is None:
        return None
    return Rounding(known[0].reshape(-1), known[1].reshape(-1), bits, narrow)


def grid_of(node: Node, data: Array) -> Grid | None:
    """Return the symmetric 8-bit grid of a constant that a FakeQuant node of up to 8 bits rounds, else None.

    The rounded numbers are multiples of a step. If they lie within 127 steps, the grid uses that step and is exact.
    """
    rounding = rounding_of(node)
    if rounding is None or rounding.num_bits > 8:
        return None
    step = (rounding.high - rounding.low) / np.float32((1 << rounding.num_bits) - 1 - rounding.narrow_range)
    others = tuple(range(data.ndim - 1)) if step.size > 1 else None
    used = np.abs(data).max(axis=others, initial=0.0)
    ends = np.where(used < 127.5 * step, 127 * step, np.maximum(-rounding.low, rounding.high))
    return Grid(-ends, ends, max(data.ndim - 1, 0))
