"""A graph of element-wise operators as one launch: inputs are read once, and results between them are never stored.

No model file contains this operator; the pass ``elementwise`` creates it. The kernel is compiled for the graph.
"""

from collections.abc import Sequence

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Const, Step
from litecl.delegate.kit.claims import C_TYPES, moves
from litecl.delegate.kit.composed import composed
from litecl.delegate.kit.loops import LoopNest, loop_nest
from litecl.delegate.kit.schedule import elements
from litecl.delegate.kit.strided import view
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Shape
from litecl.interpreter.schema import TensorType


@dataclass(frozen=True)
class ElementStep:
    """One operator: the type of its result, and its expression in C of the values before it (``v0``, ``v1``, ...) and
    of constants, by their index: ``NUMBER(0)``, ``INTEGER(1)``, ``BOUND(2)``.
    """

    type: TensorType
    expression: str


@dataclass(frozen=True)
class ElementwiseOptions:
    """The shape of all results, and the steps; values are numbered, the node's inputs first, then the steps. results:
    the values that are the node's outputs. numbers: the constants, float32 and int32.
    """

    shape: Shape
    steps: tuple[ElementStep, ...]
    results: tuple[int, ...]
    numbers: tuple[np.generic, ...] = ()


def rows_of(shape: Shape, inputs: Sequence[Shape]) -> LoopNest:
    """Return the joint loops over inputs that broadcast to a shape."""
    return loop_nest(view(shape), *(np.broadcast_to(view(own), shape) for own in inputs))


def _lower(call: Call) -> list[Step]:
    options: ElementwiseOptions = call.options
    inputs, size = [call.input(i) for i in range(len(call.inputs))], call.outputs[0].spec.size
    nest = rows_of(options.shape, [x.shape for x in inputs])
    nest = LoopNest(nest.row, nest.dims, nest.strides[1:], nest.steps[1:])
    share = elements("elementwise", size, call.target, work=len(options.steps))
    numbers = np.array([int(number.view(np.int32)) for number in options.numbers] or [0], np.int32)
    args: tuple[Arg, ...] = (*inputs, *call.outputs, Const(numbers), nest.table, *share.args, np.int32(nest.row))
    defines = _macros(options, [C_TYPES[x.spec.type] for x in inputs], nest) | (
        {"PARTIAL": 1} if nest.row % call.target.vector_width else {}
    )
    return [share.launch("elementwise", args, defines, size * len(options.steps))]


def _macros(options: ElementwiseOptions, types: Sequence[str], nest: LoopNest) -> dict[str, str | int | float]:
    """Return the macros of elementwise.cl."""
    advances = [step != 0 for step in nest.steps]
    types = [*types, *(C_TYPES[step.type] for step in options.steps)]
    inputs, outputs = range(len(nest.steps)), options.results
    texts = {
        "ARRAYS": [f"INPUT({types[i]},{i})" for i in inputs] + [f"OUTPUT({types[i]},{i})" for i in outputs],
        "ROWS": [f"{'ROW_OF' if advances[i] else 'SAME_OF'}({types[i]},{i})" for i in inputs],
        "ELEMENTS": [
            *(f"{'NEXT' if advances[i] else 'SAME'}({types[i]},{i})" for i in inputs),
            *(f"STEP({types[i]},{i},{step.expression})" for i, step in enumerate(options.steps, len(inputs))),
            *(f"RESULT({types[i]},{i},v{i})" for i in outputs),
        ],
    }
    straight = {} if nest.dims else {"STRAIGHT": 1}
    return {name: "".join(parts) for name, parts in texts.items()} | {"INPUTS": len(inputs), **straight}


ELEMENTWISE = ClOp(composed("ELEMENTWISE", ElementwiseOptions), claim=moves, lower=_lower)
