"""OpenCL's errors as ours."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import pyopencl as cl

from litecl.delegate.backend.errors import no_host_memory
from litecl.interpreter.errors import DelegateError, OutOfDeviceMemory

# What OpenCL's calls raise; the last two come from files of pyopencl's own.
FAULTS = (cl.Error, MemoryError, OSError, sqlite3.Error)
RUNNING = "running a region"
_OUT_OF_MEMORY = {
    cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE,
    cl.status_code.OUT_OF_RESOURCES,
    cl.status_code.OUT_OF_HOST_MEMORY,
    cl.status_code.INVALID_BUFFER_SIZE,
}


def typed(error: BaseException, doing: str, kind: type[DelegateError] = DelegateError) -> DelegateError:
    """Return an error of ours that says what was being done: OutOfDeviceMemory, or else of the given kind."""
    if isinstance(error, MemoryError):
        return no_host_memory(doing)
    no_memory = isinstance(error, cl.MemoryError) or getattr(error, "code", None) in _OUT_OF_MEMORY
    return (OutOfDeviceMemory if no_memory else kind)(f"{doing}: {error}")


@contextmanager
def typed_errors(doing: str) -> Iterator[None]:
    """Raise OpenCL's errors, and a lack of memory, as ours, saying what was being done."""
    try:
        yield
    except FAULTS as error:
        raise typed(error, doing) from error
