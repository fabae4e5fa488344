"""Runs a check twice on a runtime and compares it with litecl's interpreter."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from litecl.bisection.tolerance import Tolerance
from litecl.comparison import Difference, difference, same_bits
from litecl.conformance.program import Died
from litecl.conformance.runtimes import Suspect
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array
from litecl.interpreter.numbers import Numbers
from litecl.perf.feeds import outputs_of
from litecl.verify.check import Check, Step
from litecl.verify.record import CRASHED, FAIL, NOT_RUN, PASS, REFUSED, Row

REFERENCE = "litecl's interpreter"
Outputs = list[list[Array]]
"""A model's outputs after each step."""


def judge(check: Check, suspect: Suspect) -> Row:
    """Run a check. A runtime that raises an error has refused it."""
    row = Row(check.name, **asdict(check.labels), status=PASS, reference=REFERENCE)
    try:
        return _judged(check, row, suspect)
    except Died as error:
        return replace(row, status=CRASHED, reason=str(error))
    except LiteclError as error:
        return replace(row, status=REFUSED, reason=first_line(error))


def _judged(check: Check, row: Row, suspect: Suspect) -> Row:
    content, steps = write(check.model()), check.steps()
    if suspect.load is None:
        steps = steps[:1]  # each run of a program starts from initial variables
    expected, refusal = expected_of(content, steps, suspect.numbers)
    if not expected:
        return replace(row, status=NOT_RUN, reason=f"{REFERENCE} refuses it: {refusal}")
    steps = steps[: len(expected)]
    first = _play(suspect, content, steps)
    again = [_play(suspect, content, steps)] if suspect.load is not None else []
    if not all(same_bits(x, y) for other in again for x, y in zip(_flat(first), _flat(other), strict=True)):
        return replace(row, status=FAIL, reason="not repeatable: a second run gives other bits")
    return compared(check, row, first, expected, suspect.steps)


def expected_of(content: bytes, steps: Sequence[Step], numbers: Numbers) -> tuple[Outputs, str]:
    """Return the interpreter's outputs up to the first step that it refuses, and the reason: a random index may be out
    of range.
    """
    refusal = ""
    for count in range(len(steps), 0, -1):
        try:
            return _on(Interpreter(model_content=content, numbers=numbers), steps[:count]), refusal
        except LiteclError as error:
            refusal = first_line(error)
    return [], refusal


def _play(suspect: Suspect, content: bytes, steps: Sequence[Step]) -> Outputs:
    if suspect.load is None:
        return [suspect.prepare(content)(steps[0].feeds)]
    try:
        return _on(suspect.load(content), steps)
    except (ValueError, RuntimeError) as error:  # litecl's errors derive from these too
        raise LiteclError(first_line(error)) from error


def _on(runtime: Any, steps: Sequence[Step]) -> Outputs:
    outputs: Outputs = []
    for number, step in enumerate(steps):
        inputs = runtime.get_input_details()
        for detail, feed in zip(inputs, step.feeds, strict=True):
            if tuple(detail["shape"]) != feed.shape:
                runtime.resize_tensor_input(detail["index"], feed.shape)
        runtime.allocate_tensors()
        if step.reset or number == 0:
            runtime.reset_all_variables()
        for detail, feed in zip(inputs, step.feeds, strict=True):
            runtime.set_tensor(detail["index"], feed)
        runtime.invoke()
        outputs.append([np.array(value) for value in outputs_of(runtime)])
    return outputs


def _flat(outputs: Outputs) -> list[Array]:
    return [value for step in outputs for value in step]


def compared(check: Check, row: Row, got: Outputs, expected: Outputs, steps: int) -> Row:
    """Compare outputs; return the row with the worst difference. steps: tolerance for quantized integers."""
    for number, (a, b) in enumerate(zip(got, expected, strict=True)):
        if len(a) != len(b):
            return replace(row, status=FAIL, reason=f"invoke {number}: {len(a)} outputs instead of {len(b)}")
        for position, (x, y) in enumerate(zip(a, b, strict=True)):
            apart, (bound, source) = difference(x, y), check.bound(y.dtype)
            may = y.dtype.kind in "iub" and not apart.wrong and apart.ulp <= Tolerance(steps=steps).of(y.dtype)
            exceeds = apart.exceeds(bound) and not may
            if row.relative is None or apart.relative > row.relative or exceeds:
                row = replace(row, relative=apart.relative, ulp=apart.ulp, bound=bound, bound_source=source)
            if exceeds:
                return replace(row, status=FAIL, reason=f"invoke {number}, output {position}: {_words(apart)}")
    return row


def _words(apart: Difference) -> str:
    return apart.wrong or f"wrong values: off by {apart.relative:.2g} of the largest ({apart.ulp:.3g} ulp)"


def first_line(error: BaseException) -> str:
    """Return an error's first line, or its type if that is empty."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
