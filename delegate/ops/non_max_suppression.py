"""NON_MAX_SUPPRESSION_V4 and _V5: one work-item, as every selection depends on those before it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Refusal, Scratch, Step
from litecl.delegate.kit.claims import Specs, constant, given
from litecl.delegate.kit.schedule import chunks
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.non_max_suppression import NON_MAX_SUPPRESSION_V4, NON_MAX_SUPPRESSION_V5

CANDIDATE_BYTES = 12
"""Size of a Candidate (heap.h)."""
BOX_ROWS = 5
"""Rows of floats of the boxes that are kept (boxes.h)."""
_SIGMA = 5
_MOST_COMPARISONS = 1 << 28  # about a second's worth, without vectors


def rounded_up(count: int, width: int) -> int:
    """Return a row's length rounded up to whole vectors."""
    return -(-count // width) * width


def too_long(comparisons: int) -> Refusal | None:
    """Refuse boxes that may take so long that a time limit should apply: the device can't apply one."""
    return Refusal(f"up to {comparisons} comparisons of boxes") if comparisons > _MOST_COMPARISONS else None


def _claim_hard(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    return constant(inputs, max_output_size=2) or too_long(_comparisons(given(inputs, 1), outputs[0]))


def _comparisons(scores: TensorSpec, chosen: TensorSpec) -> int:
    return scores.size * min(scores.size, chosen.size)


def _claim_soft(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    if refusal := _claim_hard(options, inputs, outputs) or constant(inputs, soft_nms_sigma=_SIGMA):
        return refusal
    sigma = given(inputs, _SIGMA).data
    return Refusal("a negative soft_nms_sigma") if sigma is not None and sigma < 0 else None


def _lower(call: Call) -> list[Step]:
    boxes, scores, iou_threshold, score_threshold = (call.input(i) for i in (0, 1, 3, 4))
    n, most = scores.spec.size, call.outputs[0].spec.size
    room = rounded_up(min(n, most), call.target.vector_width)
    chosen, *selected, count = call.outputs
    soft: list[Arg] = [call.input(_SIGMA), *selected] if selected else []
    memory = Scratch(CANDIDATE_BYTES * n), Scratch(4 * BOX_ROWS * room)
    sizes = (np.int32(size) for size in (n, most, room))
    args = (boxes, scores, iou_threshold, score_threshold, *soft, chosen, count, *memory, *sizes)
    defines = {"SOFT": 1} if soft else {}
    most_work = _comparisons(scores.spec, call.outputs[0].spec)  # or far less, depending on the boxes
    return [chunks("non_max_suppression", 1, call.target).launch("non_max_suppression", args, defines, most_work)]


CL_OPS = (
    ClOp(NON_MAX_SUPPRESSION_V4, claim=_claim_hard, lower=_lower, cpu_only=True),
    ClOp(
        NON_MAX_SUPPRESSION_V5,
        claim=_claim_soft,
        lower=_lower,
        cpu_only=True,
        float64=lambda options, inputs, outputs: True,
    ),
)
