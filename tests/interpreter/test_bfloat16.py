"""BFLOAT16 against ai_edge_litert: in between, from float32 and back, and as callers see it."""

from typing import Any

import numpy as np
import pytest
from ai_edge_litert import interpreter as litert

from litecl.compiled_model import CompiledModel
from litecl.interpreter import Interpreter, feeding
from litecl.interpreter.arithmetic import bfloat16
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model, Node, Subgraph, TensorSpec
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops import binary, compare, unary
from litecl.interpreter.ops.cast import CAST, CastOptions
from litecl.interpreter.schema import TensorType as T
from litecl.perf.feeds import difference, random_inputs
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


def _cast(source: T, result: T) -> bytes:
    tensors = TensorSpec(source, X.shape, "x"), TensorSpec(result, X.shape, "y")
    node = Node(CAST, (0,), (1,), CastOptions(source, result), version=7)
    return write(Model((Subgraph(tensors, (0,), (1,), (node,)),)))


@pytest.mark.parametrize("types", [(T.FLOAT32, T.BFLOAT16), (T.BFLOAT16, T.FLOAT32)])
def test_callers_see_what_litert_shows(types: tuple[T, T]) -> None:
    content = _cast(*types)
    ours, theirs = Interpreter(content), litert.Interpreter(model_content=content)
    for interpreter in (ours, theirs):
        interpreter.allocate_tensors()
    mine, other = ((*i.get_input_details(), *i.get_output_details()) for i in (ours, theirs))
    assert [d["dtype"] for d in mine] == [d["dtype"] for d in other]
    value = X.astype(mine[0]["dtype"])
    for interpreter in (ours, theirs):
        interpreter.set_tensor(0, value)
        interpreter.invoke()
    for tensor in (0, 1):
        got, expected = ours.get_tensor(tensor), theirs.get_tensor(tensor)
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got.astype(np.float32), expected.astype(np.float32))
    assert ours.tensor(0)().dtype == value.dtype
    ours.tensor(0)()[...] = value[::-1]
    np.testing.assert_array_equal(ours.get_tensor(0).astype(np.float32), value[::-1].astype(np.float32))


def test_without_its_type_callers_see_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeding, "_seen", lambda type_: type_.dtype)
    got = _run(_cast(T.FLOAT32, T.BFLOAT16), X.astype(np.float32))
    np.testing.assert_array_equal(got, bfloat16.narrow(X))
    with pytest.raises(ShapeError, match="expected uint16, got float32"):
        _run(_cast(T.BFLOAT16, T.FLOAT32), X.astype(np.float32))


def test_buffers_and_random_inputs_have_it() -> None:
    content = _cast(T.BFLOAT16, T.FLOAT32)
    value = X.astype(Interpreter(content).get_input_details()[0]["dtype"])
    compiled = CompiledModel.from_buffer(content)
    inputs, outputs = compiled.create_input_buffers(0), compiled.create_output_buffers(0)
    for turn in (value, value[::-1]):
        inputs[0].write(turn)
        compiled.run_by_index(0, inputs, outputs)
        np.testing.assert_array_equal(outputs[0].read(X.size, np.float32), turn.astype(np.float32))
    assert difference([value], [value[::-1]]) > 0
    (made,) = random_inputs(Interpreter(content).get_input_details(), 3).values()
    assert made.dtype == value.dtype
