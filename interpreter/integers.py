"""Requirements of the integer kernels of quantized operators, as in TensorFlow Lite.

Operator records carry these facts (``Op.integers``), where quantization reads them.
"""

from collections.abc import Mapping
from dataclasses import field

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.schema import TensorType

_INT8, _INT16 = TensorType.INT8, TensorType.INT16


@dataclass(frozen=True)
class Integers:
    """The integer kernels of an operator. Float32 operands that are not named here are activations.

    types: the activation types that its kernels take.
    shared: True if all activations, operands and results, share one scale and zero point.
    clips: True if constants may be clipped to that scale's range, because values beyond it never reach a result.
    weights: positions of constants stored as symmetric int8, with the axis of their output channels, or None for one
        scale.
    bias: the position of the constant that is added to the sums, in their scale.
    biases: positions of such constants if there are several, each with the position of the weights of its sums.
    states: positions of states kept from step to step.
    fixed: scale and zero point that the results must have, by activation type.
    moves: True if the operator only moves or compares elements: it stays in float if all its neighbours do.
    options: fields of the node's options to change for the integer kernels.
    steps: the smallest activation scale whose integers the kernels tell apart, and an exclusive upper bound of all
        operands' scales; None if any will do.
    raised: the bits by which the kernels shift operands up before they rescale to the results' scale, by activation
        type: that scale must be above twice the largest of the operands', to the ``power`` that the kernels compute,
        shifted down by as many bits.
    """

    types: tuple[TensorType, ...] = (_INT8, _INT16)
    shared: bool = False
    clips: bool = False
    weights: Mapping[int, int | None] = field(default_factory=dict)
    bias: int | None = None
    biases: Mapping[int, int] = field(default_factory=dict)
    states: tuple[int, ...] = ()
    fixed: Mapping[TensorType, tuple[float, int]] = field(default_factory=dict)
    moves: bool = False
    options: Mapping[str, object] = field(default_factory=dict)
    steps: tuple[float, float] | None = None
    raised: Mapping[TensorType, int] = field(default_factory=dict)
    power: int = 1

    @property
    def sums(self) -> Mapping[int, int]:
        """The positions of constants that are added to sums, each with the position of the weights of its sums."""
        return self.biases if self.bias is None else {self.bias: next(iter(self.weights))}


@dataclass(frozen=True)
class InFloat:
    """An operator with integer kernels that stays in float all the same; reason completes "it stays in float:"."""

    reason: str


PLAIN = Integers()
BYTES = Integers((_INT8,))
SHARING = Integers(shared=True)
MOVING = Integers(shared=True, moves=True)
MOVING_BYTES = Integers((_INT8,), shared=True, moves=True)
# They add integers of 0, which stand for zeros only without a zero point.
MOVING_WORDS = Integers((_INT16,), shared=True, moves=True)
TELLING = Integers(moves=True)
TELLING_OF_BYTES = Integers((_INT8,), moves=True)
# Comparisons round real numbers to multiples of 1/256, and LiteRT aborts at a scale of 1 (comparisons.cc).
# Scales of 16-bit activations are nearly always smaller.
COMPARING = Integers((_INT8,), moves=True, steps=(1 / 256, 1.0))
# LiteRT aborts at a smaller scale of the results (QuantizeMultiplierSmallerThanOneExp).
ADDING = Integers(options={"pot_scale_int16": False}, raised={_INT8: 20, _INT16: 15})
SQUARING = Integers((_INT8,), raised={_INT8: 14}, power=2)
UNIT = Integers(fixed={_INT8: (1 / 256, -128), _INT16: (1 / 32768, 0)})  # values from 0 to 1
SIGNED_UNIT = Integers(fixed={_INT8: (1 / 128, 0), _INT16: (1 / 32768, 0)})  # values from -1 to 1

KEEPS_STATES = InFloat("its states stay in float")
ADDS_ZEROS = InFloat("it adds integers of 0, which are not zeros where there is a zero point")
REPLACED = InFloat("other operators take its place where they can")
BORDER = InFloat("it is where floats begin or end")
