"""Ctrl-C wherever Python handles signals (function entries, returns of calls, loop turns), and a limit for waits."""

import dis
import gc
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Literal

_HEARS = ("CALL", "JUMP_BACKWARD")  # how the names of instructions begin behind which signals are looked for


def interrupted(
    function: Callable[[], object], number: int, held: list[BaseException] | None = None
) -> Literal["raised", "ignored", "returned"]:
    """Call a function and raise KeyboardInterrupt at the numbered place; return what came of it.

    held: gets what was raised, whose traceback keeps frames alive, as that of the last error does in an interactive
    Python. ignored: Python ignores what is raised where something is released. returned: the function does not come
    so far. A return of a Python function to the one that called it is no place: CPython looks for signals when it
    begins.
    """
    tracer, ignored = _Tracer(number), list[object]()
    before, hook = sys.gettrace(), sys.unraisablehook
    sys.unraisablehook = ignored.append
    gc.disable()  # which would come at any of these places, and ignore what is raised
    sys.settrace(tracer.called)
    try:
        function()
    except KeyboardInterrupt as error:
        if held is not None:
            held.append(error)
        return "raised"
    finally:
        sys.settrace(before)
        gc.enable()
        sys.unraisablehook = hook
    assert tracer.left >= 0 or ignored, "something has caught KeyboardInterrupt"
    return "ignored" if ignored else "returned"


def places(function: Callable[[], object]) -> int:
    """Call a function; return how many such places it reaches."""
    tracer, before = _Tracer(sys.maxsize), sys.gettrace()
    sys.settrace(tracer.called)
    try:
        function()
    finally:
        sys.settrace(before)
    return sys.maxsize - tracer.left


@contextmanager
def no_hang(seconds: int) -> Iterator[None]:
    """Raise TimeoutError in the main thread if the block takes longer, even if it waits for a lock."""

    def expired(number: int, frame: object) -> None:
        raise TimeoutError("locked out")

    before = signal.signal(signal.SIGALRM, expired)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class _Tracer:
    """left: how many places are still to come before the one that is wanted."""

    def __init__(self, number: int) -> None:
        self.left = number
        self._last: dict[FrameType, str] = {}  # the instruction that a function is at, if it can be heard behind it

    def called(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        """A function begins."""
        frame.f_trace_opcodes = True
        if frame.f_back is not None:
            self._last.pop(frame.f_back, None)
        self._place()
        return self._at

    def _at(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        if event == "opcode":
            if self._last.pop(frame, "").startswith(_HEARS):
                self._place()
            self._last[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
        elif event == "return":
            self._last.pop(frame, None)
        return self._at

    def _place(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
