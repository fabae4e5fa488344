"""Memory follows the tensors that are alive, also where they belong to many subgraphs: on the host and on a device."""

import tracemalloc
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Model, Subgraph
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.control import CALL, IF, CallOptions, IfOptions
from litecl.interpreter.ops.reduce import SUM, ReducerOptions
from litecl.interpreter.ops.unary import ABS
from litecl.interpreter.schema import TensorType
from support.build import Graph, model

SIZE = 25_000  # elements of a row, a hundred thousand bytes
ROW_BYTES = 4 * SIZE


def sibling(rows: int) -> Subgraph:
    """A row repeated, and summed up again: its two large tensors are alive together."""
    g = Graph(f"sibling{rows}")
    wide = g.op(CONCATENATION, [g.input((1, SIZE))] * rows, ConcatenationOptions(0))
    total = g.op(SUM, [g.op(ABS, [wide], NoOptions()), g.const(np.int32([0]))], ReducerOptions(keep_dims=True))
    return g.build(total)


def called(*rows: int) -> Model:
    """Return calls of siblings, one after another."""
    main = Graph()
    x = main.input((1, SIZE))
    for callee in range(1, len(rows) + 1):
        (x,) = main.node(CALL, [x], [main.tensors[x]], CallOptions(callee))
    return model(main.build(x), *map(sibling, rows))


def chosen(*rows: int) -> Model:
    """Return consecutive IFs, whose branches are siblings."""
    main = Graph()
    x, condition = main.input((1, SIZE)), main.input((), TensorType.BOOL)
    for then in range(1, len(rows) + 1, 2):
        (x,) = main.node(IF, [condition, x], [main.tensors[x]], IfOptions(then, then + 1))
    return model(main.build(x), *map(sibling, rows))


WAYS = pytest.mark.parametrize("make", [called, chosen], ids=["calls", "branches"])
SIBLINGS = pytest.mark.parametrize("rows", [(4, 7, 12, 3, 20, 9, 12, 5, 2, 16), (12,) * 10], ids=["unequal", "equal"])


def peak_bytes(model_: Model, condition: bool) -> int:
    """Return the most memory that the interpreter holds during an invoke."""
    interpreter = Interpreter(model_)
    interpreter.allocate_tensors()
    feeds = [np.ones((1, SIZE), np.float32), np.array(condition)]
    for detail, feed in zip(interpreter.get_input_details(), feeds, strict=False):
        interpreter.set_tensor(detail["index"], feed)
    interpreter.invoke()  # what is allocated once
    tracemalloc.start()
    interpreter.invoke()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def arena_bytes(model_: Model) -> int:
    """The device memory of a model that the device runs whole."""
    interpreter = Interpreter(model_, delegates=[CLDelegate()])
    interpreter.allocate_tensors()
    report = interpreter.delegation_report()
    assert [row for row in report.nodes if not row.claimed] == []
    (partition,) = report.partitions
    return partition.arena_bytes


@WAYS
@SIBLINGS
@pytest.mark.parametrize("condition", [True, False])
def test_interpreter(make: Callable[..., Model], rows: Sequence[int], condition: bool) -> None:
    """Ten siblings need as much as the largest, and a few rows that are passed on."""
    largest = max(rows if make is called else rows[not condition :: 2])
    assert 2 * largest * ROW_BYTES <= peak_bytes(make(*rows), condition) < (2 * largest + 4) * ROW_BYTES


@WAYS
@SIBLINGS
def test_device(make: Callable[..., Model], rows: Sequence[int]) -> None:
    """The same of the arena in which the tensors of all subgraphs are placed."""
    assert 2 * max(rows) * ROW_BYTES <= arena_bytes(make(*rows)) < (2 * max(rows) + 5) * ROW_BYTES
