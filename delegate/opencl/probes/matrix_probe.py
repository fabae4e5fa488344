"""Finds out whether kernels reach a GPU's matrix unit: by a product of known result, of every lane's operands."""

import warnings
from typing import Any

import numpy as np
import pyopencl as cl

from litecl.delegate.backend.sources import render, source_of
from litecl.delegate.gpu.properties import MatrixUnit
from litecl.interpreter.graph import Array

_DEPTH = 16
_MOST = 64  # of operands in their units: sums of 16 products, twice, and what they are added to have at most 24 bits
_UNIT = 2.0**-5


def fault_of(device: Any, unit: MatrixUnit) -> str:
    """Return in what a pyopencl device's unit errs; "" where all is right. Raises cl.Error where it cannot be used."""
    rng = np.random.default_rng(12)
    left, right, before = (
        (rng.integers(-_MOST, _MOST + 1, shape) * scale).astype(np.float32)
        for shape, scale in (
            ((unit.rows, _DEPTH), _UNIT),
            ((unit.columns, _DEPTH), _UNIT),
            ((unit.rows, unit.columns), _UNIT**2),
        )
    )
    got = _product(device, unit, left, right, before)
    expected = before + 2 * (left.astype(np.float64) @ right.astype(np.float64).T)
    wrong = int(np.count_nonzero(got != expected))
    return f"{wrong} of {got.size} sums are wrong" if wrong else ""


def _product(device: Any, unit: MatrixUnit, left: Array, right: Array, before: Array) -> Array:
    """Return before + 2 left right^T as the unit computes it. Raises cl.Error."""
    context = cl.Context([device])  # its own: one in which a kernel has failed may be lost
    macros = {"VW": 4, "LITECL_GPU": 1, **unit.defines}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cl.CompilerWarning)
        program = cl.Program(context, source_of("matrix_unit.cl")).build([*render(macros)], cache_dir=False)
    read = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    operands = [cl.Buffer(context, read, hostbuf=array) for array in (left, right, before)]
    size_bytes = 2 * (unit.rows + unit.columns) * _DEPTH * (1 + unit.emulated)
    kernel = cl.Kernel(program, "matrix_unit")
    kernel.set_args(*operands, cl.LocalMemory(size_bytes))
    queue = cl.CommandQueue(context, device)
    cl.enqueue_nd_range_kernel(queue, kernel, (unit.lanes,), (unit.lanes,))
    got = np.empty_like(before)
    cl.enqueue_copy(queue, got, operands[-1], is_blocking=True)
    return got
