"""The cases of TFLite's own tests of WHILE and IF."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from litecl.interpreter.graph import Array, Model, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.compare import LESS_EQUAL
from litecl.interpreter.ops.control import IF, WHILE, IfOptions, WhileOptions
from litecl.interpreter.ops.fill import FILL
from litecl.interpreter.ops.pad import PAD
from litecl.interpreter.ops.reduce import SUM, ReducerOptions
from litecl.interpreter.ops.tile import TILE
from litecl.interpreter.schema import TensorType
from support.build import Graph, model
from support.loop_models import Part, State, plus, subgraph, times

NONE = NoOptions()
LARGE = 100_000


@dataclass(frozen=True)
class Case:
    """A subgraph and its inputs. limit: the loop continues while the first integer is at most this.

    while_reason, if_reason: the report's reasons why WHILE and IF stay on the CPU; None if they run on the device.
    read: how many of the results are outputs of the model.
    """

    name: str
    feeds: tuple[Array, ...]
    part: Part
    limit: float
    while_reason: str | None = None
    if_reason: str | None = None
    read: int | None = None
    at: int = 0

    @property
    def state(self) -> State:
        """The shapes and types of the inputs."""
        return [(feed.shape, TensorType.of(feed.dtype)) for feed in self.feeds]

    def loop(self) -> Model:
        """The subgraph as the body of a loop."""

        def condition(g: Graph, x: Sequence[int]) -> int:
            return g.op(LESS_EQUAL, [x[self.at], g.const(np.array([self.limit], self.feeds[self.at].dtype))], NONE)

        def main(g: Graph, x: Sequence[int]) -> list[int]:
            return g.node(WHILE, x, [g.tensors[t] for t in x], WhileOptions(1, 2))[: self.read]

        parts = subgraph("cond", self.state, condition), subgraph("body", self.state, self.part)
        return model(subgraph("main", self.state, main), *parts)

    def branch(self) -> Model:
        """The subgraph as both branches of an IF."""

        def main(g: Graph, x: Sequence[int]) -> list[int]:
            return g.node(IF, x, [g.tensors[t] for t in x[1:]], IfOptions(1, 2))[: self.read]

        branches = [subgraph(name, self.state, self.part) for name in ("then", "else")]
        return model(subgraph("main", [((1,), TensorType.BOOL), *self.state], main), *branches)


def ints(*values: int) -> Array:
    return np.array(values, np.int32)


def add(g: Graph, x: int, *values: int) -> int:
    """x plus a constant"""
    return plus(g, x, g.const(np.array(values, TensorType(g.tensors[x].type).dtype)))


def unknown(g: Graph, op: Any, *inputs: int) -> int:
    """A node whose output's shape depends on the values of an input."""
    type_ = g.tensors[inputs[1 if op is FILL else 0]].type
    return g.node(op, inputs, [TensorSpec(type_, ())], NONE)[0]


def quadrupled(g: Graph, x: Sequence[int]) -> list[int]:
    total = plus(g, *x)
    return [plus(g, total, total), times(g, total, g.const(np.float32([2])))]


def input_is_output(g: Graph, x: Sequence[int]) -> list[int]:
    return [add(g, x[0], 1), plus(g, x[1], x[2]), x[2]]


def all_in_place(g: Graph, x: Sequence[int]) -> list[int]:
    """Return results that relate to their operands' memory in every possible way; the last one is a constant."""
    repeated = add(g, unknown(g, TILE, x[3], x[0]), 1)
    return [add(g, x[0], 1), add(g, add(g, x[1], 1), 1), unknown(g, TILE, x[2], x[0]), repeated, g.const(ints(1))]


def reallocated(g: Graph, x: Sequence[int]) -> list[int]:
    repeated = unknown(g, TILE, x[2], x[0])
    return [add(g, x[0], 1), plus(g, add(g, x[1], 1), repeated), repeated]


def deep(g: Graph, x: Sequence[int]) -> list[int]:
    following = add(g, x[0], 1)
    return [following, add(g, plus(g, following, x[1]), 1)]


def large(g: Graph, x: Sequence[int]) -> list[int]:
    total = g.op(SUM, [x[1], g.const(ints(0))], ReducerOptions(keep_dims=True))
    return [total, add(g, plus(g, x[0], x[1]), 4)]


def accumulated(g: Graph, x: Sequence[int]) -> list[int]:
    following = add(g, x[0], 1)
    return [following, plus(g, following, x[1])]


def padded(g: Graph, x: int) -> int:
    return g.op(PAD, [x, g.const(np.array([[1, 2]], np.int32))], NONE)


