"""Models with resource variables: read and assigned in order, in bodies, and by way of handles."""

from collections.abc import Callable, Sequence

import numpy as np

from litecl.interpreter.graph import Model, Subgraph, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.compare import GREATER, LESS
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.control import (
    CALL_ONCE,
    IF,
    WHILE,
    CallOnceOptions,
    IfOptions,
    WhileOptions,
)
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.pack import PACK, PackOptions
from litecl.interpreter.ops.reduce import SUM, ReducerOptions
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.unary import NEG, TANH
from litecl.interpreter.ops.variables import ASSIGN_VARIABLE, READ_VARIABLE, VAR_HANDLE, VarHandleOptions
from litecl.interpreter.schema import TensorType
from support.build import Graph, model, randn

RNG = np.random.default_rng(17)
NONE = NoOptions()
SHAPE = (2, 6)
FLOAT = TensorSpec(TensorType.FLOAT32, SHAPE)
INT32 = TensorType.INT32
RESOURCE = TensorSpec(TensorType.RESOURCE, ())


def handle(g: Graph, name: str) -> int:
    (made,) = g.node(VAR_HANDLE, [], [RESOURCE], VarHandleOptions("", name))
    return made


def read(g: Graph, name: str, spec: TensorSpec = FLOAT) -> int:
    (value,) = g.node(READ_VARIABLE, [handle(g, name)], [spec], NONE)
    return value


def assign(g: Graph, name: str, value: int) -> None:
    g.node(ASSIGN_VARIABLE, [handle(g, name), value], [], NONE)


def add(g: Graph, a: int, b: int) -> int:
    return g.op(ADD, [a, b], AddOptions())


def tanh(g: Graph, x: int) -> int:
    return g.op(TANH, [x], NONE)


def is_positive(g: Graph, x: int) -> int:
    total = g.op(SUM, [x, g.const(np.int32([0, 1]))], ReducerOptions())
    return g.op(GREATER, [total, g.const(np.float32(0))], NONE)


def dense(g: Graph, x: int) -> int:
    weights = g.const(randn(RNG, SHAPE[1], SHAPE[1], scale=0.4))
    return g.op(FULLY_CONNECTED, [x, weights, g.const(randn(RNG, SHAPE[1]))], FullyConnectedOptions())


def initialised(build: Callable[[Graph], Sequence[int]], names: str, *inner: Subgraph) -> Model:
    """A main graph of one input, before which variables of one letter get their first values."""
    g, first = Graph(), Graph("first")
    g.node(CALL_ONCE, (), (), CallOnceOptions(1 + len(inner)))
    for name in names:
        assign(first, name, first.const(randn(RNG, *SHAPE)))
    return model(g.build(*build(g)), *inner, first.build())


def accumulated(g: Graph) -> list[int]:
    x = g.input(SHAPE)
    total = tanh(g, add(g, read(g, "a"), x))
    assign(g, "a", total)
    return [g.op(NEG, [total], NONE)]


def ordered(g: Graph) -> list[int]:
    """Reads before, between and after assignments, of the old values and the new."""
    x = g.input(SHAPE)
    before = read(g, "a")
    assign(g, "a", tanh(g, add(g, before, x)))
    between = read(g, "a")
    assign(g, "a", dense(g, between))
    after = read(g, "a")
    return [add(g, before, x), g.op(MUL, [before, between], MulOptions()), add(g, after, before), between]


def swapped(g: Graph) -> list[int]:
    """Two variables change places; a third gets what is fed, a fourth a constant, and a fifth what another has."""
    x = g.input(SHAPE)
    a, b, c, d, e = (read(g, name) for name in "abcde")
    for name, value in zip("abcde", (b, a, x, g.const(randn(RNG, *SHAPE)), c), strict=True):
        assign(g, name, value)
    same = tanh(g, add(g, a, x))
    assign(g, "d", same)
    assign(g, "e", same)
    return [add(g, a, c), add(g, b, add(g, d, e)), same]


def ring(g: Graph) -> list[int]:
    """The last rows that were heard, as streaming models keep them."""
    x, rows = g.input((1, 6)), read(g, "a")
    (heard,) = g.node(CONCATENATION, [rows, x], [TensorSpec(TensorType.FLOAT32, (3, 6))], ConcatenationOptions(0))
    size, start = g.const(np.int32([2, 6])), g.const(np.int32([1, 0]))
    assign(g, "a", g.op(SLICE, [heard, start, size], NONE))
    return [dense(g, heard)]


def joined(g: Graph) -> list[int]:
    """What is fed is part of what is assigned."""
    x, before = g.input((1, 6)), read(g, "a")
    rows = TensorSpec(TensorType.FLOAT32, SHAPE)
    (now,) = g.node(CONCATENATION, [x, tanh(g, x)], [rows], ConcatenationOptions(0))
    assign(g, "a", now)
    return [dense(g, before)]


