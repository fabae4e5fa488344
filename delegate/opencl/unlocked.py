"""OpenCL functions called without the GIL, so that other threads run meanwhile; pyopencl holds it for these."""

import ctypes
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyopencl as cl


def native(library: type[ctypes.CDLL], name: str) -> Any:
    """Return a function of the OpenCL library that pyopencl is linked to; None if it can't be looked up."""
    try:
        function = library(cl._cl.__file__)[name]
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_int32
    return function


def _that_returns_a_pointer(name: str) -> Any:
    function = native(ctypes.CDLL, name)
    if function is not None:
        function.restype = ctypes.c_void_p
    return function


_PROGRAM = cl.Program
_link, _program_info = _that_returns_a_pointer("clLinkProgram"), native(ctypes.CDLL, "clGetProgramInfo")


def linked(context: Any, objects: Sequence[Any], device: Any) -> Any:
    """Link compiled files into a program. Raises cl.Error with the log."""
    if _link is not None:
        programs = (ctypes.c_void_p * len(objects))(*(program.int_ptr for program in objects))
        devices, status = (ctypes.c_void_p * 1)(device.int_ptr), ctypes.c_int32()
        inputs = ctypes.c_uint(len(objects)), programs, None, None, ctypes.byref(status)
        handle = _link(ctypes.c_void_p(context.int_ptr), ctypes.c_uint(1), devices, b"", *inputs)
        if handle and not status.value:
            return _PROGRAM.from_int_ptr(handle, retain=False)
    return cl.link_program(context, list(objects), devices=[device])


def binary_of(program: Any) -> bytes:
    """Return the binary of a program for one device; empty if the driver has none. PoCL compiles all kernels first."""
    with suppress(cl.Error):
        if _program_info is not None:
            size, kind = ctypes.c_size_t(), ctypes.c_uint(cl.program_info.BINARY_SIZES)
            handle, room = ctypes.c_void_p(program.int_ptr), ctypes.c_size_t(ctypes.sizeof(size))
            _program_info(handle, kind, room, ctypes.byref(size), None)
        return bytes(program.get_info(cl.program_info.BINARIES)[0])
    return b""
