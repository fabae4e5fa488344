"""Reductions over any axes: one launch for every group of adjacent axes, the innermost first."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Alias, Arg, Call, ClOp, Launch, Operand, Refusal, Scratch, Step, Target
from litecl.delegate.kit.claims import (
    C_TYPES,
    NUMBERS,
    QUANTIZED,
    Specs,
    constant,
    given,
    integers,
    is_quantized,
    of,
    stored,
    typed,
)
from litecl.delegate.kit.schedule import chunks
from litecl.delegate.quantized.integers import alike
from litecl.delegate.target import own
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Shape, TensorSpec
from litecl.interpreter.kit.types import limits
from litecl.interpreter.op import Op
from litecl.interpreter.ops import reduce
from litecl.interpreter.schema import TensorType


@dataclass(frozen=True)
class Stage:
    """A reduction of [outer, length, inner] to [outer, inner]."""

    outer: int
    length: int
    inner: int


@dataclass(frozen=True)
class _Reduction:
    """An operator as reduce.cl knows it. start: zero, one, or the lowest or highest value of the type."""

    function: str
    start: str
    mean: bool = False

    def first(self, type_: TensorType) -> np.generic:
        """Return the initial value of the accumulator."""
        least, largest = limits(stored(type_))
        return of(type_, {"zero": 0, "one": 1, "least": least, "largest": largest}[self.start])


def _stages(shape: Shape, axes: Sequence[int], target: Target) -> list[Stage]:
    """Return the sequence of reductions that together make up the whole."""
    groups = [
        (reduced, math.prod(shape[axis] for axis in run))
        for reduced, run in groupby(range(len(shape)), key=lambda axis: axis in axes)
    ]
    stages = []
    while any(reduced for reduced, _ in groups):
        at = max(i for i, (reduced, _) in enumerate(groups) if reduced)
        outer = math.prod(size for _, size in groups[:at])
        inner = math.prod(size for _, size in groups[at + 1 :])
        stages += _shared_out(Stage(outer, groups[at][1], inner), target)
        del groups[at]
    return stages


def _shared_out(stage: Stage, target: Target) -> list[Stage]:
    """Reduce a long line in two steps if the device divides it: its parts, then their results."""
    parts = own(target, parts_of)(stage, target)
    first = Stage(stage.outer * parts, stage.length // parts, stage.inner)
    return [first, Stage(stage.outer, parts, stage.inner)] if parts > 1 else [stage]


def parts_of(stage: Stage, target: Target) -> int:
    """Return the number of equal parts that each line is divided into: one, as a CPU has few units."""
    return 1


def _accumulator(type_: TensorType, reduction: _Reduction) -> TensorType:
    """Return the type of sums: for the mean of integers, one that does not overflow."""
    return TensorType.INT64 if reduction.mean and type_ == TensorType.INT32 else type_


def _lower(reduction: _Reduction, call: Call) -> list[Step]:
    x, (y,) = call.input(0), call.outputs
    rank = len(x.shape)
    axes = {axis % rank for axis in integers(call.input(1).data)} if rank else set()
    return reduced(x, sorted(axes), y, y.spec.type, reduction, call.target) or [Alias(y, x)]


def reduced(
    x: Operand,
    axes: Sequence[int],
    y: Operand | Scratch,
    type_: TensorType,
    reduction: _Reduction,
    target: Target,
) -> list[Step]:
    """Return the launches that reduce ``x`` to ``y``, whose element type may be wider; none if there are no axes."""
    stages = _stages(x.shape, axes, target)
    wide = _accumulator(type_, reduction)
    count = math.prod(x.shape[axis] for axis in axes)
    steps: list[Step] = []
    source: Operand | Scratch = x
    for i, stage in enumerate(stages):
        last = i == len(stages) - 1
        into = y if last else Scratch(stage.outer * stage.inner * wide.dtype.itemsize)
        types = (x.spec.type if i == 0 else wide, wide, type_ if last else wide)
        divisor = count if last and reduction.mean else None
        steps.append(_launch(source, into, stage, types, reduction, divisor, target))
        source = into
    return steps


def _launch(
    source: Arg,
    into: Arg,
    stage: Stage,
    types: tuple[TensorType, TensorType, TensorType],
    reduction: _Reduction,
    divisor: int | None,
    target: Target,
) -> Launch:
    defines: dict[str, str | int] = {name: C_TYPES[type_] for name, type_ in zip("TAR", types, strict=True)}
    defines["OP"] = reduction.function
    if divisor is not None:
        defines["MEAN"] = 1
    numbers = reduction.first(types[1]), of(types[1], divisor or 1)
    return own(target, launch)(source, into, stage, defines, numbers, target)


def launch(
    source: Arg,
    into: Arg,
    stage: Stage,
    defines: Mapping[str, str | int | float],
    numbers: tuple[np.generic, np.generic],
    target: Target,
) -> Launch:
    """Return the launch of a stage, of which a work-item reduces whole lines. defines: macros of reduce.cl. numbers:
    the initial value and the divisor.
    """
    step = 1 if stage.inner == 1 else min(stage.inner, target.vector_width)
    share = chunks("reduce", stage.outer * stage.inner, target, step=step, work=stage.length)
    args = (source, into, *share.args, np.int32(stage.length), np.int32(stage.inner), *numbers)
    entry = "reduce_rows" if stage.inner == 1 else "reduce_columns"
    return share.launch(entry, args, defines, stage.outer * stage.length * stage.inner)


def _cl_op(op: Op, reduction: _Reduction, *allowed: TensorType) -> ClOp:
    def claim(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
        if refusal := constant(inputs, axis=1) or typed(inputs[:1], allowed, quantized=orders):
            return refusal
        return alike(given(inputs, 0), outputs[0]) if is_quantized(outputs[0]) else None

    # Quantized tensors with the same scale compare as their integers do.
    orders = reduction.function in ("MAX", "MIN")

    return ClOp(op, claim=claim, lower=partial(_lower, reduction))


SUMS = _Reduction("ADD", "zero")

_ORDERED = (*NUMBERS, *QUANTIZED)

CL_OPS = (
    _cl_op(reduce.SUM, SUMS, *NUMBERS),
    _cl_op(reduce.MEAN, _Reduction("ADD", "zero", mean=True), *NUMBERS),
    _cl_op(reduce.REDUCE_PROD, _Reduction("MULTIPLY", "one"), *NUMBERS),
    _cl_op(reduce.REDUCE_MAX, _Reduction("MAX", "least"), *_ORDERED),
    _cl_op(reduce.REDUCE_MIN, _Reduction("MIN", "largest"), *_ORDERED),
    _cl_op(reduce.REDUCE_ANY, _Reduction("MAX", "zero"), TensorType.BOOL),
    _cl_op(reduce.REDUCE_ALL, _Reduction("MIN", "one"), TensorType.BOOL),
)
