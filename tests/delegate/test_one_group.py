"""Small loops and branches of a GPU as one launch of one group, on whatever device there is."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.cl_op import Launch, Local, Operand
from litecl.delegate.opencl.devices import programs
from litecl.delegate.plan.grouping import gathered
from litecl.delegate.plan.steps import Loop, OneGroup, Work
from litecl.delegate.target import own
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import KernelBuildError, ModelError
from litecl.interpreter.graph import Model, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.compare import GREATER, LESS
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.reduce import SUM, ReducerOptions
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.ops.unary import ABS, TANH
from litecl.interpreter.schema import Padding
from support import devices
from support.build import Graph, model, randn
from support.loop_models import (
    BOOL,
    COUNTER,
    FLOAT,
    INT,
    State,
    below,
    check,
    growing,
    if_node,
    int32,
    next_,
    plus,
    subgraph,
    times,
    while_model,
    while_node,
)
from support.lowerings import CPU, GPU
from support.planned_gpu import GPUS, PlannedGpu

RNG = np.random.default_rng(8)


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Options of delegates that take the first device for a GPU."""
    devices.needs_groups()
    with pytest.MonkeyPatch.context() as patch:
        yield devices.as_on_a_gpu(patch, tmp_path_factory.mktemp("programs"))


def costs(interpreter: Interpreter) -> tuple[int, int]:
    """Return the launches and waits of the last run."""
    counters = interpreter.delegation_report().counters
    return counters.kernel_launches, counters.host_syncs


def dense(trips: int, units: int) -> Model:
    """Return a loop over a product, its softmax and the sums of rows, which are read too."""
    weights = randn(RNG, units, units, scale=0.4)

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        y = g.op(FULLY_CONNECTED, [x[1], g.const(weights), None], FullyConnectedOptions())
        y = g.op(SOFTMAX, [g.op(TANH, [y], NoOptions())], SoftmaxOptions(2.0))
        total = g.op(SUM, [y, g.const(np.array([1], np.int32))], ReducerOptions(keep_dims=True))
        return [next_(g, x[0]), times(g, plus(g, y, x[1]), total)]

    return while_model([((), INT), ((3, units), FLOAT)], below(trips), body)


def halving() -> Model:
    """Return a loop whose trip count and branch depend on data: by a half or by a quarter less."""
    state: State = [((), INT), ((7,), FLOAT)]

    def largest(g: Graph, x: int) -> int:
        return g.op(SUM, [g.op(ABS, [x], NoOptions()), g.const(np.array([0], np.int32))], ReducerOptions())

    def goes_on(g: Graph, x: Sequence[int]) -> int:
        return g.op(GREATER, [largest(g, x[1]), g.const(np.float32(0.01))], NoOptions())

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        small = g.op(LESS, [largest(g, x[1]), g.const(np.float32(9))], NoOptions())
        return [next_(g, x[0]), *if_node(g, [small, x[1]], 3, 4, x[1])]

    return model(
        subgraph("main", state, lambda g, x: while_node(g, x, 1, 2)),
        subgraph("cond", state, goes_on),
        subgraph("body", state, body),
        subgraph("then", state[1:], lambda g, x: times(g, x[0], g.const(np.float32(0.5)))),
        subgraph("else", state[1:], lambda g, x: times(g, x[0], g.const(np.float32(0.75)))),
    )


def nested(outer: int, inner: int, rows: int) -> Model:
    """A loop in a loop; with many rows only the inner one is small."""
    state: State = [((), INT), ((5,), FLOAT), ((rows, 512), FLOAT)]
    weights = randn(RNG, 512, 512, scale=0.04)

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        _, y = while_node(g, [g.const(int32(0)), x[1]], 3, 4)
        big = g.op(FULLY_CONNECTED, [x[2], g.const(weights), None], FullyConnectedOptions())
        return [next_(g, x[0]), y, big]

    return model(
        subgraph("main", state, lambda g, x: while_node(g, x, 1, 2)),
        subgraph("cond", state, below(outer)),
        subgraph("body", state, body),
        subgraph("inner cond", COUNTER, below(inner)),
        subgraph("inner body", COUNTER, growing),
    )


