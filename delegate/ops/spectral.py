"""RFFT2D, REAL, IMAG and COMPLEX_ABS."""

from math import prod

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Const, Scratch, Step, Target
from litecl.delegate.kit.claims import FLOAT, constant, integers, takes, typed
from litecl.delegate.kit.schedule import Chunks, chunks
from litecl.interpreter.op import Op
from litecl.interpreter.ops.spectral import COMPLEX_ABS, IMAG, REAL, RFFT2D
from litecl.interpreter.schema import TensorType

_KERNEL = "spectral"
_BUTTERFLY = 10  # operations
_ZERO = 1e-12  # less than any nonzero sine of a table that fits in memory


def _turns(length: int) -> Const:
    """Return e^(-2 pi i k / length) of half a turn as pairs of floats, zeros where it crosses an axis."""
    angles = -2 * np.pi * np.arange(length // 2 + 1) / length
    parts = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return Const(np.where(np.abs(parts) < _ZERO, 0, parts).astype(np.float32))


def _share(count: int, points: int, target: Target) -> tuple[Chunks, Scratch]:
    """Return the launch for ``count`` transforms of a vector of lanes each, and the memory of its work-items."""
    work = _BUTTERFLY * points * points.bit_length() * target.vector_width
    share = chunks(_KERNEL, count, target, work=work)
    return share, Scratch(4 * points * target.vector_width * np.dtype(np.float32).itemsize * share.needed[0])


def _lower(call: Call) -> list[Step]:
    x, (y,), width = call.input(0), call.outputs, call.target.vector_width
    height, length = integers(call.input(1).value)
    images, columns = prod(y.shape[:-2]), y.shape[-1]
    rows = images * height
    share, memory = _share(-(-rows // width), max(1, length // 2), call.target)
    sizes = (np.int32(size) for size in (rows, *x.shape[-2:], height, length))
    steps: list[Step] = [share.launch("rfft_rows", (x, y, _turns(length), memory, *share.args, *sizes), {})]
    if height > 1:
        share, memory = _share(images * -(-columns // width), height, call.target)
        args = (y, _turns(height), memory, *share.args, np.int32(height), np.int32(columns))
        steps.append(share.launch("fft_columns", args, {}))
    return steps


def _part(op: Op, part: str) -> ClOp:
    def lower(call: Call) -> list[Step]:
        x, (y,) = call.input(0), call.outputs
        share = chunks(_KERNEL, x.spec.size, call.target)
        return [share.launch("complex_part", (x, y, *share.args), {"PART": part})]

    return ClOp(
        op,
        claim=takes(TensorType.COMPLEX64),
        lower=lower,
        of_complex=True,
        cpu_only=True,
        float64=lambda options, inputs, outputs: part == "MAGNITUDE",
    )


CL_OPS = (
    ClOp(
        RFFT2D,
        claim=lambda options, inputs, outputs: constant(inputs, fft_length=1) or typed(inputs[:1], FLOAT),
        lower=_lower,
        of_complex=True,
        cpu_only=True,
    ),
    _part(REAL, "REAL_PART"),
    _part(IMAG, "IMAGINARY_PART"),
    _part(COMPLEX_ABS, "MAGNITUDE"),
)
