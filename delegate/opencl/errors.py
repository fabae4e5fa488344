"""OpenCL's errors as ours."""

import sqlite3
from typing import Any

import pyopencl as cl

from litecl.interpreter.errors import DelegateError, OutOfDeviceMemory

_OUT_OF_MEMORY = {
    cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE,
    cl.status_code.OUT_OF_RESOURCES,
    cl.status_code.OUT_OF_HOST_MEMORY,
    cl.status_code.INVALID_BUFFER_SIZE,
}


def typed(error: BaseException, doing: str, kind: type[DelegateError] = DelegateError) -> DelegateError:
    """Return an error of ours that says what was being done: OutOfDeviceMemory, or else of the given kind."""
    no_memory = isinstance(error, cl.MemoryError | MemoryError) or getattr(error, "code", None) in _OUT_OF_MEMORY
    what = "not enough memory on the host" if isinstance(error, MemoryError) else error
    return (OutOfDeviceMemory if no_memory else kind)(f"{doing}: {what}")


class typed_errors:  # noqa: N801  it is used as a function is
    """Turns OpenCL's errors, and a lack of memory, into ours, saying what was being done.

    A class, which costs a run less than a generator.
    """

    def __init__(self, doing: str) -> None:
        self._doing = doing

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, cl.Error | MemoryError | OSError | sqlite3.Error):  # the last two: pyopencl's own files
            raise typed(error, self._doing) from error