def filled() -> Model:
    """Rows of a long array are written one by one, so what goes in and comes out is copied by many groups."""
    state: State = [((), INT), ((4096, 16), FLOAT), ((1, 16), FLOAT)]

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        at = g.op(DYNAMIC_UPDATE_SLICE, [x[1], x[2], g.const(np.array([5, 0], np.int32))], NoOptions())
        return [next_(g, x[0]), at, plus(g, x[2], g.const(np.float32(1)))]

    return while_model(state, below(6), body)


@pytest.mark.parametrize("trips", [0, 1, 10, 10_000])
def test_a_loop_is_one_launch_and_one_wait(trips: int, options: dict[str, Any]) -> None:
    """However often it runs."""
    interpreter = check(while_model(COUNTER, below(trips), growing), [int32(0), randn(RNG, 5)], **options)
    assert costs(interpreter) == (1, 1)
    assert "in one launch, by one group" in interpreter.delegation_report().partitions[0].loops[0]


@pytest.mark.parametrize("units", [3, 40])
def test_work_items_read_what_others_wrote(units: int, options: dict[str, Any]) -> None:
    """Products, rows and sums, whose kernels on a GPU otherwise share local memory."""
    assert costs(check(dense(9, units), [int32(0), randn(RNG, 3, units)], **options)) == (1, 1)


@pytest.mark.parametrize("scale", [0.0, 1.0, 20.0])
def test_data_decide(scale: float, options: dict[str, Any]) -> None:
    """When a loop ends, and which branch is taken."""
    assert costs(check(halving(), [int32(0), randn(RNG, 7, scale=scale)], **options)) == (1, 1)


@pytest.mark.parametrize("condition", [True, False])
def test_a_branch(condition: bool, options: dict[str, Any]) -> None:
    """Of a predicate that is fed."""
    state: State = [((), BOOL), ((4,), FLOAT)]
    model_ = model(
        subgraph("main", state, lambda g, x: if_node(g, x, 1, 2, x[1])),
        subgraph("then", state[1:], lambda g, x: plus(g, x[0], x[0])),
        subgraph("else", state[1:], lambda g, x: times(g, x[0], x[0])),
    )
    assert costs(check(model_, [np.array(condition), randn(RNG, 4)], **options)) == (1, 1)


@pytest.mark.parametrize(("outer", "inner"), [(0, 3), (1, 4), (4, 3), (5, 0)])
def test_small_loops_within_large_ones(outer: int, inner: int, options: dict[str, Any]) -> None:
    """The large loop is queued, its sets swapped by the host; the small one is one of its launches, under its flag."""
    feeds = [int32(0), randn(RNG, 5), randn(RNG, 1, 512)]
    report = check(nested(outer, inner, 1), feeds, **options).delegation_report()
    ways = sorted(way.partition("): ")[2] for way in report.partitions[0].loops)
    assert ways[0] == "in one launch, by one group"
    assert "queued under a flag" in ways[1]


def test_long_variables_are_copied_by_many(options: dict[str, Any]) -> None:
    """A long array is copied before and behind the loop, by launches of their own."""
    feeds = [int32(0), randn(RNG, 4096, 16), randn(RNG, 1, 16)]
    launches, waits = costs(check(filled(), feeds, **options))
    assert launches == 2
    assert waits == 1


@pytest.mark.parametrize("more", [{"queue_loops": True}, {"profile": True}], ids=str)
def test_queued_one_by_one(more: dict[str, Any], options: dict[str, Any]) -> None:
    """Where that is asked for, or every launch is to be timed."""
    assert costs(check(halving(), [int32(0), randn(RNG, 7)], **options, **more))[0] > 2


