"""Attention: two products with a softmax between them, which a device runs as one kernel."""

import numpy as np

from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.binary import ADD, DIV, MUL, AddOptions, DivOptions, MulOptions
from litecl.interpreter.ops.select import SELECT_V2
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.ops.transpose import TRANSPOSE
from litecl.random_graphs.sketch import MOST_ELEMENTS, Sketch, T, Unfit

_HIDDEN = -50.0, -0.7 * float(np.finfo(np.float32).max)  # what is next to nothing, and what exporters write
_MOST_PRODUCTS = 1 << 18


def attention(s: Sketch) -> None:
    """Attention of a tensor to itself or to one like it, scaled and masked or not, with operands either way round."""
    x = s.pick(T.FLOAT32, rank=(2, 3, 4))
    *batch, rows, depth = s.shape_of(x)
    if s.spec(x).size * rows > _MOST_PRODUCTS or s.spec(x).size // depth * rows > MOST_ELEMENTS:
        raise Unfit("large")
    keys, values = (_turned(s, s.like(x)) for _ in range(2))
    scores = s.op(BATCH_MATMUL, [x, keys[0]], BatchMatMulOptions(adj_y=keys[1]))
    if s.chance(0.6):
        scores = s.op(MUL, [scores, s.const(np.float32(depth**-0.5))], MulOptions())
    if s.chance(0.3):
        scores = s.op(DIV, [scores, s.const(np.full(1, depth, np.float32))], DivOptions())
    if s.chance(0.6):
        shape = s.one_of((*batch, rows, rows), (rows, rows), (rows,), (rows, 1), (*(1 for _ in batch), 1, rows))
        hides, hidden = s.rng.random(shape) < s.one_of(0.4, 0.9), s.one_of(*_HIDDEN)
        if s.chance(0.5):
            mask = np.where(hides, hidden, s.rng.standard_normal(shape)).astype(np.float32)
            scores = s.op(ADD, [scores, s.const(mask)], AddOptions())
        else:
            choices = (scores, s.const(np.float32(hidden)))
            choices = choices if s.chance(0.5) else choices[::-1]
            scores = s.op(SELECT_V2, [s.const(hides), *choices], NoOptions())
    weights = s.op(SOFTMAX, [scores], SoftmaxOptions(beta=1.0))
    s.op(BATCH_MATMUL, [weights, values[0]], BatchMatMulOptions(adj_y=not values[1]))


def _turned(s: Sketch, x: int) -> tuple[int, bool]:
    """Return a tensor as it is, or with its last two dimensions swapped; and whether it is as it was."""
    if s.chance(0.5):
        return x, True
    rank = len(s.shape_of(x))
    order = np.array([*range(rank - 2), rank - 1, rank - 2], np.int32)
    return s.op(TRANSPOSE, [x, s.const(order)]), False
