"""Loops whose body updates part of one variable and hands both on, in their places or in each other's.

An iteration is a function of the variables before it, so what is expected follows from numpy. LiteRT, which
copies outputs over variables one by one, computes something else for some of them (docs/differences.md).
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.slice import SLICE
from support import devices, oracle
from support.build import Graph
from support.loop_models import (
    FLOAT,
    INT,
    State,
    below,
    check,
    int32,
    next_,
    one_element,
    outputs,
    prepared,
    while_model,
)
from support.modes import in_every_mode

pytestmark = [
    pytest.mark.opencl,
    pytest.mark.filterwarnings("ignore::litecl.interpreter.errors.DifferenceWarning"),
]
NONE = NoOptions()
STATE: State = [((), INT), ((6,), FLOAT), ((6,), FLOAT)]
FEEDS = (int32(0), np.float32([0.5, 1.5, 2.5, 3.5, 4.5, 5.5]), -np.float32([1, 2, 3, 4, 5, 6]))
Pair = tuple[Any, Any]


class InGraph:
    """Builds bodies from nodes."""

    def __init__(self, graph: Graph, i: int) -> None:
        self._graph, self._at = graph, one_element(graph, i)

    def put(self, x: int, value: Any) -> int:
        """Return x with another element at i."""
        update = value if isinstance(value, int) else self._graph.const(np.float32([value]))
        return self._graph.op(DYNAMIC_UPDATE_SLICE, [x, update, self._at], NONE)

    def get(self, x: int) -> int:
        """Return the element of x at i."""
        return self._graph.op(SLICE, [x, self._at, self._graph.const(np.int32([1]))], NONE)


class InNumpy:
    """The same, as arrays."""

    def __init__(self, i: int) -> None:
        self._at = slice(i, i + 1)

    def put(self, x: Array, value: Any) -> Array:
        result = x.copy()
        result[self._at] = value
        return result

    def get(self, x: Array) -> Array:
        return x[self._at]


def _chained(on: Any, a: Any, b: Any) -> Pair:
    first = on.put(a, 7.0)
    return first, on.put(first, 8.0)


def _twice(on: Any, a: Any, b: Any) -> Pair:
    both = on.put(a, 7.0)
    return both, both


BODIES: dict[str, Callable[[Any, Any, Any], Pair]] = {
    "swapped": lambda on, a, b: (b, a),
    "updated and swapped": lambda on, a, b: (on.put(b, 7.0), a),
    "swapped and updated": lambda on, a, b: (b, on.put(a, 7.0)),
    "both updated, swapped": lambda on, a, b: (on.put(b, 7.0), on.put(a, 8.0)),
    "updated, and as it was": lambda on, a, b: (on.put(a, 7.0), a),
    "as it was, and updated": lambda on, a, b: (a, on.put(a, 7.0)),
    "updated in two ways": lambda on, a, b: (on.put(b, 7.0), on.put(b, 8.0)),
    "updated by each other": lambda on, a, b: (on.put(a, on.get(b)), on.put(b, on.get(a))),
    "updated by each other, swapped": lambda on, a, b: (on.put(b, on.get(a)), on.put(a, on.get(b))),
    "one after the other": _chained,
    "one for both": _twice,
}
OF_LITERT = ("swapped", "updated and swapped", "updated, and as it was")
"""Those that LiteRT computes otherwise."""


def _model(body: Callable[[Any, Any, Any], Pair], trips: int) -> Any:
    def part(g: Graph, x: Sequence[int]) -> list[int]:
        return [next_(g, x[0]), *body(InGraph(g, x[0]), x[1], x[2])]

    return while_model(STATE, below(trips), part)


def _expected(body: Callable[[Any, Any, Any], Pair], trips: int) -> list[Array]:
    _, a, b = FEEDS
    for i in range(trips):
        a, b = body(InNumpy(i), a, b)
    return [int32(trips), a, b]


@in_every_mode
@pytest.mark.parametrize("trips", [1, 3, 4])
@pytest.mark.parametrize("name", BODIES)
def test_devices(name: str, trips: int, mode: dict[str, Any]) -> None:
    check(_model(BODIES[name], trips), FEEDS, _expected(BODIES[name], trips), strict=True, **mode)


@pytest.mark.parametrize("trips", [1, 3, 4])
@pytest.mark.parametrize("name", BODIES)
def test_interpreter(name: str, trips: int) -> None:
    model_, expected = _model(BODIES[name], trips), _expected(BODIES[name], trips)
    for got, wanted in zip(outputs(prepared(model_, FEEDS, [])), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
    theirs = oracle.run(write(model_), FEEDS)
    same = all(np.array_equal(a, b) for a, b in zip(theirs, expected, strict=True))
    assert same == (name not in OF_LITERT), "LiteRT's behaviour has changed: see docs/differences.md"


@pytest.mark.parametrize("name", BODIES)
def test_as_on_a_gpu(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """One group runs such loops; OpenCL's memory model is all that differs from a CPU."""
    options = devices.as_on_a_gpu(monkeypatch, tmp_path_factory.getbasetemp() / "swapped")
    check(_model(BODIES[name], 3), FEEDS, _expected(BODIES[name], 3), strict=True, **options)


def _rows_of_a_list(trips: int) -> Any:
    """Return a loop that writes a row to a list that has none."""

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        place = g.const(np.int32([0, 0]))
        update = g.node(DYNAMIC_UPDATE_SLICE, [x[1], g.const(np.ones((1, 3), np.float32)), place], [_LIST], NONE)
        return [next_(g, x[0]), *update]

    return while_model([((), INT), ((0, 3), FLOAT)], below(trips), body)


_LIST = TensorSpec(FLOAT, (0, 3))


@in_every_mode
def test_a_loop_over_no_rows(mode: dict[str, Any]) -> None:
    feeds = (int32(0), np.zeros((0, 3), np.float32))
    check(_rows_of_a_list(0), feeds, feeds, claimed=False, **mode)
    with pytest.raises(RuntimeError, match="SizeOfDimension"):
        oracle.run(write(_rows_of_a_list(0)), feeds)
    with pytest.raises(ModelError, match=r"DYNAMIC_UPDATE_SLICE: update \[1, 3\] is larger than \[0, 3\]"):
        check(_rows_of_a_list(1), feeds, feeds, claimed=False, **mode)
