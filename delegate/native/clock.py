"""The processor's cycle counter, with which a region's function times its own steps."""

import ctypes
import time
from functools import cache

_APART_S = 0.03  # between two readings, so that an error of a microsecond is less than one part in ten thousand
_READINGS = 7


@cache
def cycle_s(library: ctypes.CDLL) -> float:
    """Return the duration of a counter cycle in seconds. library: the crew's (kernels_cl/crew.c)."""
    library.read_clock.restype = ctypes.c_longlong
    before_s, before = _read(library)
    time.sleep(_APART_S)
    after_s, after = _read(library)
    return (after_s - before_s) / (after - before)


def _read(library: ctypes.CDLL) -> tuple[float, int]:
    """Return a host time and the counter at that time, from the fastest of several readings."""
    best = (float("inf"), 0.0, 0)
    for _ in range(_READINGS):
        start_s = time.perf_counter()
        value = library.read_clock()
        end_s = time.perf_counter()
        best = min(best, (end_s - start_s, (start_s + end_s) / 2, value))
    return best[1:]