def test_too_many_iterations(options: dict[str, Any]) -> None:
    """A limit ends the loop with an error that names it; the next run begins anew."""
    model_, feeds = while_model(COUNTER, below(40), growing), [int32(0), randn(RNG, 5)]
    check(model_, feeds, max_loop_iterations=40, **options)
    interpreter = Interpreter(model_, delegates=[CLDelegate(max_loop_iterations=39, **options)])
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, int32(0))
    for _ in range(2):
        with pytest.raises(ModelError, match="39"):
            interpreter.invoke()
    interpreter.set_tensor(0, int32(1))
    interpreter.invoke()


def test_launches_take_over_where_linking_fails(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A runtime that cannot link queues the same launches."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise KernelBuildError("no linker")

    monkeypatch.setattr(programs.Programs, "region_kernel", refuse)
    report = check(halving(), [int32(0), randn(RNG, 7)], **options).delegation_report()
    assert report.counters.kernel_launches > 1
    assert not report.failures


def planned(model_: Model, name: str = "nvidia") -> PlannedGpu:
    """Return a GPU for which a model was planned."""
    device = PlannedGpu(name)
    Interpreter(model_, delegates=[CLDelegate(device=device, strict=True)]).allocate_tensors()
    return device


@pytest.mark.parametrize("name", GPUS)
def test_planned_as_one_launch(name: str) -> None:
    """10,000 iterations, on every GPU of the table; on a CPU nothing is gathered."""
    device = planned(while_model(COUNTER, below(10_000), growing), name)
    (plan,) = device.plans
    (part,) = plan.steps
    assert isinstance(part, OneGroup)


def works(*launches: Launch) -> Loop:
    """Return a loop of launches."""
    holds = Operand(TensorSpec(BOOL, ()))
    return Loop(0, 0, [], holds, [Work(0, launch) for launch in launches], swapped=[], trips=None)


@pytest.mark.parametrize(
    ("launch", "fits"),
    [
        (Launch("unary", "unary", (), (64,), (64,), flops=100, apart=True), True),
        (Launch("rows_local", "softmax_local", (Local(64),), (64,), (64,)), False),
        (Launch("lstm", "lstm", (), (64, 1), (64, 1)), False),
        (Launch("unary", "unary", (), (1 << 20,), (64,), apart=True), False),
        (Launch("gemm", "gemm", (), (64,), (64,), flops=10**8, apart=True), False),
    ],
    ids=["apart", "local memory", "barriers", "many work-items", "much arithmetic"],
)
def test_what_fits_a_group(launch: Launch, fits: bool) -> None:
    """Small launches whose work-items need nothing of their own group."""
    small = Launch("unary", "unary", (), (64,), (64,), apart=True)
    (part,) = own(GPU, gathered)([works(small, launch)], {}, lambda operand: (operand, 0))
    assert isinstance(part, OneGroup) == fits
    (part,) = own(CPU, gathered)([works(small)], {}, lambda operand: (operand, 0))
    assert isinstance(part, Loop)


def test_what_shares_local_memory_is_lowered_in_another_way(options: dict[str, Any]) -> None:
    """Convolutions that are one kernel elsewhere are two launches in a group."""
    filters = [randn(RNG, 1, 3, 3, 8, scale=0.2), randn(RNG, 8, 1, 1, 8, scale=0.2)]
    bias = randn(RNG, 8)

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        by_channel = DepthwiseConv2DOptions(Padding.SAME, 1, 1, 1)
        y = g.op(DEPTHWISE_CONV_2D, [x[1], g.const(filters[0]), g.const(bias)], by_channel)
        return [
            next_(g, x[0]),
            g.op(CONV_2D, [y, g.const(filters[1]), g.const(bias)], Conv2DOptions(Padding.SAME, 1, 1)),
        ]

    state: State = [((), INT), ((1, 4, 4, 8), FLOAT)]
    model_ = while_model(state, below(3), body)
    assert costs(check(model_, [int32(0), randn(RNG, 1, 4, 4, 8)], **options)) == (1, 1)
