"""Cases of BATCH_MATMUL."""

import numpy as np

from litecl.cases import Case, rng
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions

_random = rng(27)


def _f(*shape: int) -> Array:
    return _random.standard_normal(shape).astype(np.float32)


def _case(name: str, x: tuple[int, ...], y: tuple[int, ...], adj_x: bool = False, adj_y: bool = False) -> Case:
    return Case(name, BATCH_MATMUL, BatchMatMulOptions(adj_x, adj_y), [_f(*x), _f(*y)])


CASES = (
    _case("rank 2", (3, 5), (5, 4)),
    _case("rank 3", (2, 3, 5), (2, 5, 4)),
    _case("rank 4", (2, 3, 4, 5), (2, 3, 5, 6)),
    _case("rank 5", (2, 1, 2, 3, 4), (2, 1, 2, 4, 5)),
    _case("adjoint of x", (2, 5, 3), (2, 5, 4), adj_x=True),
    _case("adjoint of y", (2, 3, 5), (2, 4, 5), adj_y=True),
    _case("both adjoint", (2, 5, 3), (2, 4, 5), adj_x=True, adj_y=True),
    _case("y broadcast", (2, 3, 4, 5), (5, 6)),
    _case("x broadcast", (4, 5), (2, 3, 5, 6)),
    _case("both broadcast", (2, 1, 4, 5), (1, 3, 5, 6)),
    _case("rank 3 by rank 4", (3, 4, 5), (2, 3, 5, 6)),
    _case("rank 3 by rank 4, adjoint of y", (3, 4, 5), (2, 3, 6, 5), adj_y=True),
    _case("vectors", (1, 17), (17, 1)),
    _case("outer product", (9, 1), (1, 7)),
    *(_case(f"{rows} rows, {n} columns", (2, rows, 19), (2, 19, n)) for rows in (1, 9) for n in (16, 32, 48, 64)),
    _case("depth 130", (2, 33, 130), (2, 130, 31)),
    Case("y constant", BATCH_MATMUL, BatchMatMulOptions(), [_f(2, 3, 5), _f(5, 4)], constants=frozenset({1})),
)
