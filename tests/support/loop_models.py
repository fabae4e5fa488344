"""What tests of WHILE and IF build their models with, and how they run them on a device."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model, Subgraph
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.compare import LESS
from litecl.interpreter.ops.control import IF, WHILE, IfOptions, WhileOptions
from litecl.interpreter.schema import TensorType
from support import compare, oracle
from support.build import Graph, model

INT, BOOL, FLOAT = TensorType.INT32, TensorType.BOOL, TensorType.FLOAT32
State = Sequence[tuple[tuple[int, ...], TensorType]]
Part = Callable[[Graph, Sequence[int]], Any]


def subgraph(name: str, state: State, part: Part) -> Subgraph:
    """A subgraph over loop variables, whose outputs ``part`` returns."""
    g = Graph(name)
    found = part(g, [g.input(shape, type_) for shape, type_ in state])
    return g.build(*([found] if isinstance(found, int) else found))


def while_model(state: State, condition: Part, body: Part, *more: Subgraph) -> Model:
    """A model that is one WHILE: subgraph 1 is its condition, 2 its body, and ``more`` come after."""
    return model(
        subgraph("main", state, lambda g, x: while_node(g, x, 1, 2)),
        subgraph("cond", state, condition),
        subgraph("body", state, body),
        *more,
    )


def while_node(g: Graph, x: Sequence[int], condition: int, body: int) -> list[int]:
    return g.node(WHILE, x, [g.tensors[t] for t in x], WhileOptions(condition, body))


def if_node(g: Graph, x: Sequence[int], then: int, otherwise: int, *results: int) -> list[int]:
    return g.node(IF, x, [g.tensors[t] for t in results], IfOptions(then, otherwise))


def int32(value: int) -> Array:
    return np.array(value, np.int32)


def below(limit: int, at: int = 0) -> Part:
    """The condition that an int32 variable is less than a limit."""
    return lambda g, x: g.op(LESS, [x[at], g.const(int32(limit))], NoOptions())


def plus(g: Graph, a: int, b: int) -> int:
    return g.op(ADD, [a, b], AddOptions())


def times(g: Graph, a: int, b: int) -> int:
    return g.op(MUL, [a, b], MulOptions())


def next_(g: Graph, i: int) -> int:
    return plus(g, i, g.const(int32(1)))


def prepared(model_: Model, feeds: Sequence[Array], delegates: Sequence[CLDelegate]) -> Interpreter:
    """An interpreter with its inputs set, or with none if there are no feeds."""
    interpreter = Interpreter(model_, delegates=delegates)
    details = interpreter.get_input_details() if feeds else []
    for detail, feed in zip(details, feeds, strict=True):
        interpreter.resize_tensor_input(detail["index"], feed.shape)
    interpreter.allocate_tensors()
    for detail, feed in zip(details, feeds, strict=True):
        interpreter.set_tensor(detail["index"], feed)
    return interpreter


def outputs(interpreter: Interpreter) -> list[Array]:
    interpreter.invoke()
    return [np.asarray(interpreter.get_tensor(detail["index"])) for detail in interpreter.get_output_details()]


def check(
    model_: Model, feeds: Sequence[Array], expected: Sequence[Array] = (), *, claimed: bool = True, **options: Any
) -> Interpreter:
    """Runs twice and compares with what is expected, or with LiteRT; ``claimed``: all of it is on the device."""
    interpreter = prepared(model_, feeds, [CLDelegate(**options)])
    report = interpreter.delegation_report()
    if claimed:
        assert [row for row in report.nodes if not row.claimed] == []
        assert {row.partition for row in report.nodes if row.op in ("WHILE", "IF")} == {0}
    expected = expected or oracle.run(write(model_), feeds)
    for _ in range(2):
        for got, wanted in zip(outputs(interpreter), expected, strict=True):
            compare.assert_close(got, wanted, compare.DEVICE.get(wanted.dtype.name, 0.0))
    return interpreter


def reasons(interpreter: Interpreter) -> dict[str, str]:
    """Why the CPU runs what it runs, by operator."""
    return {row.op: row.reason for row in interpreter.delegation_report().nodes if not row.claimed}
