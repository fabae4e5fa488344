"""Preparing a model in the background, while the CPU runs it: ``CLDelegate(warm_up="background")``.

A thread builds the delegation; until then the model is the original one. It begins after the first answer, which it
would hold up, or a moment later if none is asked for. It stops between programs if nobody waits for it any more: the
interpreter was closed or given other shapes, or the process ends.
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
from litecl.interpreter.delegation import OnTheHost
from litecl.interpreter.graph import Model

Made = Callable[[], CLDelegation]

WARMING = "the device is warming up"  # the reason of every node until then
_FIRST_S = 0.25  # how long a first answer is waited for


class _NotWanted(BaseException):
    """Nobody waits for what is being built. It is no Exception, so that nothing takes it for a failure."""


class Warming(OnTheHost):
    """The delegation of a model while another one is built, which takes over between two invokes.

    made: makes a delegation that is not prepared yet. progress: the user's listener, called in the thread.
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
        """See ``Preliminary.successor``. Raises what building has raised: DelegateError if ``strict``."""
        self._runs = runs
        if runs:
            self._answered.set()
        if self._error is not None:
            raise self._error
        if self._built is None and self._process != os.getpid():
            self._start()  # the thread stayed behind in the process that was forked
        if self._built is not None and self._built.warm_up is not None:
            self._built.warm_up = replace(self._built.warm_up, cpu_invokes=runs)
        return self._built

    def noted(self, step: BuildStep) -> None:
        """Note a step, in the thread."""
        self._step = step
        if self._progress is not None:
            self._progress(step)

    def ended(self, built: CLDelegation, error: Exception | None) -> None:
        """Note the end, in the thread."""
        built.warm_up = replace(self._warm_up(), ready=True)
        self._error = error
        self._built = None if error else built

    def _warm_up(self) -> WarmUp:
        return WarmUp(self._step.done, self._step.total, self._runs, time.perf_counter() - self._start_s)

    def report(self) -> DelegationReport:
        """Return how far it is: the CPU runs every node."""
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
    """Prepare a delegation, as long as somebody waits for it."""

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
    except Exception as raised:  # for whoever invokes next
        error = raised
    if (warming := waiting()) is not None:
        warming.ended(delegation, error)
