"""Lanes that threads share. An interrupt (Ctrl-C, or one that another thread raises) loses none.

CPython checks for signals at function starts, after calls and where loops jump back, never inside a C call. So a single
C call moves a lane from the pool to a thread, and another moves it back: it is always in one of the two collections.
"""

import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from queue import Empty, SimpleQueue
from types import CodeType, FrameType
from typing import TypeVar

from litecl.lane import Lane

_Result = TypeVar("_Result")
_PATIENCE_S = 0.05  # between polls for a free lane: an interrupt may lose the wake-up


class Pool:
    """Lanes, each used by one thread at a time; the most recently used is next. spare: creates another one."""

    def __init__(self, lanes: Iterable[Lane], spare: Callable[[], Lane]) -> None:
        self._free, self._spare = deque(lanes), spare
        self._count = len(self._free)
        self._word: SimpleQueue[None] = SimpleQueue()  # wakes up a waiting thread

    def run(self, function: Callable[[Lane], _Result]) -> _Result:
        """Call a function with a lane, once one is free; return its result.

        A signal handler that interrupted such a call gets a new lane: the interrupted one can't become free.
        """
        held: list[Lane] = []
        try:
            while not held:
                with suppress(IndexError):
                    held.extend(map(deque.popleft, (self._free,)))
                    break
                if is_within(self, (Pool.run.__code__,)):
                    return self._on_spare(function)
                with suppress(Empty):
                    self._word.get(timeout=_PATIENCE_S)
            return function(held[0])
        finally:
            self._free.extendleft(held)  # first: no interrupt can come before or inside this call
            if self._word.qsize() < self._count:
                self._word.put(None)

    def _on_spare(self, function: Callable[[Lane], _Result]) -> _Result:
        lane = self._spare()
        try:
            return function(lane)
        finally:
            lane.interpreter.close()


def is_within(owner: object, methods: Collection[CodeType]) -> bool:
    """Return whether this thread is in one of an object's methods further out than the caller's own frame.

    Walks the frames: a flag that the methods set could be wrong after an interrupt.
    """
    frame: FrameType | None = sys._getframe(1).f_back
    while frame is not None:
        if frame.f_code in methods and frame.f_locals.get("self") is owner:
            return True
        frame = frame.f_back
    return False