GRAPHS = {
    "joined": ("a", joined),
    "accumulated": ("a", accumulated),
    "ordered": ("a", ordered),
    "swapped": ("abcde", swapped),
    "ring": ("a", ring),
}


def looped(*, through: bool) -> Model:
    """A body that reads and assigns a variable, an inner branch that may assign another; ``through``: by handles."""

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        a = x[2] if through else handle(g, "a")
        (before,) = g.node(READ_VARIABLE, [a], [FLOAT], NONE)
        now = tanh(g, add(g, before, x[1]))
        g.node(ASSIGN_VARIABLE, [a, now], [], NONE)
        (chosen,) = g.node(IF, [is_positive(g, now), now], [FLOAT], IfOptions(3, 4))
        grown = g.op(ADD, [x[0], g.const(np.int32(1))], AddOptions())
        return [grown, g.op(NEG, [chosen], NONE), *x[2:]]

    def graphs(name: str) -> tuple[Graph, list[int]]:
        g = Graph(name)
        kinds = [((), INT32), (SHAPE, TensorType.FLOAT32), *([((), TensorType.RESOURCE)] if through else [])]
        return g, [g.input(*kind) for kind in kinds]

    condition, c = graphs("condition")
    less = condition.build(condition.op(LESS, [c[0], condition.const(np.int32(3))], NONE))
    inner, x = graphs("body")
    whole = inner.build(*body(inner, x))
    then, otherwise = Graph("then"), Graph("else")
    given = then.input(SHAPE)
    old = read(then, "b")
    assign(then, "b", add(then, tanh(then, old), given))
    chosen = [then.build(add(then, old, given)), otherwise.build(dense(otherwise, otherwise.input(SHAPE)))]

    def main(g: Graph) -> list[int]:
        start = [g.const(np.int32(0)), g.input(SHAPE), *([handle(g, "a")] if through else [])]
        results = g.node(WHILE, start, [g.tensors[t] for t in start], WhileOptions(1, 2))
        return [results[1], read(g, "a"), tanh(g, read(g, "b"))]

    return initialised(main, "ab", less, whole, *chosen)


def cached() -> Model:
    """A loop that writes a row of a variable at every step, and reads all of it."""
    state = TensorSpec(TensorType.FLOAT32, (5, 6))

    def graph(name: str) -> tuple[Graph, int, int]:
        g = Graph(name)
        return g, g.input((), INT32), g.input((1, 6))

    condition, i, _ = graph("condition")
    less = condition.build(condition.op(LESS, [i, condition.const(np.int32(4))], NONE))
    body, i, x = graph("body")
    cache = read(body, "k", state)
    place = body.op(PACK, [i, body.const(np.int32(0))], PackOptions(values_count=2))
    assign(body, "k", body.op(DYNAMIC_UPDATE_SLICE, [cache, x, place], NONE))
    seen = body.op(SUM, [read(body, "k", state), body.const(np.int32([0]))], ReducerOptions(keep_dims=True))
    following = body.op(ADD, [i, body.const(np.int32(1))], AddOptions())
    whole = body.build(following, tanh(body, add(body, seen, x)))
    first, g = Graph("first"), Graph()
    assign(first, "k", first.const(randn(RNG, 5, 6)))
    g.node(CALL_ONCE, (), (), CallOnceOptions(3))
    start = [g.const(np.int32(0)), g.input((1, 6))]
    results = g.node(WHILE, start, [g.tensors[t] for t in start], WhileOptions(1, 2))
    return model(g.build(results[1], read(g, "k", state)), less, whole, first.build())


def called() -> Model:
    """A subgraph that runs twice, with a constant as its result: it is run for what it assigns."""
    inner = Graph("inner")
    given = inner.input(SHAPE)
    assign(inner, "a", tanh(inner, add(inner, read(inner, "a"), given)))
    constant = inner.build(inner.const(np.ones(SHAPE, np.float32)))

    def main(g: Graph) -> list[int]:
        x = g.input(SHAPE)
        positive = is_positive(g, x)
        before = read(g, "a")
        (one,) = g.node(IF, [positive, x], [FLOAT], IfOptions(1, 1))
        between = read(g, "a")
        (again,) = g.node(IF, [positive, add(g, x, one)], [FLOAT], IfOptions(1, 1))
        return [before, between, add(g, again, read(g, "a"))]

    return initialised(main, "a", constant)


MODELS = {
    **{name: (lambda names=names, build=build: initialised(build, names)) for name, (names, build) in GRAPHS.items()},
    "looped": lambda: looped(through=False),
    "looped through handles": lambda: looped(through=True),
    "called": called,
    "cached": cached,
}
