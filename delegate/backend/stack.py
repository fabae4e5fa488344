"""Calls functions on a stack large enough for a runtime, which compiles, and may run kernels, in the calling thread.

PoCL needs 256 KiB. A thread may have less (``threading.stack_size``, servers that create their own threads): it then
waits while another thread, started for the call, makes it.
"""

import ctypes
import functools
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import ParamSpec, TypeVar

from litecl.delegate.backend import fork
from litecl.interpreter.errors import DelegateError

_LEAST_BYTES = 512 << 10  # for a runtime and its callers
_AMPLE_BYTES = 8 << 20  # the usual default
_starting = fork.Section(needs_runtime=False)  # threading.stack_size applies to the whole process
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class _Stack(threading.local):
    """Facts about the calling thread's stack, unknown at first."""

    ample: bool = False


stack = _Stack()
"""``stack.ample`` is the fast check: if True, skip calling ``ample``."""


def ample() -> bool:
    """Return whether the calling thread's stack is large enough; True if its size is unknown."""
    size = _size_bytes() if sys.platform == "linux" else None
    stack.ample = size is None or size >= _LEAST_BYTES
    return stack.ample


def on_ample_stack(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Decorate a function to run on a large enough stack, perhaps in another thread: the caller must hold no lock that
    it takes. Raises DelegateError if no thread can be started.
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
    """Call a function in a new thread with an ample stack, in the same context; return or raise what it does."""
    results, errors, context = list[_Result](), list[BaseException](), copy_context()

    def run() -> None:
        try:
            results.append(context.run(function, *arguments, **keywords))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="litecl-stack")
    with _starting.lock:
        before = threading.stack_size(_AMPLE_BYTES)
        try:
            thread.start()
        except RuntimeError as error:
            raise DelegateError(f"a thread with a stack of {_AMPLE_BYTES} bytes cannot be started: {error}") from error
        finally:
            threading.stack_size(before)
    try:
        thread.join()
    except BaseException:  # Ctrl-C: the caller is about to reuse what the thread still uses
        thread.join()
        raise
    if errors:
        raise errors[0]
    return results[0]


def _size_bytes() -> int | None:
    """Return the size of the calling thread's stack; None if unknown."""
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
