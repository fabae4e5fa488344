"""Which operators have integer kernels, and what these require of tensors, as their records say (``Op.integers``)."""

from collections.abc import Iterator, Mapping

from litecl.interpreter.integers import InFloat, Integers
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.ops import every_form

Rule = Integers


class _Rules(Mapping[Op | ControlOp, Rule]):
    """The rules by operator."""

    def __getitem__(self, op: Op | ControlOp) -> Rule:
        if isinstance(op, Op) and isinstance(op.integers, Rule):
            return op.integers
        raise KeyError(op)

    def __iter__(self) -> Iterator[Op | ControlOp]:
        return (op for op in every_form() if op in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


RULES: Mapping[Op | ControlOp, Rule] = _Rules()


def why_in_float(op: Op | ControlOp) -> str:
    """Return why an operator without a rule stays in float."""
    reason = op.integers if isinstance(op, Op) else None
    return reason.reason if isinstance(reason, InFloat) else "it has no integer kernel"
