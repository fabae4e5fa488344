"""Prepares a model in the background while the CPU runs it: ``CLDelegate(warm_up="background")``.

A thread builds the delegation; until then the original model runs. The thread starts building after the first invoke,
so as not to delay it, or after a moment without one. It stops between programs once nobody needs the result: the
interpreter was closed or resized, or the process ends.
"""

import os
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import replace

from litecl.delegate.delegation import CLDelegation
from litecl.delegate.progress import BuildStep, Progress, told_to
from litecl.delegate.report import Counters, DelegationReport, NodeRow, WarmUp
from litecl.interpreter.delegation import Memory
from litecl.interpreter.graph import Model

Made = Callable[[], CLDelegation]

WARMING = "the device is warming up"  # the reason of every node until then
_FIRST_S = 0.25  # how long to wait for the first invoke


class _NotWanted(BaseException):
    """Raised in the thread once nobody needs the result. Not an Exception, so that no handler catches it."""


class Warming(Memory):
    """The delegation of a model until its successor is built, which takes over between two invokes.

    made: returns an unprepared delegation. progress: the user's listener, called in the thread.
    """

    def __init__(self, original: Model, made: Made, progress: Progress | None) -> None:
        self.model = original
        self._made, self._progress = made, progress
        self._built: CLDelegation | None = None
        self._error: Exception | None = None
        self._runs = 0
        self._start()

    def _start(self) -> None:
        self._process, self._start_s, self._step = os.getpid(), time.perf_counter(), BuildStep("", 0, 0)
        self._answered = threading.Event()
        given = weakref.ref(self), self._made(), self._answered
        thread = threading.Thread(target=_build, args=given, name="litecl warm-up")
        try:
            thread.start()
        except RuntimeError:  # the system refuses more threads
            _build(*given)

    def successor(self, runs: int) -> CLDelegation | None:
        """See ``Preliminary.successor``. Raises the build's error: DelegateError if ``strict``."""
        self._runs = runs
        if runs:
            self._answered.set()
        if self._error is not None:
            raise self._error
        if self._built is None and self._process != os.getpid():
            self._start()  # after a fork: the thread exists only in the parent
        if self._built is not None and self._built.warm_up is not None:
            self._built.warm_up = replace(self._built.warm_up, cpu_invokes=runs)
        return self._built

    def noted(self, step: BuildStep) -> None:
        """Record a step; called in the thread."""
        self._step = step
        if self._progress is not None:
            self._progress(step)

    def ended(self, built: CLDelegation, error: Exception | None) -> None:
        """Record the end of the build; called in the thread."""
        built.warm_up = replace(self._warm_up(), ready=True)
        self._error = error
        self._built = None if error else built

    def _warm_up(self) -> WarmUp:
        return WarmUp(self._step.done, self._step.total, self._runs, time.perf_counter() - self._start_s)

    def report(self) -> DelegationReport:
        """Report the build's progress; the CPU runs every node."""
        nodes = [(i, n, node) for i, graph in enumerate(self.model.subgraphs) for n, node in enumerate(graph.nodes)]
        return DelegationReport(
            device="none",
            nodes=tuple(NodeRow(i, n, node.op.name, False, None, WARMING) for i, n, node in nodes),
            partitions=(),
            counters=Counters(),
            build_s=0.0,
            cache_hits=0,
            failures=() if self._error is None else (str(self._error),),
            warm_up=self._warm_up(),
        )


def _build(waiting: "weakref.ref[Warming]", delegation: CLDelegation, answered: threading.Event) -> None:
    """Prepare a delegation, as long as somebody needs it."""

    def noted(step: BuildStep) -> None:
        warming = waiting()
        if warming is None or not threading.main_thread().is_alive():
            raise _NotWanted
        warming.noted(step)

    error = None
    answered.wait(_FIRST_S)
    try:
        with told_to(noted):
            delegation.prepare()
    except _NotWanted:
        return
    except Exception as raised:  # raised by the next invoke
        error = raised
    if (warming := waiting()) is not None:
        warming.ended(delegation, error)
