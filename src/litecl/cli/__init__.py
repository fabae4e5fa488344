"""The ``litecl`` command: arguments, subcommands and output. Measures nothing itself."""

import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

__all__ = ["main", "process"]
_INTERRUPTED = 130  # the shell convention: 128 + SIGINT
_AGAIN_S = 0.02
_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class _Ended(BaseException):
    """Raised by a signal that ends the process, its argument."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command as ``parser.main`` does; return 130 if Ctrl-C interrupts it, as early as while it is imported."""
    try:
        from litecl.cli import parser

        return parser.main(arguments)
    except KeyboardInterrupt:
        return _INTERRUPTED


def process() -> int:
    """Run the command as this process. Signals end it as usual, after its temporary files and compilers are gone; the
    second one at once.
    """
    _handle(signal.SIG_DFL, _end)  # nohup ignores SIGHUP
    sys.unraisablehook = _send_again
    try:
        code = main()
        _handle(_end, signal.SIG_DFL)  # nothing would catch the error while Python ends
    except _Ended as ended:
        signal.raise_signal(*ended.args)
        raise
    if code == _INTERRUPTED:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return code


def _handle(before: Any, handler: Any) -> None:
    """Replace the handler of ending signals where it is the one before."""
    for number in _ENDING:
        if signal.getsignal(number) is before:
            signal.signal(number, handler)


def _end(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)
    raise _Ended(number)


def _send_again(lost: "sys.UnraisableHookArgs") -> None:
    """Send a signal again whose error Python has dropped, as in ``__del__`` and in callbacks of weak references, which
    imports have. Other errors are told as usual.
    """
    if isinstance(lost.exc_value, _Ended):
        (number,) = lost.exc_value.args
        signal.signal(number, _end)
    elif isinstance(lost.exc_value, KeyboardInterrupt):
        number = signal.SIGINT
    else:
        sys.__unraisablehook__(lost)
        return
    from threading import Timer, main_thread

    to_main = getattr(signal, "pthread_kill", lambda thread, number: signal.raise_signal(number))  # Windows has none
    again = Timer(_AGAIN_S, to_main, (main_thread().ident, number))  # here, its error would be dropped too
    again.daemon = True
    again.start()
