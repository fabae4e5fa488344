"""Translates OpenCL's errors to litecl's."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import pyopencl as cl

from litecl.delegate.backend.errors import no_host_memory
from litecl.interpreter.errors import DelegateError, OutOfDeviceMemory

# The exceptions of OpenCL calls; the last two come from pyopencl's own Python code.
FAULTS = (cl.Error, MemoryError, OSError, sqlite3.Error)
RUNNING = "running a region"
_OUT_OF_MEMORY = {
    cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE,
    cl.status_code.OUT_OF_RESOURCES,
    cl.status_code.OUT_OF_HOST_MEMORY,
    cl.status_code.INVALID_BUFFER_SIZE,
}


def typed(error: BaseException, doing: str, kind: type[DelegateError] = DelegateError) -> DelegateError:
    """Translate an error: OutOfDeviceMemory, or else an error of the given kind. doing: the context in its message."""
    if isinstance(error, MemoryError):
        return no_host_memory(doing)
    no_memory = isinstance(error, cl.MemoryError) or getattr(error, "code", None) in _OUT_OF_MEMORY
    return (OutOfDeviceMemory if no_memory else kind)(f"{doing}: {error}")


@contextmanager
def typed_errors(doing: str) -> Iterator[None]:
    """Raise OpenCL's errors and MemoryError as litecl's. doing: the context in the message."""
    try:
        yield
    except FAULTS as error:
        raise typed(error, doing) from error
