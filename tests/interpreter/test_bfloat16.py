"""BFLOAT16 in between, since LiteRT hands out no such tensors: from float32 and back, against ai_edge_litert."""

from typing import Any

import numpy as np
import pytest

from litecl.interpreter import Interpreter
from litecl.interpreter.arithmetic import bfloat16
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model, Node, Subgraph, TensorSpec
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops import binary, compare, unary
from litecl.interpreter.ops.cast import CAST, CastOptions
from litecl.interpreter.schema import TensorType as T
from support import compare as tolerances
from support import oracle

X = np.concatenate([np.random.default_rng(109).standard_normal(57) * 4, [0.0, -0.0, 0.5, 1.5, -2.5, 3e38]])
Y = X[::-1]
ROUNDED = (unary.NEG, unary.FLOOR, unary.ROUND, binary.MAXIMUM, binary.MINIMUM)
# One step of eight bits, for functions that the two compute in another way.
STEP = 2.0**-8


def _chain(op: Op | None, operands: int, result: T) -> bytes:
    shape = X.shape
    tensors = [TensorSpec(T.FLOAT32, shape, f"x{i}") for i in range(operands)]
    tensors += [TensorSpec(T.BFLOAT16, shape, f"narrow{i}") for i in range(operands)]
    narrow = CastOptions(T.FLOAT32, T.BFLOAT16)
    nodes = [Node(CAST, (i,), (operands + i,), narrow, version=7) for i in range(operands)]
    last = operands
    if op is not None:
        last = len(tensors)
        tensors.append(TensorSpec(result, shape, "result"))
        nodes.append(Node(op, tuple(range(operands, 2 * operands)), (last,), NoOptions()))
    if op is None or result == T.BFLOAT16:
        nodes.append(Node(CAST, (last,), (len(tensors),), CastOptions(T.BFLOAT16, T.FLOAT32), version=7))
        tensors.append(TensorSpec(T.FLOAT32, shape, "wide"))
    graph = Subgraph(tuple(tensors), tuple(range(operands)), (len(tensors) - 1,), tuple(nodes))
    return write(Model((graph,)))


def _run(content: bytes, *values: Any) -> Array:
    interpreter = Interpreter(content)
    interpreter.allocate_tensors()
    for i, value in enumerate(values):
        interpreter.set_tensor(i, value)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


@pytest.mark.parametrize(
    ("op", "operands", "result"),
    [
        (None, 1, T.BFLOAT16),
        *((op, 1, T.BFLOAT16) for op in (unary.NEG, unary.FLOOR, unary.ROUND, unary.LOGISTIC, unary.TANH)),
        *((op, 2, T.BFLOAT16) for op in (binary.MAXIMUM, binary.MINIMUM, binary.ATAN2)),
        (compare.LESS, 2, T.BOOL),
        (compare.GREATER, 2, T.BOOL),
    ],
    ids=lambda value: "CAST" if value is None else getattr(value, "name", str(value)),
)
def test_against_litert(op: Op | None, operands: int, result: T) -> None:
    feeds = [values.astype(np.float32) for values in (X, Y)[:operands]]
    content = _chain(op, operands, result)
    # LiteRT has no reference kernel of ROUND.
    (expected,) = oracle.run(content, feeds, oracle.RESOLVERS["optimised" if op is unary.ROUND else "reference"])
    got = _run(content, *feeds)
    exact = op is None or op in ROUNDED or result == T.BOOL
    tolerances.assert_close(got, expected, 0.0 if exact else STEP)


def test_narrowing_rounds_to_even_and_keeps_what_is_not_finite() -> None:
    x = np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, np.inf, -np.inf, np.nan, 3.4e38], np.float32)
    wide = bfloat16.widen(bfloat16.narrow(x))
    np.testing.assert_array_equal(wide, np.float32([1.0, 1.0, 1 + 2**-6, np.inf, -np.inf, np.nan, np.inf]))
