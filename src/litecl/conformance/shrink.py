"""Minimizes a failing check to the operators that a runtime computes wrong given right inputs."""

import os
import pickle
import signal
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from litecl.bisection.case import write_case
from litecl.bisection.find import Bisection
from litecl.bisection.runners import INTERPRETER, Run, Runner
from litecl.bisection.search import Fault, Search
from litecl.bisection.tolerance import Error, Tolerance, worst
from litecl.conformance.faults import known_fault
from litecl.conformance.program import Died
from litecl.conformance.runtimes import Suspect
from litecl.conformance.spread import explains
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.file.reader import read
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model, Node
from litecl.verify.check import Check
from litecl.verify.record import FAIL, PASS, Row

_NOTHING = np.dtype(np.void)  # marks missing results
ROUNDING = "no operator is wrong by itself: small errors grow"
_TOGETHER = "no operator fails by itself"
_STATES = "right when each invoke is the first"


@dataclass(frozen=True)
class Guarded(Runner):
    """A runtime that may kill its process. It runs in a child; if that dies, the results match nothing.

    timeout_s: after which a child counts as hung.
    """

    suspect: Suspect | None = None
    timeout_s: float = 60.0

    def prepare(self, content: bytes) -> Run:
        """Return a function that loads and runs a model in a child."""
        count = len(read(content).subgraphs[0].outputs)

        def run(values: Sequence[Array]) -> list[Array]:
            assert self.suspect is not None
            prepare, results = self.suspect.prepare, None
            with suppress(Died):
                if self.suspect.load is not None and hasattr(os, "fork"):
                    results = _in_child(lambda: prepare(content)(values), self.timeout_s)
                else:
                    results = prepare(content)(values)
            return [np.zeros(0, _NOTHING)] * count if results is None else results

        return run


def _in_child(run: Callable[[], list[Array]], timeout_s: float) -> list[Array] | None:
    """Run a call in a forked child; return None if it dies or takes too long. Raises the child's LiteclError."""
    with tempfile.TemporaryFile() as answer:
        child = os.fork()
        if child == 0:
            _answer(run, answer.fileno(), timeout_s)
        _, status = os.waitpid(child, 0)
        if status:
            return None
        answer.seek(0)
        results = pickle.load(answer)  # written by this process's own child
    if isinstance(results, str):
        raise LiteclError(results)
    return list(results)


def _answer(run: Callable[[], list[Array]], file: int, timeout_s: float) -> None:
    """Write a call's result or error, and end the process."""
    signal.alarm(max(1, int(timeout_s)))  # by default this ends the process
    try:
        results: list[Array] | str = run()
    except LiteclError as error:
        results = str(error)
    except BaseException:
        os._exit(1)
    with os.fdopen(file, "wb", closefd=False) as answer:
        pickle.dump(results, answer)
    os._exit(0)


def shrunk(check: Check, row: Row, suspect: Suspect, timeout_s: float, folder: Path | None) -> Row:
    """Minimize a failing check; return its row, and write the smallest model to the folder, if given.

    The smallest model is one operator, or several whose error exceeds the errors of each combined. Wrong values pass,
    with a note, if such errors explain the whole model's.
    """
    tolerance = Tolerance(check.bound(np.dtype(np.float32))[0], suspect.steps)
    reference = Runner(INTERPRETER, numbers=suspect.numbers)
    search = Search(Guarded(suspect.name, suspect=suspect, timeout_s=timeout_s), reference, tolerance)
    try:
        whole = _Whole.of(search, check)
        if whole is None:
            return _known(replace(row, reason=f"{row.reason}; {_STATES}"), check.model(), suspect, is_smallest=False)
        fault = _fault(search, whole) or (None if row.status == FAIL else _fatal(search, whole))
    except LiteclError as error:
        row = replace(row, reason=f"{row.reason}; not made smaller: {error}")
        return _known(row, check.model(), suspect, is_smallest=False)
    if fault is None:
        if row.status == FAIL and whole.is_explained(tolerance) is not False:
            return replace(row, status=PASS, reason=f"{ROUNDING} ({row.reason})")
        return _known(replace(row, reason=f"{row.reason}; {_TOGETHER}"), whole.model, suspect, is_smallest=False)
    row = _known(replace(row, kernels=fault.ops), fault.model, suspect)
    if folder is not None:
        nodes = len(whole.model.subgraphs[0].nodes)
        write_case(Bisection(suspect.name, INTERPRETER, "fault", tolerance, nodes, whole.error, fault), folder)
        row = replace(row, case=folder.name)
    return row


