"""The steps that kernels_cl/chain.cl knows: operators of two operands, functions of one, activations."""

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Any

from litecl.delegate.ops import unary

WITH_OPERAND = (
    *("ADD", "SUB", "SUB_FROM", "MUL", "DIV", "DIV_INTO", "MAXIMUM", "MINIMUM", "MAXIMUM_OVER", "MINIMUM_UNDER"),
    *("SQUARED_DIFFERENCE", "PRELU"),
)
FUNCTIONS = tuple(cl_op.op.name for cl_op in unary.CL_OPS if cl_op.chains)
"""The functions of kernels_cl/functions.h that are steps."""
ACTIVATIONS = (*("CLAMP", "TANH", "LOGISTIC", "SWISH", "HARD_SWISH", "GELU", "GELU_APPROXIMATE", "ELU", "LEAKY_RELU"),)


def _codes(name: str, codes: Iterable[tuple[str, int]]) -> type[IntEnum]:
    create: Callable[..., Any] = IntEnum
    enum: type[IntEnum] = create(name, list(codes))
    return enum


StepCode = _codes("StepCode", ((name, i) for i, name in enumerate((*WITH_OPERAND, *FUNCTIONS, *ACTIVATIONS))))
FunctionStep = _codes("FunctionStep", ((name, StepCode[name]) for name in FUNCTIONS))
