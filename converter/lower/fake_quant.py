"""FakeQuant operators on activations; those on constants are folded."""

import numpy as np

from litecl.converter.fake_quant import FAKE_QUANTS, OF_VARIABLES, rounding_of
from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder, Lowering
from litecl.interpreter.ops.binary import MAXIMUM, MINIMUM
from litecl.interpreter.ops.quantize import FAKE_QUANT, FakeQuantOptions


def _fake_quant(b: Builder) -> Value:
    rounding = rounding_of(b.node)
    if rounding is None:
        raise b.error("its range must be constant at conversion, and is computed")
    if rounding.low.size != 1:
        raise b.error("TFLite rounds activations to one range for all channels")
    low, high = float(rounding.low[0]), float(rounding.high[0])
    if low == high == 0 and b.node.op in OF_VARIABLES:
        zero = b.const(np.float32(0))  # TensorFlow returns zeros; FAKE_QUANT would divide by zero
        return b.op(MAXIMUM, [b.op(MINIMUM, [b.node.input(0), zero]), zero])
    options = FakeQuantOptions(low, high, rounding.num_bits, rounding.narrow_range)
    return b.op(FAKE_QUANT, [b.node.input(0)], options)


LOWERINGS: dict[str, Lowering] = dict.fromkeys(FAKE_QUANTS, _fake_quant)
