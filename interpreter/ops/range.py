"""RANGE: numbers from ``start`` in steps of ``delta``, short of ``limit``."""

import numpy as np

from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import Inputs, NoOptions, Op, Specs
from litecl.interpreter.ops import require, types


def _count(start: Array, limit: Array, delta: Array) -> int:
    """How many numbers there are. Raises ShapeError for a step of 0 or in the wrong direction."""
    distance, step = limit.item() - start.item(), delta.item()
    if step == 0 or distance * step < 0:
        raise ShapeError(f"RANGE: delta {step} does not lead from {start.item()} to {limit.item()}")
    return int(np.ceil(distance / step)) if start.dtype.kind == "f" else -(-distance // step)


def _infer(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    operands = require.present("RANGE", inputs, 3)
    type_ = require.same_type("RANGE", *operands)
    require.types("RANGE", operands[0], types.NUMBER)
    for operand in operands:
        require.rank("RANGE", operand, exactly=0)
    known = [operand.data for operand in operands if operand.data is not None]
    return [TensorSpec(type_, None if len(known) < 3 else (_count(*known),))]


def _run(options: NoOptions, inputs: Inputs) -> list[Array]:
    start, limit, delta = require.arrays(inputs, 3)
    steps = np.arange(_count(start, limit, delta)).astype(start.dtype)
    return [np.asarray(start + steps * delta, start.dtype)]


RANGE = Op("RANGE", options=NoOptions, infer=_infer, run=_run, versions=range(1, 3))
