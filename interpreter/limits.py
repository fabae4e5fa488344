"""How large a tensor may be, so that a small file cannot ask for all memory of a machine.

Systems promise more memory than they have and end a process that uses it, so that numpy's MemoryError comes only for
sizes far beyond. Sizes are checked where shapes become known: at preparation, or before the operator runs.
"""

import math
import os

from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import TensorSpec


def _memory_bytes() -> int:
    """The machine's physical memory; all that can be counted where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 1 << 62


MOST_BYTES = _memory_bytes() // 2
"""The most that one tensor may take: half of the machine, for whoever reads a tensor gets a copy."""


def check(spec: TensorSpec) -> None:
    """Raises ModelError for a tensor of known shape that takes more than ``MOST_BYTES``."""
    if spec.shape is None:
        return
    size_bytes = math.prod(spec.shape) * spec.dtype.itemsize
    if size_bytes > MOST_BYTES:
        raise ModelError(
            f"tensor {spec.name!r} of shape {list(spec.shape)} takes {size_bytes} bytes, expected at most {MOST_BYTES} "
            "(half of this machine's memory)"
        )
