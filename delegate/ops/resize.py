"""RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR, from tables of the positions that the interpreter computes."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Const, Record, Refusal, Scratch, Step
from litecl.delegate.kit.claims import C_TYPES, FLOAT, QUANTIZED, Specs, bits, moves, typed
from litecl.delegate.kit.schedule import Chunks, aligned, chunks, pixels
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.ops.resize import (
    RESIZE_BILINEAR,
    RESIZE_NEAREST_NEIGHBOR,
    fixed_interpolation,
    interpolation,
    nearest,
)
from litecl.interpreter.schema import TensorType


def _share(kernel: str, call: Call) -> Chunks:
    *_, channels = call.outputs[0].shape
    return pixels(kernel, call.outputs[0].spec.size // channels, channels, call.target, work=channels)


def _sizes(call: Call) -> tuple[np.int32, ...]:
    return tuple(np.int32(size) for size in (*call.input(0).shape[1:], *call.outputs[0].shape[1:3]))


@dataclass(frozen=True)
class Between(Record):
    """The two input positions between which an output position lies."""

    lower: int
    upper: int


def _between(lower: Array, upper: Array) -> tuple[Between, ...]:
    return tuple(map(Between, lower.tolist(), upper.tolist()))


# Types of sums and weights in quantized_resize.cl, by the type of the elements.
_SUMS = {TensorType.INT8: "int", TensorType.INT16: "long"}


_MOST_READ = 2  # columns of the image for each of the output, so that most of them are read
_MOST_BYTES = 8  # of a sum
_MOST_POSITIONS = 1 << 20  # of rows or columns: each has a record, which takes more memory than a few elements


def _lower_integers(call: Call, *, by_lines: bool) -> list[Step]:
    x, (y,), options = call.input(0), call.outputs, call.options
    real = x.spec.type == TensorType.UINT8
    sides = [(interpolation if real else fixed_interpolation)(options, x.shape[axis], y.shape[axis]) for axis in (1, 2)]
    tables: list[Arg] = [_between(lower, upper) for lower, upper, _ in sides]
    tables += [Const(distance.astype(np.float32 if real else np.int32)) for _, _, distance in sides]
    images, height, width, channels = y.shape
    share = _share("quantized_resize", call)
    of_reals: dict[str, str | int] = {"A": "float", "W": "float", "ONE": 1, "FLOATING": 1}
    defines: dict[str, str | int] = of_reals if real else {"A": _SUMS[x.spec.type], "W": "int", "ONE": 1024}
    if x.spec.type == TensorType.INT16:
        defines["WORDS"] = 1
    defines |= {"T": C_TYPES[x.spec.type], **aligned(call.target, channels)}
    args: tuple[Arg, ...] = (x, y, *tables, *share.args, *_sizes(call))
    if by_lines and x.shape[2] <= _MOST_READ * width:
        share = chunks("quantized_resize", images * height, call.target, work=width * channels)
        floats = x.shape[2] * channels + call.target.vector_width
        lines = Scratch(2 * floats * _MOST_BYTES * -(-share.n // share.shares[0]))
        args = (x, y, *tables, lines, *share.args, *_sizes(call), np.int32(floats))
        defines["LINES"] = 1
    return [share.launch("quantized_bilinear", args, defines, 8 * y.spec.size)]


def lower_bilinear(call: Call, *, by_lines: bool) -> list[Step]:
    """Lower RESIZE_BILINEAR. by_lines: whether a work-item of integers keeps the sums of two lines of the image."""
    x, (y,), options = call.input(0), call.outputs, call.options
    if x.spec.type in QUANTIZED:
        return _lower_integers(call, by_lines=by_lines)
    sides = [interpolation(options, x.shape[axis], y.shape[axis]) for axis in (1, 2)]
    tables: list[Arg] = [_between(lower, upper) for lower, upper, _ in sides]
    tables += [Const(distance.astype(np.float32)) for _, _, distance in sides]
    share = _share("resize", call)
    defines: dict[str, str | int] = {"T": "float", "BILINEAR": 1, **aligned(call.target, x.shape[3])}
    return [share.launch("bilinear", (x, y, *tables, *share.args, *_sizes(call)), defines, 8 * y.spec.size)]


def _lower_nearest(call: Call) -> list[Step]:
    x, (y,) = call.input(0), call.outputs
    tables = [Const(nearest(call.options, x.shape[axis], y.shape[axis]).astype(np.int32)) for axis in (1, 2)]
    share = _share("resize", call)
    return [share.launch("nearest", (x, y, *tables, *share.args, *_sizes(call)), {"T": bits(x.spec)})]


def _claim_bilinear(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    if max(outputs[0].static_shape[1:3]) > _MOST_POSITIONS:
        return Refusal(f"more than {_MOST_POSITIONS} rows or columns")
    return typed(inputs[:1], (*FLOAT, *QUANTIZED), quantized=True)


CL_OPS = (
    ClOp(
        RESIZE_BILINEAR,
        claim=_claim_bilinear,
        lower=partial(lower_bilinear, by_lines=True),
    ),
    ClOp(RESIZE_NEAREST_NEIGHBOR, claim=moves, lower=_lower_nearest),
)
