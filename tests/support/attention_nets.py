"""Graphs of attention: two products with a softmax between them, in the layouts that models use."""

from collections.abc import Sequence

import numpy as np

from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.select import SELECT_V2
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.schema import TensorType as T
from support.build import Graph


class Attended(Graph):
    """softmax(scale * q k^T + mask) v."""

    q: int
    k: int
    v: int
    mask: int
    y: int

    def scores(
        self,
        q: Sequence[int] = (2, 3, 5, 8),
        k: Sequence[int] = (2, 3, 7, 8),
        *,
        keys_in_rows: bool = True,
        adj_x: bool = False,
    ) -> int:
        """Add the first product, of shapes as with keys and queries in rows."""
        self.q = self.input(turned(q, adj_x))
        self.k = self.input(turned(k, not keys_in_rows))
        return self.op(BATCH_MATMUL, [self.q, self.k], BatchMatMulOptions(adj_x=adj_x, adj_y=keys_in_rows))

    def scaled(self, scores: int, scale: float) -> int:
        return self.op(MUL, [scores, self.const(np.float32(scale))], MulOptions())

    def masked(self, scores: int, shape: Sequence[int]) -> int:
        self.mask = self.input(tuple(shape))
        return self.op(ADD, [scores, self.mask], AddOptions())

    def chosen(self, scores: int, shape: Sequence[int], hidden: float, *, shown: bool = True) -> int:
        """Put a number in place of the scores where a mask of booleans is not ``shown``."""
        self.mask = self.input(tuple(shape), T.BOOL)
        choices = [scores, self.const(np.float32(hidden))]
        return self.op(SELECT_V2, [self.mask, *(choices if shown else choices[::-1])], NoOptions())

    def softmax(self, scores: int, beta: float = 1.0) -> int:
        return self.op(SOFTMAX, [scores], SoftmaxOptions(beta=beta))

    def seen(
        self, scores: int, v: Sequence[int] = (2, 3, 7, 6), *, values_in_rows: bool = True, beta: float = 1.0
    ) -> int:
        """Add the softmax and the second product; return its result."""
        weights = self.softmax(scores, beta)
        self.v = self.input(turned(v, not values_in_rows))
        self.y = self.op(BATCH_MATMUL, [weights, self.v], BatchMatMulOptions(adj_y=not values_in_rows))
        return self.y


def turned(shape: Sequence[int], is_turned: bool) -> tuple[int, ...]:
    *batch, rows, columns = shape
    return (*batch, columns, rows) if is_turned else (*batch, rows, columns)
