"""Patterns are found in any graph that can be asked for producers, consumers and operands."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from litecl.interpreter.graph import Array
from litecl.interpreter.match import AnyTensor, Behind, Constant, Match, Number, Pattern, Tree, match, match_node


@dataclass(frozen=True)
class Step:
    op: str
    reads: tuple[str | None, ...]
    makes: tuple[str, ...]


@dataclass(frozen=True)
class Steps:
    """Steps over tensors that are names; ``Add`` commutes."""

    steps: Sequence[Step]
    known: dict[str, Array] = field(default_factory=dict)

    def producer(self, tensor: str) -> Step | None:
        return next((step for step in self.steps if tensor in step.makes), None)

    def consumers(self, tensor: str) -> Sequence[Step]:
        return [step for step in self.steps for read in step.reads if read == tensor]

    def operands(self, node: Step) -> Sequence[str | None]:
        return node.reads

    def results(self, node: Step) -> Sequence[str]:
        return node.makes

    def is_a(self, node: Step, op: object) -> bool:
        return node.op == op

    def commutes(self, node: Step) -> bool:
        return node.op == "Add"

    def value(self, tensor: str) -> Array | None:
        return self.known.get(tensor)


GRAPH = Steps(
    (
        Step("Neg", ("x",), ("n",)),
        Step("Add", ("x", "n"), ("s",)),
        Step("Split", ("s", "half"), ("a", "b")),
        Step("Conv", ("b", "w", None), ("c",)),
        Step("Scale", ("c", "half"), ("d",)),
        Step("Add", ("two", "d"), ("e",)),
        Step("Exp", ("e",), ("y",)),
    ),
    {"half": np.full(3, 0.5), "two": np.array(2.0), "w": np.array([1.0, 2.0])},
)
X, NEG = AnyTensor("x"), Pattern("Neg", [AnyTensor("x")])
CONV = Pattern("Conv", [AnyTensor("image"), Constant("weights"), ...])

FOUND: dict[str, tuple[str, Tree, dict[str, str]]] = {
    "anything": ("x", X, {"x": "x"}),
    "in order": ("s", Pattern("Add", [X, NEG]), {"x": "x"}),
    "commuted": ("s", Pattern("Add", [NEG, X]), {"x": "x"}),
    "named": ("s", Pattern("Add", [X, AnyTensor("y")], name="sum"), {"x": "x", "y": "n", "sum": "s"}),
    "second result": ("b", Pattern("Split", [X, Number(0.5)], 1), {"x": "s"}),
    "further operands": ("c", CONV, {"image": "b", "weights": "w"}),
    "no operands but these": ("c", Pattern("Conv", [...]), {}),
    "behind nothing": ("c", Behind(("Scale", "Add"), CONV), {"image": "b", "weights": "w"}),
    "behind two": ("y", Pattern("Exp", [Behind(("Scale", "Add"), CONV)]), {"image": "b", "weights": "w"}),
}


@pytest.mark.parametrize(("tensor", "tree", "bound"), FOUND.values(), ids=FOUND)
def test_found(tensor: str, tree: Tree, bound: dict[str, str]) -> None:
    found = match(GRAPH, tree, tensor)
    assert found is not None
    assert found.tensors == bound


NOT_FOUND: dict[str, tuple[str, Tree]] = {
    "another operator": ("s", Pattern("Mul", [X, NEG])),
    "one name, two tensors": ("s", Pattern("Add", [X, X])),
    "fewer operands": ("s", Pattern("Add", [X])),
    "more operands": ("n", Pattern("Neg", [X, AnyTensor("y"), ...])),
    "another result": ("a", Pattern("Split", [X, AnyTensor("y")], 1)),
    "an absent operand": ("c", Pattern("Conv", [X, AnyTensor("w"), AnyTensor("bias")])),
    "another number": ("b", Pattern("Split", [X, Number(0.25)], 1)),
    "several numbers": ("c", Pattern("Conv", [X, Number(1.0), ...])),
    "no constant": ("n", Pattern("Neg", [Constant("x")])),
    "behind others": ("y", Pattern("Exp", [Behind(("Add",), CONV)])),
    "no node": ("x", NEG),
}


@pytest.mark.parametrize(("tensor", "tree"), NOT_FOUND.values(), ids=NOT_FOUND)
def test_not_found(tensor: str, tree: Tree) -> None:
    assert match(GRAPH, tree, tensor) is None


def test_behind_what_alone_is_read() -> None:
    """What others read is not on the way, so that no tensor is visited twice: of 100 sums of a tensor with itself there
    are 2**100 ways to the first.
    """
    read_twice = Steps((*GRAPH.steps, Step("Neg", ("d",), ("z",))), GRAPH.known)
    assert match(read_twice, Pattern("Exp", [Behind(("Scale", "Add"), CONV)]), "y") is None
    doubled = Steps([Step("Add", (f"{i}", f"{i}"), (f"{i + 1}",)) for i in range(100)])
    assert match(doubled, Behind(("Add",), CONV), "100") is None


def test_nodes_last_first() -> None:
    """From a node, with a name that is bound already."""
    split = GRAPH.steps[2]
    tree = Pattern("Split", [Pattern("Add", [X, NEG]), ...])
    found: Match[str, Step] | None = match_node(GRAPH, tree, split, x="x")
    assert found is not None
    assert [step.op for step in found.nodes] == ["Split", "Add", "Neg"]
    assert ("x" in found, found["x"]) == (True, "x")
    assert match_node(GRAPH, tree, split, x="n") is None