def pad_loop(g: Graph, x: Sequence[int]) -> list[int]:
    return [add(g, x[0], 1), padded(g, x[1])]


def pad_sharing(g: Graph, x: Sequence[int]) -> list[int]:
    longer = add(g, plus(g, x[0], x[2]), 1)
    return [add(g, add(g, x[0], 1), 1), longer, padded(g, longer)]


def growing(g: Graph, x: Sequence[int]) -> list[int]:
    return [add(g, x[0], 1), add(g, unknown(g, TILE, x[1], x[0]), 1), add(g, x[2], 1), add(g, x[3], 1)]


def aliases(g: Graph, x: Sequence[int]) -> list[int]:
    total = plus(g, plus(g, x[1], x[2]), plus(g, x[3], x[4]))
    return [add(g, x[0], 1), *(add(g, total, value) for value in (1, 2, 3, 3))]


def not_consumed(g: Graph, x: Sequence[int]) -> list[int]:
    return [plus(g, x[0], x[1]), unknown(g, TILE, x[0], x[2]), g.const(ints(1))]


def filled(g: Graph, x: Sequence[int]) -> list[int]:
    following = add(g, x[2], 1)
    return [x[0], unknown(g, FILL, following, x[0]), following]


WORD = np.array(b"A", np.object_)
LIST = np.arange(LARGE, dtype=np.int32)


def grows(output: int, before: str, after: str = "?") -> str:
    return f"WHILE: output {output} of the body changes shape {before} -> {after}"


def known_late(output: int) -> str:
    return f"IF: output {output} has a shape that is known only at run time"


CASES = (
    Case("TestWithXNNPACK", (np.float32([1]), np.float32([1])), quadrupled, 100),
    Case("TestInputIsOutput", (ints(1), ints(1), ints(1)), input_is_output, 3),
    Case("TestInputIsOutputButDifferent", (ints(1), ints(2)), lambda g, x: [x[1], plus(g, *x)], 3),
    Case("TestFlexOutput", (ints(1), ints(2, 3)), lambda g, x: [add(g, x[0], 1), add(g, x[1], 1)], 3),
    Case("TestCounterOnly", (ints(1),), lambda g, x: add(g, x[0], 1), 3),
    Case("TestAllCases", tuple(map(ints, (2, 1, 2, 2, 1))), all_in_place, 3, grows(2, "[1]"), known_late(2)),
    Case("TestStaticUnconsumedOutputs", (ints(1), ints(2), ints(2)), input_is_output, 3, read=2),
    Case(
        "TestDynamicOpTriggersAllocationOfUnsedInput",
        (ints(2), ints(1), ints(2)),
        reallocated,
        2,
        grows(1, "[1]"),
        known_late(1),
    ),
    *(Case(f"TestStaticInPlace {i}", (ints(0), ints(1)), deep, i + 1) for i in range(5)),
    Case("TestStaticInPlaceLarge", (ints(1), np.ones(10_000, np.int32)), large, 60_000),
    *(Case(f"TestTriangularNumberSequence {i}", (ints(1), ints(1)), accumulated, i) for i in range(7)),
    Case("TestTriangularNumberSequenceWithShallowCopy", (ints(1), LIST), accumulated, 6),
    Case("TestPadLoop", (ints(1), ints(5, 7)), pad_loop, 4, grows(1, "[2]", "[5]")),
    Case(
        "TestDynamicBodyWithSharingEarlyExit",
        (ints(1), ints(1, 2, 3), LIST, ints(4)),
        growing,
        0,
        grows(1, "[3]"),
        known_late(1),
    ),
    Case(
        "TestDynamicBodyWithSharing",
        (ints(1), ints(1, 2, 3), LIST, LIST),
        growing,
        3,
        grows(1, "[3]"),
        known_late(1),
    ),
    Case("TestDynamicBodyWithSharingAndAliases", tuple(map(ints, range(5))), aliases, 0),
    Case(
        "TestOutputNotConsumed",
        (ints(1), ints(2), ints(3)),
        not_consumed,
        11,
        grows(1, "[1]"),
        known_late(1),
        read=1,
    ),
    Case("TestPadLoopWithSharing", (ints(1), ints(2), ints(3, 4)), pad_sharing, 3, grows(1, "[1]", "[2]")),
    Case("TestPadLoopWithShallowCopy", (ints(1), LIST), pad_loop, 3, grows(1, "[100000]", "[100003]")),
    Case("TestLoopWithDynamicTensor", (WORD, WORD, ints(1)), filled, 3, grows(1, "[]"), known_late(1), at=2),
)