@dataclass(frozen=True)
class _Whole:
    """A model with the first inputs that a runtime computes wrong, starting from initial variables, and the results."""

    model: Model
    given: Sequence[Array]
    expected: Sequence[Array]
    got: Sequence[Array]
    error: Error

    @classmethod
    def of(cls, search: Search, check: Check) -> "_Whole | None":
        """Find the first wrong inputs of a check; None if there are none. Raises LiteclError."""
        model = check.model()
        for step in check.steps():
            whole = search.whole(model, step.feeds)
            expected, got = (runner.prepare(whole)(step.feeds) for runner in (search.reference, search.suspect))
            error = worst(got, expected, search.tolerance)
            if error is not None:
                return cls(read(whole), step.feeds, expected, got, error)
        return None

    def is_explained(self, tolerance: Tolerance) -> bool | None:
        """Return whether operators' errors within the tolerance explain the results; None if unknown."""
        return explains(self.model, self.given, self.expected, self.got, tolerance)


def _known(row: Row, model: Model, suspect: Suspect, *, is_smallest: bool = True) -> Row:
    return replace(row, waived=known_fault(row, model, suspect.described(), is_smallest=is_smallest))


def _fault(search: Search, whole: _Whole) -> Fault | None:
    """Return the fault of a model with wrong outputs: the whole model if it is one operator."""
    main = whole.model.subgraphs[0]
    if len(main.nodes) == 1 and len(whole.model.subgraphs) == 1:
        name = main.tensors[main.outputs[whole.error.output]].name
        (op,) = (node.op.name for node in main.nodes)
        return Fault(0, (0,), (op,), (), name, whole.error, whole.model, tuple(whole.given), tuple(whole.expected))
    fault = search.fault(whole.model, 0, search.values(whole.model, 0, whole.given))
    if fault is None or len(fault.nodes) == 1:
        return fault
    got = search.suspect.prepare(write(fault.model))(fault.inputs)
    return None if explains(fault.model, fault.inputs, fault.expected, got, search.tolerance) else fault


def _fatal(search: Search, whole: _Whole) -> Fault | None:
    """Reduce the model to the fewest outputs that still kill the process, when no part does by itself."""
    model, kept = whole.model, None
    for output in reversed(model.subgraphs[0].outputs[1:]):
        smaller = _without(model, output)
        outcome = search.suspect.prepare(write(smaller))(whole.given)
        if any(value.dtype == _NOTHING for value in outcome):
            model, kept = smaller, smaller
    if kept is None:
        return None
    expected = search.reference.prepare(write(kept))(whole.given)
    nodes = kept.subgraphs[0].nodes
    names = tuple(node.op.name for node in nodes)
    return Fault(0, tuple(range(len(nodes))), names, (), "", whole.error, kept, tuple(whole.given), tuple(expected))


def _without(model: Model, output: int) -> Model:
    """Return a model without one of its outputs and the nodes that only it needs."""
    main = model.subgraphs[0]
    outputs = tuple(t for t in main.outputs if t != output)
    needed, nodes = {*outputs}, list[Node]()
    for node in reversed(main.nodes):
        if needed & {*node.outputs} or not node.outputs:
            needed |= {*node.inputs}
            nodes.insert(0, node)
    smaller = replace(main, outputs=outputs, nodes=tuple(nodes))
    return replace(model, subgraphs=(smaller, *model.subgraphs[1:]))
