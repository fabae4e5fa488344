"""What planning finds out or trips over never keeps a model from running: results are right, failures are reported."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.analysis.list_writes import with_lists_in_place
from litecl.delegate.backend.program import Program
from litecl.delegate.cl_op import Call, ClOp, Refusal, Step
from litecl.delegate.ops import CL_OPS
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, SUB, SubOptions
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.gather import GATHER, GatherOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.shape import SHAPE, ShapeOptions
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.tile import TILE
from litecl.interpreter.ops.unary import EXP, NEG, TANH
from litecl.interpreter.run.shapes import propagate
from litecl.interpreter.schema import TensorType
from support import oracle
from support.build import Graph, model, randn
from support.loop_models import (
    FLOAT,
    INT,
    State,
    below,
    check,
    int32,
    next_,
    outputs,
    plus,
    prepared,
    subgraph,
    while_node,
)

RNG = np.random.default_rng(31)
ROWS, UNITS = 5, 3
LIST = (ROWS, UNITS)
STATE: State = [((), INT), (LIST, FLOAT), (LIST, FLOAT)]


def one_row(g: Graph, i: int) -> int:
    return g.op(RESHAPE, [i, g.const(np.array([1], np.int32))], ReshapeOptions((1,)))


def written(g: Graph, i: int, following: int, listed: int, item: int) -> int:
    """The list with an item at i, as TensorFlow's converter writes it."""
    rest, zero = g.const(np.array([-1], np.int32)), g.const(np.array([0], np.int32))
    ends = g.op(CONCATENATION, [one_row(g, i), rest], ConcatenationOptions(0))
    begins = g.op(CONCATENATION, [one_row(g, following), zero], ConcatenationOptions(0))
    unknown = [TensorSpec(FLOAT, ())]
    (head,) = g.node(SLICE, [listed, g.const(np.zeros(2, np.int32)), ends], unknown, NoOptions())
    (tail,) = g.node(SLICE, [listed, begins, g.const(np.full(2, -1, np.int32))], unknown, NoOptions())
    declared = [TensorSpec(FLOAT, (ROWS, UNITS))]
    return g.node(CONCATENATION, [head, item, tail], declared, ConcatenationOptions(0))[0]


def body(g: Graph, x: Sequence[int]) -> list[int]:
    """Writes a function of row i of the last variable into the list."""
    i, listed, frames = x
    row = g.node(GATHER, [frames, one_row(g, i)], [TensorSpec(FLOAT, (1, UNITS))], GatherOptions(0, 0))
    (item,) = g.node(TANH, row, [TensorSpec(FLOAT, (1, UNITS))], NoOptions())
    following = next_(g, i)
    return [following, written(g, i, following, listed, item), frames]


def shaped_by_a_list() -> Model:
    """Return a model that cuts a tensor after a loop to its list's length, known only once the writes are found."""

    def main(g: Graph, x: Sequence[int]) -> list[int]:
        _, listed, _ = while_node(g, x, 1, 2)
        (shape,) = g.node(SHAPE, [listed], [TensorSpec(INT, (2,))], ShapeOptions(TensorType.INT32))
        last = g.op(SUB, [shape, g.const(np.array([ROWS - 1, 0], np.int32))], SubOptions())
        unknown = [TensorSpec(FLOAT, (1, UNITS))]
        (row,) = g.node(SLICE, [listed, g.const(np.zeros(2, np.int32)), last], unknown, NoOptions())
        (tiled,) = g.node(TILE, [row, shape], [TensorSpec(FLOAT, (ROWS, UNITS * UNITS))], NoOptions())
        return [g.node(NEG, [tiled], [g.tensors[tiled]], NoOptions())[0], shape, g.op(EXP, [listed], NoOptions())]

    return model(subgraph("main", STATE, main), subgraph("cond", STATE, below(ROWS)), subgraph("body", STATE, body))


FEEDS = [int32(0), randn(RNG, *LIST), randn(RNG, *LIST)]


@pytest.mark.parametrize(
    "options", [{}, {"deny_ops": ["SLICE"]}, {"deny_ops": ["WHILE"]}, {"deny_ops": ["EXP"]}], ids=str
)
def test_values_that_only_planning_knows(options: dict[str, Any]) -> None:
    """Whatever reads them, and whichever loop the CPU runs as loaded."""
    check(shaped_by_a_list(), FEEDS, claimed=False, strict=True, num_threads=1, **options)


