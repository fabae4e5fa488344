"""Creates kernel objects without leaking memory."""

import linecache
from typing import Any

import pyopencl as cl

_GENERATED = "<generated: 'pyopencl"


def kernel_object(program: Any, entry: str) -> Any:
    """Return a new kernel of a program. Raises what pyopencl raises.

    For each kernel, pyopencl generates a function and leaves its source in Python's ``linecache``, under the first
    unused number. Unless these entries are removed, every new kernel takes more memory and time.
    """
    kernel = cl.Kernel(program, entry)
    for name in [*linecache.cache]:
        if name.startswith(_GENERATED):
            linecache.cache.pop(name, None)
    return kernel
