"""Progress messages while programs are compiled: to a user's callback, and to the logger ``litecl``."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

_LOG = logging.getLogger("litecl")


@dataclass(frozen=True)
class BuildStep:
    """One step of compiling: ``what`` is about to be compiled, the ``done``-th of ``total`` files of a region, from 0.

    The last step of a region has ``done == total``. What is loaded from the cache is not a step.
    """

    what: str
    done: int
    total: int


Progress = Callable[[BuildStep], None]
_LISTENER: ContextVar[Progress | None] = ContextVar("progress", default=None)


@contextmanager
def told_to(listener: Progress | None) -> Iterator[None]:
    """Tell a listener what this thread compiles within the context."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def tell(what: str, done: int, total: int) -> None:
    """Tell the listener of this thread, if there is one."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(BuildStep(what, done, total))


@contextmanager
def logged(doing: str) -> Iterator[None]:
    """Log what was done and how long it took, once it is done."""
    start_s = time.perf_counter()
    yield
    _LOG.info("%s took %.2f s", doing, time.perf_counter() - start_s)
