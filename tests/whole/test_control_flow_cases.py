"""The cases of TFLite's own tests of WHILE and IF, rebuilt, on the interpreter and on a device, against LiteRT.

Those tests give the same subgraphs to both: as the body of a loop that goes on while its first integer is at most some
limit, and as both branches of an IF.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model, TensorSpec
from litecl.interpreter.ops.control import IF, IfOptions
from litecl.interpreter.ops.pad import PAD
from litecl.interpreter.schema import TensorType
from support import compare, devices, oracle
from support.build import Graph, model
from support.control_cases import CASES, LARGE, Case, grows, ints, known_late, unknown
from support.loop_models import Part, State, outputs, plus, prepared, reasons, subgraph, times

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


BACKENDS: dict[str, dict[str, Any] | None] = {
    "interpreter": None,
    "device": {},
    "queued": {"queue_loops": True},
    "OpenCL": {"device": devices.tested()[0]},
}
on_every_backend = pytest.mark.parametrize("options", BACKENDS.values(), ids=BACKENDS)


def run(model_: Model, feeds: Sequence[Array], options: dict[str, Any] | None, reason: str | None, op: str) -> None:
    """Compare three independent invokes with LiteRT, and the reason with the expected one."""
    interpreter = prepared(model_, feeds, [] if options is None else [CLDelegate(**options)])
    if options is not None:
        assert reasons(interpreter).get(op) == reason
        if reason is None:
            assert reasons(interpreter) == {}
    # LiteRT takes a pointer for a string where an array of objects has no axis.
    expected = oracle.run(write(model_), [x.astype("S") if x.dtype == np.object_ else x for x in feeds])
    for _ in range(3):
        for got, wanted in zip(outputs(interpreter), expected, strict=True):
            compare.assert_close(got, wanted, compare.DEVICE.get(wanted.dtype.name, 0.0))


@on_every_backend
@each_case
def test_loop(case: Case, options: dict[str, Any] | None) -> None:
    run(case.loop(), case.feeds, options, case.while_reason, "WHILE")


@on_every_backend
@each_case
@pytest.mark.parametrize("condition", [True, False])
def test_branch(case: Case, condition: bool, options: dict[str, Any] | None) -> None:
    run(case.branch(), (np.array([condition]), *case.feeds), options, case.if_reason, "IF")


@on_every_backend
@pytest.mark.parametrize("condition", [True, False])
@pytest.mark.parametrize("shapes", [((2,), (1, 2)), ((LARGE,), (1,))], ids=str)
def test_sum_or_product(condition: bool, shapes: tuple[Any, Any], options: dict[str, Any] | None) -> None:
    """SimpleIfTest"""
    feeds = [np.array([condition]), *(np.arange(np.prod(shape), dtype=np.int32).reshape(shape) for shape in shapes)]
    state: State = [(shape, TensorType.INT32) for shape in shapes]

    def main(g: Graph, x: Sequence[int]) -> list[int]:
        return g.node(IF, x, [TensorSpec(TensorType.INT32, ())], IfOptions(1, 2))

    branches = [subgraph("then", state, lambda g, x: plus(g, *x)), subgraph("else", state, lambda g, x: times(g, *x))]
    run(model(subgraph("main", [((1,), TensorType.BOOL), *state], main), *branches), feeds, options, None, "IF")


@on_every_backend
@pytest.mark.parametrize("condition", [True, False])
def test_sum_or_longer(condition: bool, options: dict[str, Any] | None) -> None:
    """DynamicSubgraphIfTest: an input says how far one of the branches pads."""
    state: State = [((2,), TensorType.INT32), ((1, 2), TensorType.INT32)]

    def main(g: Graph, x: Sequence[int]) -> list[int]:
        return g.node(IF, x, [TensorSpec(TensorType.INT32, ())], IfOptions(1, 2))

    parts: list[Part] = [lambda g, x: plus(g, *x), lambda g, x: unknown(g, PAD, *x)]
    branches = [subgraph("branch", state, part) for part in parts]
    model_ = model(subgraph("main", [((1,), TensorType.BOOL), *state], main), *branches)
    run(model_, [np.array([condition]), ints(5, 7), np.array([[1, 2]], np.int32)], options, known_late(0), "IF")


@pytest.mark.parametrize("make", [Case.loop, Case.branch], ids=["WHILE", "IF"])
def test_another_shape_is_another_decision(make: Callable[[Case], Model]) -> None:
    """The second half of TestStaticUnconsumedOutputs: a longer input makes the loop's state change its shape."""
    case = next(case for case in CASES if case.name == "TestStaticUnconsumedOutputs")
    model_, ahead = make(case), [] if make is Case.loop else [np.array([True])]
    interpreter = prepared(model_, [*ahead, *case.feeds], [CLDelegate()])
    for last in (ints(2, 2), ints(2), ints(3, 4, 5)):
        feeds = [*ahead, *case.feeds[:2], last]
        interpreter.resize_tensor_input(len(feeds) - 1, last.shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(len(feeds) - 1, last)
        static = make is Case.branch or last.size == 1
        assert reasons(interpreter).get("WHILE") == (None if static else grows(1, "[1]", str(list(last.shape))))
        for got, wanted in zip(outputs(interpreter), oracle.run(write(model_), feeds), strict=True):
            compare.assert_close(got, wanted, 0.0)
