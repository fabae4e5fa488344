"""Making kernel objects, of which nothing stays behind."""

import linecache
from typing import Any

import pyopencl as cl

_GENERATED = "<generated: 'pyopencl"


def kernel_object(program: Any, entry: str) -> Any:
    """Return a new kernel of a program. Raises what pyopencl raises.

    For every one of them pyopencl generates a function, whose source Python's ``linecache`` would keep for ever, under
    a name that pyopencl counts up to: a process that makes many models would grow, and take ever longer for each.
    """
    kernel = cl.Kernel(program, entry)
    for name in [*linecache.cache]:
        if name.startswith(_GENERATED):
            linecache.cache.pop(name, None)
    return kernel