def test_values_that_only_planning_knows_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise DelegateError("the device is gone")

    model_ = shaped_by_a_list()
    interpreter = prepared(model_, FEEDS, [CLDelegate(num_threads=1)])
    monkeypatch.setattr(Program, "run", fail)
    for got, wanted in zip(outputs(interpreter), oracle.run(write(model_), FEEDS), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6)
    assert set(interpreter.delegation_report().failures) == {"the device is gone"}


def test_a_list_write_behind_another() -> None:
    """The second loop's list gets its shape from the first one's."""

    def main(g: Graph, x: Sequence[int]) -> list[int]:
        _, first, _ = while_node(g, x, 1, 2)
        return while_node(g, [g.const(int32(0)), x[1], first], 3, 4)

    parts = [subgraph("cond", STATE, below(ROWS)), subgraph("body", STATE, body)]
    whole = model(subgraph("main", STATE, main), *parts, *parts)
    entries = {0: [feed.shape for feed in FEEDS]}
    found, _ = with_lists_in_place(whole, propagate(whole, entries), entries)
    bodies = [[node.op for node in found.subgraphs[i].nodes] for i in (2, 4)]
    assert all(DYNAMIC_UPDATE_SLICE in ops for ops in bodies)
    check(whole, FEEDS, num_threads=1, strict=True)


@pytest.mark.parametrize("preserve", [False, True])
def test_an_absent_operand_is_not_the_last_tensor(preserve: bool) -> None:
    """A product without a bias, before a loop whose list grows."""

    def growing(g: Graph, x: Sequence[int]) -> list[int]:
        row = g.const(randn(RNG, 1, UNITS))
        (longer,) = g.node(CONCATENATION, [x[2], row], [TensorSpec(FLOAT, LIST)], ConcatenationOptions(0))
        return [next_(g, x[0]), x[1], longer]

    def main(g: Graph, x: Sequence[int]) -> list[int]:
        product = g.op(FULLY_CONNECTED, [x[1], g.const(randn(RNG, UNITS, UNITS)), None], FullyConnectedOptions())
        return while_node(g, [x[0], x[2], product], 1, 2)

    graphs = [subgraph("main", STATE, main), subgraph("cond", STATE, below(2)), subgraph("body", STATE, growing)]
    content = write(model(*graphs))
    device = Interpreter(
        model_content=content,
        delegates=[CLDelegate(strict=True, num_threads=1)],
        experimental_preserve_all_tensors=preserve,
    )
    device.allocate_tensors()
    for detail, feed in zip(device.get_input_details(), FEEDS, strict=True):
        device.set_tensor(detail["index"], feed)
    for got, wanted in zip(outputs(device), oracle.run(content, FEEDS), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


def _trips(*args: Any) -> Any:
    raise IndexError("out of line")


def _lowered(call: Call) -> list[Step]:
    return _trips()


def _claimed(*args: Any) -> Refusal | None:
    return None


_BROKEN = {"claim": ClOp(EXP, _trips, _lowered), "lowering": ClOp(EXP, _claimed, _lowered)}


@pytest.mark.parametrize("broken", _BROKEN.values(), ids=_BROKEN)
def test_planning_that_fails(broken: ClOp) -> None:
    """The CPU runs what could not be planned, and the report says why; ``strict`` raises."""
    assert EXP in CL_OPS
    assert ADD in CL_OPS
    g = Graph()
    x = g.input((2, 3))
    content = write(model(g.build(plus(g, g.op(EXP, [x], NoOptions()), x))))
    feed = randn(RNG, 2, 3)
    interpreter = Interpreter(model_content=content, delegates=[CLDelegate(custom_ops=[broken])])
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, feed)
    (got,) = outputs(interpreter)
    np.testing.assert_allclose(got, np.exp(feed) + feed, rtol=1e-6)
    (failure,) = interpreter.delegation_report().failures
    assert "IndexError: out of line" in failure
    with pytest.raises(DelegateError, match="out of line"):
        Interpreter(model_content=content, delegates=[CLDelegate(custom_ops=[broken], strict=True)]).allocate_tensors()
