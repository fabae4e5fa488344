"""WHILE loops that only compute an LSTM, as Keras 3 traces them; they run like the fused LSTM.

The body reads row t of a time-major tensor, computes one step, and stores the new h in row t of a list, or as a list's
only row: z = x @ Wx + h @ Wh + b in four parts i, f, g, o; c' = sigmoid(f) c + sigmoid(i) tanh(g);
h' = sigmoid(o) tanh(c').
"""

from collections.abc import Sequence

import numpy as np

from litecl.delegate.analysis.loop_variables import live_nodes
from litecl.delegate.cl_op import Activation, Call, Launch, Operand, Target
from litecl.delegate.recurrent.lstm_cell import clips_of, memory_of, run
from litecl.delegate.recurrent.operands import Cell, plain_cell
from litecl.delegate.recurrent.time_loop import time_loop
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, Node, Subgraph, TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops.binary import ADD, MUL
from litecl.interpreter.ops.concatenation import CONCATENATION
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED
from litecl.interpreter.ops.gather import GATHER
from litecl.interpreter.ops.reshape import EXPAND_DIMS, RESHAPE
from litecl.interpreter.ops.split import SPLIT
from litecl.interpreter.ops.unary import LOGISTIC, TANH
from litecl.interpreter.ops.unidirectional_sequence_lstm import UnidirectionalSequenceLSTMOptions
from litecl.interpreter.recurrent.lstm_cell import FULL
from litecl.interpreter.schema import ActivationFunctionType, TensorType


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
        self._maker = {t: body.nodes[i] for i in live_nodes(body) for t in body.nodes[i].outputs}

    def find(self) -> LstmLoop | None:
        for position, tensor in enumerate(self._body.outputs):
            gates = self._cell(tensor)
            if gates is not None:
                c_old, c_new, z = gates
                return self._loop(position, tensor, c_old, c_new, z)
        return None

    def _cell(self, h: int) -> tuple[int, int, int] | None:
        """Return the old c, the new c and z of the step that computes h."""
        output, squashed = self._factors(h, LOGISTIC, TANH) or (None, None)
        sum_ = self._made_by(squashed, ADD)
        if sum_ is None or output is None or squashed is None:
            return None
        for kept, added in (sum_.inputs, sum_.inputs[::-1]):
            update, old = self._factors(added, LOGISTIC, TANH), self._factors(kept, LOGISTIC, None)
            if update is None or old is None:
                continue
            split = self._made_by(output, SPLIT)
            if split is not None and (update[0], old[0], update[1], output) == split.outputs:
                return old[1], squashed, split.inputs[1]
        return None

    def _loop(self, h: int, h_new: int, c_old: int, c_new: int, z: int) -> LstmLoop | None:
        c, sums = self._variable(c_old), self._sums(z)
        products = [node for t in sums if (node := self._made_by(t, FULLY_CONNECTED)) is not None]
        of_h = [node for node in products if node.inputs[0] == self._body.inputs[h]]
        of_x = [node for node in products if node not in of_h]
        batch, units = (*self._specs[h_new].static_shape, 0, 0)[:2]
        if self._specs[z].shape != (batch, 4 * units):
            return None
        if c is None or self._body.outputs[c] != c_new or len(of_h) != 1 or len(of_x) != 1:
            return None
        row = self._made_by(of_x[0].inputs[0], GATHER)
        x, time = (None, None) if row is None else (self._variable(row.inputs[0]), self._variable(row.inputs[1]))
        if row is None or x is None or time is None or row.options.axis or row.options.batch_dims:
            return None
        if self._body.outputs[x] != self._body.inputs[x] or not self._fits(x, h, time):
            return None
        bias = self._bias([t for t in sums if t not in (of_h[0].outputs[0], of_x[0].outputs[0])], [*of_h, *of_x])
        input_weights, recurrent_weights = self._weights(of_x[0]), self._weights(of_h[0])
        if bias is None or input_weights is None or recurrent_weights is None:
            return None
        return self._with_list(x, h, c, time, h_new, _cell(input_weights, recurrent_weights, bias))

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
        place = self._made_by(update.inputs[2], CONCATENATION)
        if place is None or self._bare(place.inputs[0]) != self._body.inputs[time]:
            return None
        rest = [self._specs[t].data for t in place.inputs[1:]]
        zero = all(data is not None and not np.any(data) for data in rest)
        return True if zero and self._specs[result].shape == (self._trips, *units) else None

    def _sums(self, tensor: int) -> list[int]:
        """Return the terms of a chain of additions."""
        tensor = self._bare(tensor)
        node = self._made_by(tensor, ADD)
        if node is None or node.options.fused_activation_function:
            return [tensor]
        return [term for t in node.inputs for term in self._sums(t)]

    def _bias(self, terms: Sequence[int], products: Sequence[Node]) -> Array | None:
        """Return the sum of the terms and the products' biases; None if one of them is not a constant."""
        terms = [*terms, *(node.inputs[2] for node in products if len(node.inputs) > 2 and node.inputs[2] >= 0)]
        width = self._specs[products[0].outputs[0]].static_shape[-1]
        values = [self._specs[t].data for t in terms]
        if any(value is None or value.size != width for value in values):
            return None
        total: Array = np.sum([np.zeros(width, np.float32), *(np.ravel(v) for v in values if v is not None)], axis=0)
        return total

    def _weights(self, node: Node) -> Array | None:
        spec = self._specs[node.inputs[1]]
        if spec.type != TensorType.FLOAT32 or node.options.fused_activation_function:
            return None
        return spec.data

    def _factors(self, tensor: int | None, first: Op, second: Op | None) -> tuple[int, int] | None:
        """Return the inputs of the two operators whose results are multiplied; without a second one, that factor."""
        node = self._made_by(tensor, MUL)
        if node is None or node.options.fused_activation_function:
            return None
        for a, b in (node.inputs, node.inputs[::-1]):
            one = self._made_by(a, first)
            other = b if second is None else getattr(self._made_by(b, second), "inputs", (None,))[0]
            if one is not None and other is not None:
                return one.inputs[0], other
        return None

    def _variable(self, tensor: int) -> int | None:
        inputs = self._body.inputs
        return inputs.index(tensor) if tensor in inputs else None

    def _made_by(self, tensor: int | None, op: Op) -> Node | None:
        node = None if tensor is None else self._maker.get(tensor)
        return node if node is not None and node.op is op else None

    def _bare(self, tensor: int) -> int:
        """Return a tensor before it was reshaped."""
        node = self._made_by(tensor, RESHAPE) or self._made_by(tensor, EXPAND_DIMS)
        return tensor if node is None else self._bare(node.inputs[0])


def _cell(of_x: Array, of_h: Array, bias: Array) -> Cell:
    return plain_cell(np.split(of_x, 4), np.split(of_h, 4), np.split(bias.astype(np.float32), 4))
