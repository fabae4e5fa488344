"""Finds out whether a GPU computes in halves as tiles of products need it: by sums of products of known result."""

import warnings
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl

from litecl.delegate.backend.sources import render, source_of
from litecl.interpreter.graph import Array

_STEPS, _SUMS = 8, 64
_MOST = 15  # of operands in their units: sums of eight products have at most 11 bits
_UNIT = 2.0**-3


class Found(NamedTuple):
    """fault: in what a device errs; "" where all is right. flushes: whether it makes subnormals 0."""

    fault: str
    flushes: bool = False


def probe(device: Any, macros: dict[str, str | int | float] | None = None) -> Found:
    """Return what a pyopencl device does. macros: those of half_unit.h. Raises cl.Error where it cannot build it, or
    run it.
    """
    rng = np.random.default_rng(12)
    left, right = ((rng.integers(-_MOST, _MOST + 1, (_SUMS, _STEPS, 4)) * _UNIT).astype(np.float32) for _ in range(2))
    beyond, to_nearest, small = slice(0, 4), slice(4, 8), slice(8, 12)
    left[beyond, 3], right[beyond, 3] = 60000, [8, -8, 8, -8]  # which later products do not bring back
    left[to_nearest], right[to_nearest] = 0, 1
    left[to_nearest, 0], left[to_nearest, 1] = 2048, [1, 3, -1, 2]  # of 2049 and 2051 the even neighbour
    left[to_nearest, 2] = [1 + 2**-12, 0, 0, 0]  # an operand that is rounded too
    left[small], right[small] = 2.0**-11, [1, 2, 3, 4]
    right[small] *= np.float32(2.0**-12)
    got, infinite = _sums(device, left, right, macros or {})
    flushes = not got[small].any()
    expected, wrong = _expected(left, right), int(np.count_nonzero(infinite != (np.arange(_SUMS) < beyond.stop)))
    expected[small] *= not flushes
    wrong += int(np.count_nonzero(got[beyond.stop :] != expected[beyond.stop :]))
    return Found(f"{wrong} of {got.size} sums in halves are wrong" if wrong else "", flushes)


def _expected(left: Array, right: Array) -> Array:
    """Return the sums, rounded to the nearest half after every product."""
    with np.errstate(over="ignore", invalid="ignore"):
        x, w = (operand.astype(np.float16).astype(np.float64) for operand in (left, right))
        sums = np.zeros((_SUMS, 4), np.float16)
        for step in range(_STEPS):
            sums = (x[:, step] * w[:, step] + sums).astype(np.float16)
    return sums.astype(np.float32)


def _sums(device: Any, left: Array, right: Array, more: dict[str, str | int | float]) -> tuple[Array, Array]:
    """Return the sums as a device computes them, and which it takes for infinite. Raises cl.Error."""
    context = cl.Context([device])  # its own: one in which a kernel has failed may be lost
    macros = {"VW": 4, "LITECL_GPU": 1, "STEPS": _STEPS, **more}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cl.CompilerWarning)
        program = cl.Program(context, source_of("half_unit.cl")).build([*render(macros)], cache_dir=False)
    sums, infinite = np.empty((_SUMS, 4), np.float32), np.empty(_SUMS, np.int32)
    read = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffers = [cl.Buffer(context, read, hostbuf=array) for array in (left, right, sums, infinite)]
    kernel = cl.Kernel(program, "half_unit")
    kernel.set_args(*buffers)
    queue = cl.CommandQueue(context, device)
    cl.enqueue_nd_range_kernel(queue, kernel, (_SUMS,), None)
    cl.enqueue_copy(queue, sums, buffers[2], is_blocking=True)
    cl.enqueue_copy(queue, infinite, buffers[3], is_blocking=True)
    return sums, infinite != 0
