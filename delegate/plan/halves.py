"""The ends of a region with FLOAT16 tensors: what enters is widened, what leaves is rounded; see analysis/halves.py."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from litecl.delegate.cl_op import Operand, Target
from litecl.delegate.kit import halves
from litecl.delegate.plan.inline import Origin
from litecl.delegate.plan.steps import Work
from litecl.delegate.plan.values import work
from litecl.interpreter.schema import TensorType


def entering(
    inputs: Mapping[int, Operand], narrow: Collection[int], used: Collection[int], first: Origin, target: Target
) -> tuple[dict[int, Operand], list[Work]]:
    """Return the operands that the host writes, by tensor, and the works that widen those at ``narrow``.

    used: the tensors that the region reads. first: the node that the works belong to.
    """
    given = {t: _half(operand) if t in narrow else operand for t, operand in inputs.items()}
    works = [work(first, halves.widen(given[t], inputs[t], target)) for t in inputs if t in narrow and t in used]
    return given, works


def leaving(
    outputs: Sequence[Operand], tensors: Sequence[int], narrow: Collection[int], last: Origin, target: Target
) -> tuple[tuple[Operand, ...], list[Work]]:
    """Return the operands that the host reads, and the works that round those of the tensors at ``narrow``."""
    given = tuple(_half(value) if t in narrow else value for t, value in zip(tensors, outputs, strict=True))
    pairs = zip(outputs, given, strict=True)
    return given, [work(last, halves.narrow(value, half, target)) for value, half in pairs if value is not half]


def _half(operand: Operand) -> Operand:
    return Operand(replace(operand.spec, type=TensorType.FLOAT16, data=None))
