"""A thread with a large stack for a runtime, which compiles, and may run kernels, in the calling thread.

PoCL needs 256 KiB. A thread may have less (``threading.stack_size``, servers that make threads by themselves): such a
thread waits while another one, made for the call, does what it asks for.
"""

import ctypes
import functools
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import ParamSpec, TypeVar

from litecl.interpreter.errors import DelegateError

_LEAST_BYTES = 512 << 10  # what a runtime takes, and what the calls before it do
_AMPLE_BYTES = 8 << 20  # as threads have unless somebody says otherwise
_starting = threading.Lock()  # the size of the next thread's stack is one for the process
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class _Stack(threading.local):
    """The known facts of the calling thread's stack: none at first."""

    ample: bool = False


stack = _Stack()
"""``stack.ample`` tells, in as little time as can be, that ``ample`` need not be asked."""


def ample() -> bool:
    """Return whether the calling thread's stack is large enough; so it is where the system cannot be asked."""
    size = _size_bytes() if sys.platform == "linux" else None
    stack.ample = size is None or size >= _LEAST_BYTES
    return stack.ample


def on_ample_stack(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Return a function that does the same, on a stack that is large enough. It must be called before a lock is taken
    that it takes as well: another thread may run it. Raises DelegateError where no thread can be started.
    """

    @functools.wraps(function)
    def called(*arguments: _Arguments.args, **keywords: _Arguments.kwargs) -> _Result:
        if stack.ample or ample():
            return function(*arguments, **keywords)
        return elsewhere(function, *arguments, **keywords)

    return called


def elsewhere(
    function: Callable[_Arguments, _Result], *arguments: _Arguments.args, **keywords: _Arguments.kwargs
) -> _Result:
    """Call a function in a thread with an ample stack, in the same context; return or raise what it does."""
    results, errors, context = list[_Result](), list[BaseException](), copy_context()

    def run() -> None:
        try:
            results.append(context.run(function, *arguments, **keywords))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="litecl-stack")
    with _starting:
        before = threading.stack_size(_AMPLE_BYTES)
        try:
            thread.start()
        except RuntimeError as error:
            raise DelegateError(f"a thread with a stack of {_AMPLE_BYTES} bytes cannot be started: {error}") from error
        finally:
            threading.stack_size(before)
    try:
        thread.join()
    except BaseException:  # Ctrl-C: nothing may go on that uses what the caller is about to use again
        thread.join()
        raise
    if errors:
        raise errors[0]
    return results[0]


def _size_bytes() -> int | None:
    """Return the size of the calling thread's stack; None if that cannot be found out."""
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        own = library.pthread_self
        own.restype = ctypes.c_void_p
        attributes, address, size = (ctypes.c_uint64 * 32)(), ctypes.c_void_p(), ctypes.c_size_t()
        if not library.pthread_getattr_np(ctypes.c_void_p(own()), attributes):
            library.pthread_attr_getstack(attributes, ctypes.byref(address), ctypes.byref(size))
            library.pthread_attr_destroy(attributes)
            return size.value
    return None
