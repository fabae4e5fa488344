"""Lowers ``non_max_suppression_padded_v2`` to NON_MAX_SUPPRESSION_V4.

Operands: boxes [N,4], scores [N], the most boxes to select, thresholds of overlap and score. Results: the indices of
the selected boxes, and their number.
"""

from collections.abc import Sequence

from litecl.converter.composites import Composite
from litecl.converter.fusions.custom import custom_op
from litecl.converter.fusions.fusion import Fusion, expect, expect_rank
from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import BUILTINS
from litecl.interpreter.schema import TensorType

_NAME = "NON_MAX_SUPPRESSION_V4"


def _check(composite: Composite) -> str | None:
    wrong = expect(composite, range(5, 16), range(2, 3)) or expect_rank(composite, 0, 2, "boxes")
    if wrong is not None:
        return wrong
    if any(value.type != TensorType.INT32 for value in composite.outputs):
        return "expected int32 results"
    return expect_rank(composite, 1, 1, "scores")


def _rewrite(b: Builder, composite: Composite) -> Sequence[Value]:
    op = BUILTINS.get(_NAME) or custom_op(_NAME, composite.outputs, custom=False)
    boxes, scores, count, overlap, score = composite.inputs[:5]
    return b.ops(op, [boxes, scores, b.int32(count), overlap, score], NoOptions(), b.like())


NON_MAX_SUPPRESSION = Fusion("non_max_suppression_padded_v2", _rewrite, _check)
