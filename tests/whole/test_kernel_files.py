"""Device operators, the operator table and the cases name each other."""

from litecl.cases.tables import TABLES
from litecl.delegate.ops import CL_OPS
from litecl.interpreter.op import Op
from litecl.interpreter.ops import BUILTINS, CUSTOMS
from litecl.verify.in_tflite import CUSTOM_IN_TFLITE


def test_every_device_operator_is_in_the_table() -> None:
    """A device operator is an operator of the interpreter, the same record, or a form that the record selects."""
    table = {**BUILTINS, **CUSTOMS}
    others = [op for op in CL_OPS if table[op.name] is not op]
    assert [op.name for op in others if BUILTINS[op.name].select is None] == []


def test_every_device_operator_has_a_case() -> None:
    """A case that the device should claim compares each with an independent runtime; operators that LiteRT lacks have
    tests of their own (``test_ops.ELSEWHERE``).
    """
    claimed = {case.op for table in TABLES for case in table.CASES if case.device is None}
    known = [op for op in CL_OPS if isinstance(op, Op) and (not op.custom or op.name in CUSTOM_IN_TFLITE)]
    assert sorted(op.name for op in known if op not in claimed) == []
