"""WHILE loops that only compute an LSTM, as Keras 3 traces them; they run like the fused LSTM.

The body reads row t of a time-major tensor, computes one step, and stores the new h in row t of a list, or as a list's
only row: z = x @ Wx + h @ Wh + b in four parts i, f, g, o; c' = sigmoid(f) c + sigmoid(i) tanh(g);
h' = sigmoid(o) tanh(c').
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from litecl.delegate.cl_op import Activation, Call, Launch, Operand, Target
from litecl.delegate.recurrent.lstm_cell import clips_of, memory_of, run
from litecl.delegate.recurrent.operands import Cell, plain_cell
from litecl.delegate.recurrent.time_loop import time_loop
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, Node, Subgraph, TensorSpec
from litecl.interpreter.match import AnyTensor, Match, match
from litecl.interpreter.op import Op
from litecl.interpreter.ops.binary import ADD
from litecl.interpreter.ops.concatenation import CONCATENATION
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.gather import GATHER
from litecl.interpreter.ops.reshape import EXPAND_DIMS, RESHAPE
from litecl.interpreter.ops.unary import TANH
from litecl.interpreter.ops.unidirectional_sequence_lstm import UnidirectionalSequenceLSTMOptions
from litecl.interpreter.recurrent.lstm_cell import FULL
from litecl.interpreter.recurrent.patterns import lstm_step, part_of
from litecl.interpreter.schema import ActivationFunctionType, TensorType
from litecl.interpreter.steps.links import OPERATORS, Links
from litecl.interpreter.steps.sums import sum_of

_STEP = lstm_step(OPERATORS, TANH, part_of(OPERATORS, AnyTensor("axis")))


@dataclass(frozen=True, eq=False)
class LstmLoop:
    """Positions of the loop's variables, and the cell's weights.

    whole: the list gets every step, not only the last. counters: final values of the variables that count.
    """

    x: int
    h: int
    c: int
    list: int
    whole: bool
    counters: dict[int, Array]
    cell: Cell


def find(
    body: Subgraph, specs: Sequence[TensorSpec], initial: Sequence[TensorSpec], trips: int | None
) -> LstmLoop | None:
    """Return the LSTM that a loop with this body computes, else None. initial: its variables' initial specs.
    trips: the number of iterations, if known.
    """
    return _Body(body, specs, initial, trips).find() if trips else None


def steps(
    loop: LstmLoop, initial: Sequence[Operand], results: Sequence[Operand], target: Target, *, halves: bool
) -> list[Launch]:
    """Return the launches that compute results: h of every step, [T, B, U], the last h and the last c. halves: see
    ``Call``.
    """
    x, (sequence, h, c) = initial[loop.x], results
    time, batch, _ = x.shape
    inputs: list[Operand | None] = [None] * 24
    inputs[FULL.output_state], inputs[FULL.cell_state] = initial[loop.h], initial[loop.c]
    options = UnidirectionalSequenceLSTMOptions(ActivationFunctionType.TANH, time_major=True)
    call = Call(options, inputs, results, target, Activation("TANH"), halves=halves)
    over = time_loop(time, batch, loop.cell.outputs, time_major=True)
    return run(call, loop.cell, over, [x], sequence, memory_of(call, FULL, [h, c]), clips_of(options))


class _Body:
    def __init__(self, body: Subgraph, specs: Sequence[TensorSpec], initial: Sequence[TensorSpec], trips: int) -> None:
        self._body, self._specs, self._initial, self._trips = body, specs, initial, trips
        known = tuple(replace(spec, shape_signature=None) for spec in specs)
        computed = tuple(node for node in body.nodes if any(specs[t].data is None for t in node.outputs))
        self._links = Links(replace(body, tensors=known, nodes=computed))

    def find(self) -> LstmLoop | None:
        for position, tensor in enumerate(self._body.outputs):
            step = match(self._links, _STEP, tensor)
            if step is not None:
                return self._loop(position, step)
        return None

    def _loop(self, h: int, step: Match[int, Node]) -> LstmLoop | None:
        c, total = self._variable(step["before"]), sum_of(self._links, step["z"])
        if c is None or self._body.outputs[c] != step["state"] or total is None or total.parts:
            return None
        of_h = [product for product in total.products if product.x == self._body.inputs[h]]
        of_x = [product for product in total.products if product not in of_h]
        batch, units = (*self._specs[step["h"]].static_shape, 0, 0)[:2]
        if len(of_h) != 1 or len(of_x) != 1 or self._specs[step["z"]].shape != (batch, 4 * units):
            return None
        row = self._made_by(of_x[0].x, GATHER)
        x, time = (None, None) if row is None else (self._variable(row.inputs[0]), self._variable(row.inputs[1]))
        if row is None or x is None or time is None or row.options.axis or row.options.batch_dims:
            return None
        if self._body.outputs[x] != self._body.inputs[x] or not self._fits(x, h, time):
            return None
        bias = (total.row + of_x[0].bias + of_h[0].bias).astype(np.float32)
        cell = plain_cell(*(np.split(part, 4) for part in (of_x[0].weights, of_h[0].weights, bias)))
        return self._with_list(x, h, c, time, step["h"], cell)

    def _with_list(self, x: int, h: int, c: int, time: int, h_new: int, cell: Cell) -> LstmLoop | None:
        """Return the loop if its other variables are a list of every h or the last one, counters and invariants."""
        counters: dict[int, Array] = {}
        lists: list[tuple[int, bool]] = []
        for position in set(range(len(self._body.inputs))) - {x, h, c}:
            count, whole = self._counted(position), self._written(position, time, h_new)
            if count is not None:
                counters[position] = count
            elif whole is not None:
                lists.append((position, whole))
            elif self._body.outputs[position] != self._body.inputs[position]:
                return None
        return LstmLoop(x, h, c, *lists[0], counters, cell) if len(lists) == 1 else None

    def _fits(self, x: int, h: int, time: int) -> bool:
        """Return whether x is [T, B, F] and float32, and time counts its rows from the first to the last."""
        spec, start = self._initial[x], self._initial[time].data
        last, float_ = self._counted(time), TensorType.FLOAT32
        if spec.type != float_ or self._initial[h].type != float_ or len(spec.static_shape) != 3:
            return False
        if len(self._initial[h].static_shape) != 2 or spec.static_shape[1] != self._initial[h].static_shape[0]:
            return False
        return start is not None and last is not None and start.item() == 0 and last.item() == spec.static_shape[0]

    def _counted(self, position: int) -> Array | None:
        """Return the final value of a variable that starts from a constant and grows by 1 in every iteration."""
        start, node = self._initial[position].data, self._made_by(self._body.outputs[position], ADD)
        if start is None or start.size != 1 or start.dtype.kind != "i" or node is None:
            return None
        others = [t for t in node.inputs if t != self._body.inputs[position]]
        step = self._specs[others[0]].data if len(others) == 1 else None
        if step is None or step.size != 1 or step.item() != 1 or node.options.fused_activation_function:
            return None
        return np.asarray(start + self._trips, start.dtype)

    def _written(self, position: int, time: int, h: int) -> bool | None:
        """Return whether a list gets every h (True) or only the last one (False); None if it is neither."""
        result, units = self._body.outputs[position], self._specs[h].static_shape
        if self._bare(result) == h and self._specs[result].shape == (1, *units):
            return False
        update = self._made_by(result, DYNAMIC_UPDATE_SLICE)
        if update is None or update.inputs[0] != self._body.inputs[position] or self._bare(update.inputs[1]) != h:
            return None
        begin = self._made_by(update.inputs[2], CONCATENATION)
        if begin is None or self._bare(begin.inputs[0]) != self._body.inputs[time]:
            return None
        rest = [self._specs[t].data for t in begin.inputs[1:]]
        zero = all(data is not None and not np.any(data) for data in rest)
        return True if zero and self._specs[result].shape == (self._trips, *units) else None

    def _variable(self, tensor: int) -> int | None:
        inputs = self._body.inputs
        return inputs.index(tensor) if tensor in inputs else None

    def _made_by(self, tensor: int, op: Op) -> Node | None:
        node = self._links.producer(tensor)
        return node if node is not None and node.op is op else None

    def _bare(self, tensor: int) -> int:
        """Return a tensor before it was reshaped."""
        node = self._made_by(tensor, RESHAPE) or self._made_by(tensor, EXPAND_DIMS)
        return tensor if node is None else self._bare(node.inputs[0])
