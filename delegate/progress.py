"""The progress of preparing a model: a user's callback, the logger ``litecl`` with warnings, and times by phase."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.visible import visible

if TYPE_CHECKING:
    from logging import Logger, LogRecord

_LONG_S = 2.0
_said: set[str] = set()


@dataclass(frozen=True)
class BuildStep:
    """One step of compiling: ``what`` comes next, after ``done`` of the ``total`` files of a region.

    The last step of a region has ``done == total``. Programs from the cache are not steps.
    """

    what: str
    done: int
    total: int


Progress = Callable[[BuildStep], None]
Progressed = Callable[[int, int], None]
PHASES = ("open", "partition", "plan", "load", "compile", "upload")
"""Phases of preparing a model: opening the device, choosing nodes, planning regions, loading programs from the cache,
compiling the others, and the rest of binding a region: memory, constants, kernels with their arguments."""
USUAL_PATIENCE_S = 600.0
_LISTENER: ContextVar[Progress | None] = ContextVar("progress", default=None)


@contextmanager
def told_to(listener: Progress | None) -> Iterator[None]:
    """Report this thread's compilations to a listener within the context."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


class Patience:
    """The patience with compilers while preparing a model. seconds: for one file; None waits without end.

    lost: the error of a compiler that took longer; the model's other regions then don't wait again.
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
    """Return this thread's patience; outside of ``waiting`` that is ``USUAL_PATIENCE_S``."""
    return _PATIENCE.get() or Patience(USUAL_PATIENCE_S)


def tell(source: str, done: int, total: int) -> None:
    """Report a step to this thread's listener, if any."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(BuildStep(source, done, total))


class _Watch:
    """Seconds by phase; a nested phase's time counts for that phase only."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._open: list[str] = []
        self._since_s = 0.0

    def turn(self, name: str | None) -> None:
        """Charge the current phase with the time since the last turn; enter another phase, or leave this one (None)."""
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
    """Collect this thread's seconds by phase (``PHASES``) within the context."""
    watch = _Watch()
    token = _WATCH.set(watch)
    try:
        yield watch.seconds
    finally:
        _WATCH.reset(token)


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Charge the context's time to a phase, within ``timed``."""
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
    """Return a progress function that logs the state of slow work, once."""
    start_s, logged = time.perf_counter(), False

    def progressed(done: int, total: int) -> None:
        nonlocal logged
        if not logged and done < total and time.perf_counter() - start_s > _LONG_S:
            logged = True
            info("%s: %d of %d files are compiled and stay cached", doing, done, total)

    return progressed


@cache
def logger() -> "Logger":
    """Return the logger ``litecl``, which escapes control characters and line breaks: names come from models."""
    from logging import getLogger

    log = getLogger("litecl")
    log.addFilter(_written_out)
    return log


def _written_out(record: "LogRecord") -> bool:
    record.msg, record.args = visible(record.getMessage()), ()
    return True


def is_followed() -> bool:
    """Return whether messages of level INFO are wanted: nobody can have asked without importing ``logging``."""
    return "logging" in sys.modules and logger().isEnabledFor(sys.modules["logging"].INFO)


def info(message: str, *args: object) -> None:
    """Log a message of level INFO."""
    if is_followed():
        logger().info(message, *args)


def warn(message: str) -> None:
    """Log a warning once per process, however many models and regions it concerns."""
    if message not in _said:
        _said.add(message)
        logger().warning("%s", message)


@contextmanager
def logged(doing: str) -> Iterator[None]:
    """Log how long the context took, unless it raises."""
    start_s = time.perf_counter()
    yield
    info("%s took %.2f s", doing, time.perf_counter() - start_s)
