"""Lanes that threads share: an interrupt (Ctrl-C, or one that a thread raises in another) loses none.

CPython looks for signals where functions begin, behind calls and where loops turn, never within a call of C's. So a
lane goes from the pool to a thread in one such call, and back in another: it is always in one of two collections.
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
_PATIENCE_S = 0.05  # until a thread looks again: an interrupt may lose the word that a lane is free


class Pool:
    """Lanes, of which each is used by one thread at a time; the one used last comes first. spare: makes another one."""

    def __init__(self, lanes: Iterable[Lane], spare: Callable[[], Lane]) -> None:
        self._free, self._spare = deque(lanes), spare
        self._count = len(self._free)
        self._word: SimpleQueue[None] = SimpleQueue()  # to threads that wait: try again

    def run(self, function: Callable[[Lane], _Result]) -> _Result:
        """Call a function with a lane, once one is free; return its result.

        A signal handler that has interrupted such a call, which cannot go on meanwhile, gets a lane made for it.
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
            self._free.extendleft(held)  # first: before this call, and within it, no interrupt is heard
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

    The frames tell it: what a method notes down itself may be wrong after an interrupt.
    """
    frame: FrameType | None = sys._getframe(1).f_back
    while frame is not None:
        if frame.f_code in methods and frame.f_locals.get("self") is owner:
            return True
        frame = frame.f_back
    return False
