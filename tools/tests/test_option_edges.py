"""The search for wrong results at the edges of options: a part of it, and that it finds what is wrong."""

from typing import Any

import numpy as np
import pytest

from litecl.cases.tables import TABLES
from litecl.interpreter.errors import ModelError
from support import devices
from tools import option_edges
from tools.edge_peers import Outcome, Peer, outcome_of, serve_device
from tools.option_edges import Edge, Findings, difference

# Of one case of an operator for each set of types so many edges are left out, and more where PoCL compiles.
EVERY = {"native": 24}
EVERY_BUILT = 240


@pytest.mark.nightly
@pytest.mark.parametrize("device", devices.with_native(), ids=devices.named)
def test_edges(device: Any) -> None:
    name = devices.named(device)
    every = EVERY.get(name, EVERY_BUILT)
    findings = option_edges.search(option_edges.chosen(1), Peer(serve_device, name), every=every)
    assert not findings.faults, "\n".join(findings.faults[:5])
    assert not findings.by_litert, "\n".join(findings.by_litert[:5])
    assert min(findings.counts["computed"], findings.counts["computed by LiteRT"]) > 2000 / every


X, Y = np.float32([1, 2]), np.float32([1, np.nan])


@pytest.mark.parametrize(
    "got, wanted, said",
    [
        ([X], [X], ""),
        ([X], [X + np.float32(1e-6)], ""),
        ([X], [Y], "1 of 2 elements differ, first 2.0 for nan"),
        ([Y], [Y], ""),
        ([X], [X[None]], "float32[2], expected float32[1, 2]"),
        ([np.int32([1])], [np.int32([2])], "1 of 1 elements differ"),
        ("refused: ModelError", "refused: ShapeError", ""),
        ("refused: ModelError", [X], "refused: ModelError, expected outputs"),
        ("untyped: KeyError: 5", "refused: ModelError", "untyped: KeyError: 5, expected refused: ModelError"),
        ("refused: LimitError", [X], ""),
    ],
)
def test_differences(got: Outcome, wanted: Outcome, said: str) -> None:
    assert difference(got, wanted, {"float32": 1e-5}) == said


class Answer:
    """Answers every edge alike."""

    def __init__(self, *answer: Outcome) -> None:
        self._answer = answer

    def outcomes(self, *_: Any) -> Any:
        return self._answer or None


@pytest.mark.parametrize(
    "peers, faults",
    [
        ((Answer([X]), Answer([X])), []),
        ((Answer([X]), Answer([X + 1])), ["an edge: the device: 2 of 2 elements differ, first 2.0 for 1.0"]),
        ((Answer([X]), Answer()), ["an edge: the device died or hung"]),
        ((Answer("untyped: KeyError"), Answer("refused: ModelError")), ["an edge: the interpreter: untyped: KeyError"]),
        (
            (Answer([X]), Answer("refused: DelegateError")),
            ["an edge: the device: refused: DelegateError, expected outputs"],
        ),
    ],
)
def test_faults_are_told(peers: Any, faults: list[str]) -> None:
    findings = Findings()
    option_edges.compare(Edge("an edge", TABLES[0].CASES[0], differs=False), findings, *peers)
    assert findings.faults == faults


def test_an_error_is_typed_or_told() -> None:
    assert issubclass(ModelError, ValueError)
    assert outcome_of(b"no model", []) == "refused: ModelError"
