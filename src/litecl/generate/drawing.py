"""Draws a token from logits with a model's operators: distribution and order are those of ``sampling`` with a top_k."""

from collections.abc import Mapping

import numpy as np

from litecl.generate.builder import Builder
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops.binary import (
    DIV,
    LOGICAL_AND,
    LOGICAL_OR,
    MINIMUM,
    MUL,
    SUB,
    DivOptions,
    MulOptions,
    SubOptions,
)
from litecl.interpreter.ops.cast import CAST, CastOptions
from litecl.interpreter.ops.compare import GREATER_EQUAL, LESS, LESS_EQUAL
from litecl.interpreter.ops.cumsum import CUMSUM, CumsumOptions
from litecl.interpreter.ops.gather import GATHER, GatherOptions
from litecl.interpreter.ops.reduce import REDUCE_ALL, REDUCE_MAX, SUM, ReducerOptions
from litecl.interpreter.ops.topk_v2 import TOPK_V2
from litecl.interpreter.ops.unary import ABS, EXP
from litecl.interpreter.schema import TensorType

MOST = 64
"""The largest ``top_k``: a token is drawn from this many of the most likely ones."""

INPUTS = ("temperature", "top_k", "top_p", "uniforms")
"""The fields of ``Sampling``, and a random number from 0 to 1 for every token."""

_ROUNDING = 1e-5  # more than sums of chances differ by from float64's

_FLOAT, _INT, _BOOL = TensorType.FLOAT32, TensorType.INT32, TensorType.BOOL


def inputs(slots: int) -> dict[str, TensorSpec]:
    """Return the inputs. slots: the most tokens of one generation."""
    shapes = {"temperature": (_FLOAT, ()), "top_k": (_INT, ()), "top_p": (_FLOAT, ()), "uniforms": (_FLOAT, (slots,))}
    return {name: TensorSpec(type_, shape, name) for name, (type_, shape) in shapes.items()}


def token(g: Builder, logits: int, x: Mapping[str, int]) -> tuple[int, int]:
    """Return the drawn token, and whether ``sampling`` surely draws the same: no rounding of float32 decides.

    logits: [1, vocabulary]. x: the inputs, and ``steps``, the number of steps so far.
    """
    count = min(MOST, g.tensors[logits].static_shape[-1])
    if g.tensors[logits].type is not _FLOAT:
        logits = g.op(CAST, [logits], CastOptions(g.tensors[logits].type, _FLOAT))
    values, tokens = (g.reshaped(t, (count,)) for t in g.node(TOPK_V2, [logits, g.const(count)]))
    shifted = g.op(SUB, [values, _sum(g, values, REDUCE_MAX)], SubOptions())
    weights = g.op(EXP, [g.op(DIV, [shifted, x["temperature"]], DivOptions())])
    weights = _kept(g, weights, g.op(LESS, [g.const(np.arange(count)), x["top_k"]]))
    chances = g.op(DIV, [weights, _sum(g, weights)], DivOptions())
    before = g.op(CUMSUM, [chances, g.const(0)], CumsumOptions(exclusive=True))
    kept = _kept(g, chances, g.op(LESS, [before, x["top_p"]]))
    uniform = g.op(MUL, [g.op(GATHER, [x["uniforms"], x["steps"]], GatherOptions()), _sum(g, kept)], MulOptions())
    sums = g.op(CUMSUM, [kept, g.const(0)], CumsumOptions())
    passed = g.op(LESS_EQUAL, [sums, uniform])
    last = g.op(SUB, [_count(g, g.op(LESS, [g.const(0, np.float32), kept])), g.const(1)], SubOptions())
    drawn = g.op(GATHER, [tokens, g.op(MINIMUM, [_count(g, passed), last])], GatherOptions())
    is_kept_or_not = g.op(
        LOGICAL_OR,
        [_differ(g, before, x["top_p"], _ROUNDING), g.op(LESS_EQUAL, [chances, g.const(_ROUNDING, np.float32)])],
    )
    is_certain = g.op(LOGICAL_AND, [_differ(g, sums, uniform, 5 * _ROUNDING), is_kept_or_not])
    return drawn, g.op(REDUCE_ALL, [is_certain, g.const([0])], ReducerOptions())


def _differ(g: Builder, values: int, value: int, least: float) -> int:
    """Return where values differ from another by ``least`` or more; NaN doesn't."""
    distance = g.op(ABS, [g.op(SUB, [values, value], SubOptions())])
    return g.op(GREATER_EQUAL, [distance, g.const(least, np.float32)])


def _kept(g: Builder, values: int, where: int) -> int:
    return g.op(MUL, [values, g.op(CAST, [where], CastOptions(_BOOL, _FLOAT))], MulOptions())


def _count(g: Builder, where: int) -> int:
    return _sum(g, g.op(CAST, [where], CastOptions(_BOOL, _INT)))


def _sum(g: Builder, values: int, reducer: Op = SUM) -> int:
    return g.op(reducer, [values, g.const([0])], ReducerOptions())
