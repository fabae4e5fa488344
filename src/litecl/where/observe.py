"""Runs a model of one node on a runtime, several times, and compares it with litecl's interpreter."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from litecl.comparison import difference, distances, is_float
from litecl.conformance.judge import first_line
from litecl.conformance.runtimes import Suspect
from litecl.conformance.vela import Placement
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array
from litecl.perf.feeds import outputs_of
from litecl.where.kinds import WITH_OTHERS
from litecl.where.seen import CLOSE, Seen
from litecl.where.specimens import Specimen, draws

_DRAWS = 60
_POWERS = range(6, 24)  # of two, bytes
_INFINITE = 1e9  # JSON has no infinity
_NUMBERS = 3000  # compared in a specimen, after which no more inputs are drawn


class Unfed(LiteclError):
    """Raised when a runtime takes no inputs of this type."""


def unseen(specimen: Specimen) -> Seen:
    """Return a record without results."""
    return Seen(specimen.name, str(specimen.kind), specimen.node.version)


def observe(specimen: Specimen, suspect: Suspect) -> Seen | None:
    """Run a specimen; None if litecl's interpreter refuses it, or if the runtime takes no such inputs: it may run the
    node within a model.
    """
    seen, content = unseen(specimen), write(specimen.model)
    if suspect.place is not None:
        return _placed(seen, suspect.place, content)
    anew = specimen.node.op.name in WITH_OTHERS  # no reset gives resource variables their first values
    reference = Interpreter(model_content=content)
    theirs: Any = None
    for feeds in draws(specimen, _DRAWS):
        if anew:
            reference = Interpreter(model_content=content)
        try:
            expected = run(reference, feeds)
        except LiteclError:
            if theirs is None:
                return None
            continue
        try:
            first = theirs is None
            if first or anew:
                theirs = loaded(suspect, content)
            got = run(theirs, feeds)
            again = run(_loaded_beside(suspect, content), feeds) if first else got
        except Unfed:
            return None
        except Exception as error:  # every runtime has its own
            if not seen.numbers:  # else it refuses these values, not the node
                seen.refused = first_line(error)
            return seen
        seen.special = seen.special or any(map(_is_special, (*feeds, *expected)))
        seen.wrong = seen.wrong or _changed(got, again)
        _compare(seen, got, expected)
        if seen.numbers >= _NUMBERS:
            break
    return seen


def _loaded_beside(suspect: Suspect, content: bytes) -> Any:
    """Load a model beside another, after there were numbers in memory that is free, which it may read unwritten."""
    [np.full(1 << power, 0x5A, np.uint8) for power in _POWERS]  # together, so that each has its own
    return loaded(suspect, content)


def _placed(seen: Seen, place: Callable[[bytes], Placement], content: bytes) -> Seen | None:
    """None if the compiler places only some of several nodes on its NPU."""
    try:
        placement = place(content)
    except LiteclError as error:
        return replace(seen, refused=first_line(error))
    if placement.npu and placement.cpu and seen.kind.partition(" ")[0] in WITH_OTHERS:
        return None
    return replace(seen, npu=not placement.cpu, refused="; ".join(placement.reasons) if placement.cpu else None)


def loaded(suspect: Suspect, content: bytes) -> Any:
    """Load a model on a runtime."""
    assert suspect.load is not None, "a program or a compiler can't be loaded"
    runtime = suspect.load(content)
    runtime.allocate_tensors()
    return runtime


def run(runtime: Any, feeds: Sequence[Array]) -> list[Array]:
    """Run a model from its initial states on values of its inputs; return its outputs."""
    details = runtime.get_input_details()
    resized = [d for d, feed in zip(details, feeds, strict=True) if tuple(d["shape"]) != feed.shape]
    for detail, feed in zip(details, feeds, strict=True):
        if detail in resized:
            runtime.resize_tensor_input(detail["index"], feed.shape)
    if resized or isinstance(runtime, Interpreter):
        runtime.allocate_tensors()
    runtime.reset_all_variables()
    try:
        for detail, feed in zip(details, feeds, strict=True):
            runtime.set_tensor(detail["index"], feed)
    except Exception as error:  # every runtime has its own
        raise Unfed(f"an input cannot be set: {first_line(error)}") from error
    runtime.invoke()
    return [np.array(value) for value in outputs_of(runtime)]


def _is_special(x: Array) -> bool:
    if not is_float(x.dtype) or not x.size:
        return False
    size, limits = np.abs(x.astype(np.float64)), np.finfo(np.float16 if x.dtype.itemsize == 2 else np.float32)
    tiny = (size > 0) & (size < limits.tiny)
    return bool(np.any(tiny | ~(size < limits.max / 8)))


def _compare(seen: Seen, got: Sequence[Array], expected: Sequence[Array]) -> None:
    if len(got) != len(expected):
        seen.wrong = f"{len(got)} outputs instead of {len(expected)}"
        return
    for x, y in zip(got, expected, strict=True):
        one = apart(x, y)
        seen.numbers += one["numbers"]
        seen.differing += one["differing"]
        seen.steps, seen.relative = max(seen.steps, one["steps"]), max(seen.relative, one["relative"])
        seen.wrong = seen.wrong or one["wrong"]


def _changed(first: Sequence[Array], again: Sequence[Array]) -> str:
    """Return what is wrong if the same inputs give other results, beyond rounding: numbers that were never written."""
    pairs = [apart(x, y) for x, y in zip(first, again, strict=True)]
    changes = any(one["wrong"] or one["steps"] or one["relative"] > CLOSE for one in pairs)
    return "the results change from run to run" if changes else ""


def apart(got: Array, expected: Array) -> dict[str, Any]:
    """Return how many numbers were compared and how many differ, the largest difference of integers in steps and of
    floats relative to the largest magnitude, and what is wrong beyond numbers.
    """
    largest = difference(got, expected)
    alike = got.shape == expected.shape and got.dtype == expected.dtype
    differing = int(np.count_nonzero(distances(got, expected))) if alike else expected.size
    steps = largest.absolute if expected.dtype.kind in "iub" and not largest.wrong else 0.0
    relative = 0.0 if largest.wrong or expected.dtype.kind in "iub" else min(largest.relative, _INFINITE)
    return {
        "numbers": expected.size,
        "differing": differing,
        "steps": steps,
        "relative": relative,
        "wrong": largest.wrong,
    }
