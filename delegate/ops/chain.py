"""Consecutive element-wise operators as one launch, of a kernel compiled for just their steps."""

from collections.abc import Sequence
from dataclasses import field
from enum import IntEnum

import numpy as np

from litecl.delegate.cl_op import Activation, Arg, Const, Launch, Operand, Record, Target
from litecl.delegate.kit.loops import long_rows, loop_nest, periodic
from litecl.delegate.kit.schedule import elements
from litecl.delegate.kit.strided import broadcast_view
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Shape


class ChainArray(IntEnum):
    """The arrays that the kernel iterates over together: the chain's input, operands of its steps, and the result."""

    X = 0
    A = 1
    B = 2
    C = 3
    D = 4
    Y = 5


@dataclass(frozen=True)
class ChainStep(Record):
    """A step as the kernel reads it. array: the index of its operand, -1 if it has none or takes ``number``.

    low, high: the arguments of an activation; a step that takes an operand clamps its result to them.
    """

    code: int
    array: int
    number: float
    low: float
    high: float


_REVERSED = {
    "ADD": "ADD",
    "SUB": "SUB_FROM",
    "MUL": "MUL",
    "DIV": "DIV_INTO",
    "MAXIMUM": "MAXIMUM_OVER",  # if either operand is NaN, both yield the second
    "MINIMUM": "MINIMUM_UNDER",
    "SQUARED_DIFFERENCE": "SQUARED_DIFFERENCE",
}
CHAINED = (*_REVERSED, "PRELU")
"""The operators of two operands that are steps."""
OPERANDS = ChainArray.Y - ChainArray.A
"""Arrays that the kernel takes besides the input and the result."""


@dataclass(frozen=True, eq=False)
class Link:
    """One operator of a chain: its step, and the operand that it takes besides the running value, if any.

    activation: the step itself, or, for a step that takes an operand, a clamp that follows it.
    """

    step: str
    operand: Operand | None = None
    activation: Activation = field(default_factory=Activation)

    @property
    def number(self) -> float | None:
        """The operand, if it is a single known number."""
        data = None if self.operand is None else self.operand.data
        return None if data is None or data.size != 1 else float(data.reshape(()))


def step_of(name: str, position: int) -> str | None:
    """Return the step of a chained operator whose input at ``position`` is the running value; None if it has none."""
    return name if position == 0 else _REVERSED.get(name)


def chain(x: Operand, links: Sequence[Link], y: Operand, target: Target) -> Launch:
    """Compute y by applying all steps to x; operands broadcast to its shape."""
    arrays = operands_of(links)
    given, shape = _long_rows(arrays, y) if x.row_step is None and y.row_step is None else (arrays, y.shape)
    operands = [x, *given, *[x] * (OPERANDS - len(given))]
    nest = periodic(loop_nest(*(broadcast_view(operand, shape) for operand in (*operands, y))), target)
    steps = tuple(_step(link, arrays) for link in links)
    share = elements("chain", y.spec.size, target, work=len(links))
    tables: tuple[Arg, ...] = (Const(np.array(nest.steps, np.int32)), steps, nest.table)
    sizes = (*share.args, np.int32(nest.row), np.int32(len(links)))
    macros = {"TAKEN": _taken(links), **nest.straight(target)}
    return share.launch("chain", (*operands, y, *tables, *sizes), macros, y.spec.size * len(links))


def operands_of(links: Sequence[Link]) -> list[Operand]:
    """Return the operands in memory, each once."""
    return list(dict.fromkeys(link.operand for link in links if link.operand is not None and link.number is None))


def _step(link: Link, arrays: Sequence[Operand]) -> ChainStep:
    plain = link.operand is None or link.number is not None
    array = -1 if plain else ChainArray.A + [link.operand is array for array in arrays].index(True)
    return ChainStep(_code(link.step), array, link.number or 0.0, link.activation.low, link.activation.high)


def _code(step: str) -> int:
    from litecl.delegate.ops.chain_steps import StepCode  # imports every function, so only once a chain is launched

    return StepCode[step]


def _taken(links: Sequence[Link]) -> int:
    """Return a bit for each step of a chain: a model uses few steps, and all together take long to compile."""
    return sum(1 << code for code in {_code(link.step) for link in links})


def _long_rows(arrays: Sequence[Operand], y: Operand) -> tuple[Sequence[Operand], Shape]:
    """Lengthen the rows of arrays that repeat in every row, if all arrays with fewer elements than y do."""
    longer = [(a, None) if a.spec.size == y.spec.size else long_rows(a, y.shape) for a in arrays]
    shapes = {shape for _, shape in longer if shape is not None}
    dense = all(array.row_step is None for array in arrays)
    return ([a for a, _ in longer], shapes.pop()) if dense and len(shapes) == 1 else (arrays, y.shape)
