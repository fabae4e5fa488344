"""A region's function as Python calls it: a builtin function of kernels_cl/python.c or, where Python has no such C
interface, a function of ctypes, which takes some 70 ns longer.
"""

import ctypes
import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from litecl.delegate.backend.protocols import AtOnce
from litecl.delegate.plan.region_tables import NativeCall
from litecl.interpreter.graph import Array

_NO_ARGUMENTS = 4  # METH_NOARGS
_Object, _Address, _Name = ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p


class _Definition(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (("name", _Name), ("function", _Address), ("flags", ctypes.c_int), ("doc", _Name))


def method(library: ctypes.CDLL, call: Array, held: object, *, locked: bool) -> AtOnce:
    """Return a function that runs a region of a library, with the GIL held (``locked``) or released.

    call: the argument (``NativeCall``). held: what has its memory; a builtin function keeps it alive, as its module.
    """
    if sys.implementation.name != "cpython":
        kind = ctypes.PYFUNCTYPE(None) if locked else ctypes.CFUNCTYPE(None)
        return partial(kind(int(call[NativeCall.REGION])), ctypes.c_void_p.from_param(call.ctypes.data))
    new_capsule, new_function, used = _interface()
    (_Address * len(used)).in_dll(library, "python")[:] = used
    definition = _definition(address(library, "run_locked" if locked else "run_freely"))
    function: AtOnce = new_function(ctypes.addressof(definition), new_capsule(call.ctypes.data, None, None), held)
    return function


def address(library: ctypes.CDLL, function: str) -> int:
    """Return the address of a library's function."""
    found = ctypes.cast(library[function], _Address).value
    assert found is not None
    return found


@cache
def _definition(function: int) -> _Definition:
    """Return the definition of a function at an address. It outlives what is made of it, as a loaded library does."""
    return _Definition(b"run_region", function, _NO_ARGUMENTS, None)


@cache
def _interface() -> tuple[Callable[..., Any], Callable[..., Any], list[Any]]:
    """Return PyCapsule_New, PyCFunction_NewEx, and what python.c uses."""
    new_capsule = ctypes.PYFUNCTYPE(_Object, _Address, _Name, _Address)(("PyCapsule_New", ctypes.pythonapi))
    new_function = ctypes.PYFUNCTYPE(_Object, _Address, _Object, _Object)(("PyCFunction_NewEx", ctypes.pythonapi))
    names = "PyCapsule_GetPointer", "PyEval_SaveThread", "PyEval_RestoreThread", "Py_NewRef"
    return new_capsule, new_function, [*(ctypes.cast(ctypes.pythonapi[n], _Address).value for n in names), id(None)]
