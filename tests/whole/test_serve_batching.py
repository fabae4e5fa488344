"""Requests to `litecl serve` share batches only where that changes nothing; batches have few sizes."""

from collections.abc import Callable

import numpy as np
import pytest

from litecl import Predictor
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.control import CALL_ONCE, CallOnceOptions
from litecl.interpreter.ops.cumsum import CUMSUM, CumsumOptions
from litecl.interpreter.ops.reduce import MEAN, ReducerOptions
from litecl.interpreter.ops.unary import TANH
from litecl.interpreter.schema import TensorType
from litecl.serve import batching
from support.build import Graph, model
from support.variable_models import assign, read


def _of(build: Callable[[Graph, int], int]) -> Model:
    g = Graph()
    return model(g.build(build(g, g.input((1, 4), signature=(-1, 4)))))


def _mean(g: Graph, x: int) -> int:
    return g.op(MEAN, [x, g.const(np.array([0], np.int32))], ReducerOptions(True))


def _running_sum(g: Graph, x: int) -> int:
    return g.op(CUMSUM, [x, g.const(np.int32(0))], CumsumOptions())


def _counting() -> Model:
    """Adds to each row how often the model has run."""
    g, first = Graph(), Graph("first")
    spec = TensorSpec(TensorType.FLOAT32, (1, 1))
    g.node(CALL_ONCE, (), (), CallOnceOptions(1))
    assign(first, "n", first.const(np.zeros((1, 1), np.float32)))
    assign(g, "n", g.op(ADD, [read(g, "n", spec), g.const(np.float32([[1]]))], AddOptions()))
    y = g.op(ADD, [g.input((1, 4), signature=(-1, 4)), read(g, "n", spec)], AddOptions())
    return model(g.build(y), first.build())


def _fixed() -> Model:
    g = Graph()
    return model(g.build(g.op(TANH, [g.input((1, 4))], NoOptions())))


@pytest.mark.parametrize(
    ("made_model", "reason"),
    [
        (_of(lambda g, x: g.op(TANH, [x], NoOptions())), None),
        (_of(_mean), "do not have a row"),
        (_of(_running_sum), "depends on other rows"),
        (_counting(), "it keeps states"),
        (_fixed(), "no open first dimension"),
    ],
    ids=["rows", "mean", "running_sum", "counting", "fixed"],
)
def test_rows_share_a_batch_only_where_that_changes_nothing(made_model: Model, reason: str | None) -> None:
    with Predictor(write(made_model), cpu=True) as predictor:
        found = batching.why_apart(predictor)
    assert (found is None) if reason is None else reason in str(found)


@pytest.mark.parametrize(("most", "rows"), [(32, [1, 2, 4, 8, 16, 32]), (6, [1, 2, 3, 6]), (1, [1]), (1000, None)])
def test_batches_have_few_sizes(most: int, rows: list[int] | None) -> None:
    """Those that an interpreter stays prepared for."""
    found = batching.sizes(most)
    assert found[-1] == most and len(found) <= 8
    assert rows is None or found == rows
