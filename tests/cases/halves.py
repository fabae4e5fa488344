"""FLOAT16 cases of operators that LiteRT runs in it by XNNPACK, not by its reference kernels.

Each is a case of the operator's own table with its floats as FLOAT16. XNNPACK's arithmetic differs by processor: with
native FLOAT16 it may round more steps.
"""

from dataclasses import replace
from importlib import import_module
from itertools import islice

import numpy as np

from litecl.cases import Case
from litecl.interpreter.ops.leaky_relu import LEAKY_RELU

_TABLES = (
    *("batch_matmul", "binary", "conv_2d", "depthwise_conv_2d", "fully_connected", "leaky_relu", "pool_2d", "prelu"),
    *("reduce", "unary", "edge_shapes"),
)
_EXACT = ("ABS", "CEIL", "DIV", "PRELU", "REDUCE_MAX", "REDUCE_MIN", "RELU", "RELU6", "RELU_N1_TO_1", "SQUARE", "SUB")
_SUMS = ("BATCH_MATMUL", "CONV_2D", "FULLY_CONNECTED", "MEAN", "SUM")
_STEPS = (
    *("AVERAGE_POOL_2D", "DEPTHWISE_CONV_2D", "ELU", "EXP", "HARD_SWISH", "LEAKY_RELU", "LOG", "RSQRT", "SQRT"),
    "SQUARED_DIFFERENCE",
)
# A sum is rounded once, in whatever order it was added up; XNNPACK rounds each step of the last group to FLOAT16.
_TOLERANCES = dict.fromkeys(_EXACT, 0.0) | dict.fromkeys(_SUMS, 1e-3) | dict.fromkeys(_STEPS, 4e-3)
_WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "PRELU")
_MOST = 4  # cases of an operator


def halved(case: Case) -> Case:
    """Return the case with its floats as FLOAT16, expected to be what LiteRT's default kernels compute."""
    inputs = [x.astype(np.float16) if x is not None and x.dtype == np.float32 else x for x in case.inputs]
    return replace(case, name=f"halves, {case.name}", inputs=inputs, kernels="default")


def fits(case: Case) -> bool:
    """Return whether a case has no types but plain floats, and finite ones in the range of FLOAT16."""
    floats = [x for x in case.inputs if x is not None and x.dtype == np.float32]
    plain = not (case.quantization or case.types or case.outputs)
    return plain and bool(floats) and all(np.abs(x).max(initial=0) < 1000 for x in floats)


def _runs_in_xnnpack(case: Case) -> bool:
    ranks = [x.ndim for x in case.inputs if x is not None]
    fixed = case.op.name not in _WEIGHTED or 1 in case.constants
    biased = case.op.name != "DEPTHWISE_CONV_2D" or len(ranks) == 3
    sloped = case.op is not LEAKY_RELU or 0 < case.options.alpha < np.inf
    return fixed and biased and sloped and 0 < ranks[0] < 6 and all(x is None or x.size for x in case.inputs)


def _cases(name: str, tolerance: float) -> list[Case]:
    tables = (case for table in _TABLES for case in import_module(f"litecl.cases.{table}").CASES)
    suitable = (case for case in tables if case.op.name == name and fits(case) and _runs_in_xnnpack(case))
    return [replace(halved(case), tolerance=tolerance) for case in islice(suitable, _MOST)]


CASES = tuple(case for name, tolerance in _TOLERANCES.items() for case in _cases(name, tolerance))
