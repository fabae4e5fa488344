"""Cases of aeq.hadamard_rotation."""

from litecl.cases import Case
from litecl.cases.values import Random
from litecl.interpreter.graph import Shape
from litecl.interpreter.ops.hadamard import HADAMARD_ROTATION, HadamardRotationOptions

_random = Random(137)


def _case(shape: Shape, size: int) -> Case:
    options = HadamardRotationOptions(size, (1, -1, 1, 1))
    # LiteRT's reference resolver does not know the operator. Sums are added in its order, so there is no difference.
    inputs = [_random.normal(*shape)]
    return Case(f"{list(shape)} by {size}", HADAMARD_ROTATION, options, inputs, kernels="optimised", tolerance=0.0)


CASES = (
    _case((3, 8), 8),
    _case((2, 12), 4),
    _case((5, 1), 1),
    _case((2, 3, 32), 16),
    _case((1, 4, 64), 64),
    _case((2, 256), 128),
    _case((7, 2), 2),
    _case((1, 96), 32),
    _case((2, 5, 1024), 512),
    _case((3, 1024), 1024),
)
