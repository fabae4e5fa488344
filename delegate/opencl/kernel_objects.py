"""Making kernel objects, by names that programs may have made unique, and of which nothing stays behind."""

import linecache
from typing import Any

import pyopencl as cl

OWN = "__"
"""Comes between a kernel's name and what makes it unique."""

_GENERATED = "<generated: 'pyopencl"


def kernel_object(program: Any, entry: str) -> Any:
    """Return a new kernel of a program. Raises what pyopencl raises.

    For every one of them pyopencl generates a function, whose source Python's ``linecache`` would keep for ever, under
    a name that pyopencl counts up to: a process that makes many models would grow, and take ever longer for each.
    """
    names = program.get_info(cl.program_info.KERNEL_NAMES).split(";")
    kernel = cl.Kernel(program, next((name for name in names if name.startswith(entry + OWN)), entry))
    for name in [*linecache.cache]:
        if name.startswith(_GENERATED):
            linecache.cache.pop(name, None)
    return kernel
