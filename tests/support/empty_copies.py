"""OpenCL before 2.1 refuses copies of no bytes, which PoCL 3.0 takes: here they are refused too."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np


def refuse() -> None:
    """Make every copy of no bytes fail, for the rest of this process."""
    if find_spec("pyopencl") is None:
        return
    from pyopencl import _cl

    for name in ("_enqueue_write_buffer", "_enqueue_read_buffer", "_enqueue_copy_buffer"):
        setattr(_cl, name, _checked(getattr(_cl, name)))


def _checked(enqueue: Callable[..., Any]) -> Callable[..., Any]:
    def checked(queue: Any, first: Any, second: Any, *rest: Any, **named: Any) -> Any:
        size_bytes = second.size if hasattr(second, "int_ptr") else np.asarray(second).nbytes
        if size_bytes == 0:
            from pyopencl import LogicError

            raise LogicError("a copy of no bytes")
        return enqueue(queue, first, second, *rest, **named)

    return checked
