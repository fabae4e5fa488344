"""Progress of preparing a model: to a user's callback, to the logger ``litecl`` with warnings, and by phases' times."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.visible import visible


def _written_out(record: logging.LogRecord) -> bool:
    """Write out what would control the terminal, or begin another line: names in a message come from models."""
    record.msg, record.args = visible(record.getMessage()), ()
    return True


_LOG = logging.getLogger("litecl")
_LOG.addFilter(_written_out)
_LONG_S = 2.0
_said: set[str] = set()


@dataclass(frozen=True)
class BuildStep:
    """One step of compiling: ``what`` is about to be compiled, the ``done``-th of ``total`` files of a region, from 0.

    The last step of a region has ``done == total``. Programs from the cache are not steps.
    """

    what: str
    done: int
    total: int


Progress = Callable[[BuildStep], None]
Progressed = Callable[[int, int], None]
PHASES = ("open", "partition", "plan", "load", "compile", "upload")
"""Phases of preparing a model: opening the device, choosing nodes, planning regions, loading programs from the cache,
compiling others, and the rest of binding a region: memory, constants, kernels with their arguments."""
USUAL_PATIENCE_S = 600.0
_LISTENER: ContextVar[Progress | None] = ContextVar("progress", default=None)


@contextmanager
def told_to(listener: Progress | None) -> Iterator[None]:
    """Tell a listener what this thread compiles within the context."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


class Patience:
    """The patience with compilers while a model is prepared. seconds: for one file; None is without end.

    lost: the error of a compiler that has taken longer: the other regions of the model do not wait again.
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self.lost: DelegateError | None = None


_PATIENCE: ContextVar[Patience | None] = ContextVar("patience", default=None)


@contextmanager
def waiting(seconds: float | None) -> Iterator[None]:
    """Limit how long this thread waits for a compiler within the context; None sets no limit."""
    token = _PATIENCE.set(Patience(seconds))
    try:
        yield
    finally:
        _PATIENCE.reset(token)


def patience() -> Patience:
    """Return the patience of this thread, the usual one outside of ``waiting``."""
    return _PATIENCE.get() or Patience(USUAL_PATIENCE_S)


def tell(what: str, done: int, total: int) -> None:
    """Tell the listener of this thread, if there is one."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(BuildStep(what, done, total))


class _Watch:
    """Seconds by phase; those within another one count for the inner one only."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._open: list[str] = []
        self._since_s = 0.0

    def turn(self, name: str | None) -> None:
        """Charge the phase that goes on with the time since the last turn; begin another, or end it (None)."""
        now_s = time.perf_counter()
        if self._open:
            going_on = self._open[-1]
            self.seconds[going_on] = self.seconds.get(going_on, 0.0) + now_s - self._since_s
        self._since_s = now_s
        if name is None:
            self._open.pop()
        else:
            self._open.append(name)


_WATCH: ContextVar[_Watch | None] = ContextVar("watch", default=None)


@contextmanager
def timed() -> Iterator[dict[str, float]]:
    """Collect the seconds of every phase (``PHASES``) of this thread meanwhile."""
    watch = _Watch()
    token = _WATCH.set(watch)
    try:
        yield watch.seconds
    finally:
        _WATCH.reset(token)


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Count what happens meanwhile as a phase, where times are collected."""
    watch = _WATCH.get()
    if watch is None:
        yield
        return
    watch.turn(name)
    try:
        yield
    finally:
        watch.turn(None)


def slow(doing: str) -> Progressed:
    """Return a function that is told how much of something is done, and logs that once, if it takes long."""
    start_s, said = time.perf_counter(), False

    def progressed(done: int, total: int) -> None:
        nonlocal said
        if not said and done < total and time.perf_counter() - start_s > _LONG_S:
            said = True
            _LOG.info("%s: %d of %d files are compiled and stay cached", doing, done, total)

    return progressed


def warn(message: str) -> None:
    """Log a warning once per process, however many models and regions it concerns."""
    if message not in _said:
        _said.add(message)
        _LOG.warning("%s", message)


@contextmanager
def logged(doing: str) -> Iterator[None]:
    """Log what was done and how long it took, once it is done."""
    start_s = time.perf_counter()
    yield
    _LOG.info("%s took %.2f s", doing, time.perf_counter() - start_s)
