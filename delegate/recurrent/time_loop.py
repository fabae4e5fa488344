"""A cell's loop over time: the arguments of its kernels, and the order in which they read weights."""

from collections.abc import Sequence
from enum import IntEnum

import numpy as np

from litecl.delegate.cl_op import Record, Target
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array


class Gate(IntEnum):
    """The gates in the order of their weights; the input gate is absent where it is coupled to the forget gate."""

    INPUT = 0
    FORGET = 1
    CELL = 2
    OUTPUT = 3


class Peephole(IntEnum):
    """The gates that read the cell's state."""

    INPUT = 0
    FORGET = 1
    OUTPUT = 2


@dataclass(frozen=True)
class TimeLoop:
    """Strides of a cell's input and output.

    x is counted in rows, each one time step of one batch entry; out in elements. Each has a first position, and strides
    from step to step (negative to run backwards) and from one batch entry to the next.
    """

    steps: int
    batch: int
    x_first: int
    x_time: int
    x_batch: int
    out_first: int
    out_time: int
    out_batch: int


@dataclass(frozen=True)
class Recurrence(Record):
    """Arguments of lstm.cl: the time loop, the cell's units, blocks of units that fill vectors, elements of output.

    row_bytes, hidden_bytes: of the output and of the projection's input as bytes, padded to whole ints.
    """

    time: TimeLoop
    units: int
    blocks: int
    outputs: int
    row_bytes: int
    hidden_bytes: int


def time_loop(
    steps: int, batch: int, width: int, *, time_major: bool, reverse: bool = False, first: int = 0
) -> TimeLoop:
    """Return the loop over a dense x and an output of ``width`` elements per step, in which the cell's part begins at
    ``first``.
    """
    time, row = (batch, 1) if time_major else (1, steps)
    start = (steps - 1) * time if reverse else 0
    step = -time if reverse else time
    return TimeLoop(steps, batch, start, step, row, first + start * width, step * width, row * width)


def width_of(target: Target) -> dict[str, str | int | float]:
    """Return the macro for the units in a vector of a cell's kernel, ``Target.lanes``, unless the device's vector has
    as many.
    """
    return {"WIDTH": target.lanes} if target.lanes != target.vector_width else {}


def by_block(gates: Sequence[Array], width: int) -> Array:
    """Return gates' weights [units, depth] as rows of one matrix, by block of ``width`` units, gate and unit."""
    units, depth = gates[0].shape
    blocks = -(-units // width)
    padded = np.zeros((len(gates), blocks * width, depth), gates[0].dtype)
    padded[:, :units] = np.stack(gates)
    return padded.reshape(len(gates), blocks, width, depth).swapaxes(0, 1).reshape(-1, depth)
