"""memory_limit and time_limit: work beyond a limit is refused before it starts, and counted memory is released."""

import math
import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from litecl.cases import Case
from litecl.cases.tables import TABLES
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LimitError, LiteclError, ModelError
from litecl.interpreter.graph import Array, Model, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import conv_2d, fill, lsh_projection, pad, unary
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.compare import LESS
from litecl.interpreter.ops.control import WHILE, WhileOptions
from litecl.interpreter.ops.variables import ASSIGN_VARIABLE, READ_VARIABLE, VAR_HANDLE, VarHandleOptions
from litecl.interpreter.schema import TensorType
from support.build import Graph, model

_SLACK_BYTES = 6 << 20  # blocks that kernels compute at once, whatever the size of their operands
_GROWN = 1 << 19

# Operators whose kernels take much besides their operands.
_HUNGRY = (
    "TRANSPOSE_CONV",
    "CONV_3D_TRANSPOSE",
    "RSQRT",
    "REDUCE_MAX",
    "LOG_SOFTMAX",
    "CONV_2D",
    "MULTINOMIAL",
    "GELU",
    "DIV",
    "TANH",
    "DEPTHWISE_CONV_2D",
    "LEAKY_RELU",
    "SOFTMAX",
    "RESIZE_BILINEAR",
    "ADD",
    "RFFT2D",
    "UNIQUE",
    "TOPK_V2",
    "AudioSpectrogram",
    "STABLEHLO_GATHER",
    "FULLY_CONNECTED",
    "CAST",
)


def _grown(name: str) -> Case | None:
    """The first case of an operator whose inputs can be made large."""
    for case in (case for table in TABLES for case in table.CASES if case.op.name == name):
        fed = [i for i, v in enumerate(case.inputs) if v is not None and v.ndim and v.size and i not in case.constants]
        fed = [i for i in fed if case.inputs[i].ndim == max(case.inputs[j].ndim for j in fed)]  # type: ignore[union-attr]
        for axis in range(case.inputs[fed[0]].ndim if fed else 0):  # type: ignore[union-attr]
            inputs = list(case.inputs)
            for i in fed:
                array = np.asarray(inputs[i])
                inputs[i] = np.concatenate([array] * max(1, _GROWN // array.size), axis=axis)
            grown = replace(case, inputs=inputs)
            try:
                with np.errstate(all="ignore"):
                    _run(grown.model(), grown.feeds)
            except LiteclError:
                continue
            return grown
    return None


def _run(content: Model, feeds: Sequence[Array], **how: Any) -> int:
    """Runs a model; the most memory that preparing and running it took besides its inputs."""
    interpreter = Interpreter(content, **how)
    tracemalloc.start()
    try:
        interpreter.allocate_tensors()
        for detail, value in zip(interpreter.get_input_details(), feeds, strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", _HUNGRY)
def test_what_takes_more_than_the_limit_is_refused(name: str) -> None:
    case = _grown(name)
    assert case is not None
    peak = _run(case.model(), case.feeds, memory_limit=1 << 32)
    with pytest.raises(LimitError, match="memory_limit"):
        _run(case.model(), case.feeds, memory_limit=max(1 << 10, peak - _SLACK_BYTES))


def test_tensors_that_are_alive_together_count() -> None:
    """Eight live tensors are too many, eight consecutive ones are not."""

    def chain(together: bool) -> Model:
        g = Graph()
        x = g.input((1 << 18,))
        tensors = [g.op(unary.FLOOR, [x], NoOptions())]
        for _ in range(30):
            tensors.append(g.op(unary.FLOOR, [tensors[-1]], NoOptions()))
        total = tensors[-1]
        for tensor in tensors if together else ():
            total = g.op(ADD, [total, tensor], AddOptions())
        return model(g.build(total))

    limit = (1 << 20) * (2 + 3 * 10 + 8)  # the inputs, the three tensors of an operator with ten each, eight more
    interpreter = Interpreter(chain(together=False), memory_limit=limit)
    interpreter.allocate_tensors()
    interpreter.invoke()
    held = interpreter._budget.live_bytes  # type: ignore[union-attr]
    for _ in range(5):
        interpreter.invoke()
        assert interpreter._budget.live_bytes == held  # type: ignore[union-attr]
    interpreter = Interpreter(chain(together=True), memory_limit=limit)
    interpreter.allocate_tensors()
    with pytest.raises(LimitError, match="besides"):
        interpreter.invoke()


def test_borders_count_before_they_are_made() -> None:
    """A dilation that only its options ask for."""
    g = Graph()
    x = g.input((1, 8, 8, 1))
    options = conv_2d.Conv2DOptions(stride_w=1, stride_h=1, dilation_h_factor=5000, dilation_w_factor=5000)
    content = model(g.build(g.op(conv_2d.CONV_2D, [x, g.const(np.ones((1, 3, 3, 1), np.float32))], options)))
    with pytest.raises(LimitError, match="memory_limit"):
        _run(content, [np.zeros((1, 8, 8, 1), np.float32)], memory_limit=1 << 26)


def test_hashes_of_many_rows_are_bounded() -> None:
    """In memory, however many seeds there are, and in time."""
    options, seeds = lsh_projection.LSHProjectionOptions(2), np.ones((4000, 32), np.float32)
    g = Graph()
    rows = g.input((200, 1), TensorType.INT8)
    content = model(g.build(g.op(lsh_projection.LSH_PROJECTION, [g.const(seeds), rows], options)))
    interpreter = Interpreter(content, memory_limit=1 << 24, time_limit=0.2)
    interpreter.allocate_tensors()
    interpreter.set_tensor(rows, np.ones((200, 1), np.int8))
    tracemalloc.start()
    try:
        with pytest.raises(LimitError, match="time_limit"):
            interpreter.invoke()
        assert tracemalloc.get_traced_memory()[1] < _GROWN
    finally:
        tracemalloc.stop()


def test_what_is_folded_is_bounded() -> None:
    """Also without limits: preparation doesn't turn a few bytes of constants into gigabytes."""
    g = Graph()
    x = g.input((1,))
    filled = [
        g.node(
            fill.FILL,
            [g.const(np.int64([1 << 22])), g.const(np.float32(i))],
            [TensorSpec(TensorType.FLOAT32, (1 << 22,))],
            NoOptions(),
        )[0]
        for i in range(40)
    ]
    interpreter = Interpreter(model(g.build(x, *filled)))
    tracemalloc.start()
    interpreter.allocate_tensors()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 << 24
    with pytest.raises(LimitError):
        Interpreter(model(g.build(x, *filled)), memory_limit=1 << 22).allocate_tensors()


def _endless() -> Model:
    """Counts down from 0: the condition always holds."""
    condition, body, main = Graph("condition"), Graph("body"), Graph()
    i, _ = condition.input((1,)), condition.input((4,))
    goes_on = condition.op(LESS, [i, condition.const(np.float32([1]))], NoOptions())
    j, y = body.input((1,)), body.input((4,))
    less = body.op(ADD, [j, body.const(np.float32([-1]))], AddOptions())
    more = body.op(ADD, [y, body.const(np.float32([1]))], AddOptions())
    start = [main.input((1,)), main.input((4,))]
    outputs = main.node(
        WHILE, start, [TensorSpec(TensorType.FLOAT32, (1,)), TensorSpec(TensorType.FLOAT32, (4,))], WhileOptions(1, 2)
    )
    return model(main.build(*outputs), condition.build(goes_on), body.build(less, more))


@pytest.mark.parametrize(
    "delegates",
    [[], [CLDelegate(num_threads=1)], [CLDelegate(num_threads=2)], [CLDelegate(num_threads=1, profile=True)]],
    ids=["interpreter", "basic", "pthread", "profile"],
)
@pytest.mark.long
def test_loops_without_an_end_are_stopped(delegates: list[CLDelegate]) -> None:
    interpreter = Interpreter(_endless(), delegates=delegates, time_limit=0.3)
    interpreter.allocate_tensors()
    if delegates:
        assert "queued" in interpreter.delegation_report().partitions[0].loops[0]
    for _ in range(2):
        start_s = time.monotonic()
        with pytest.raises(LimitError, match="longer than"):
            interpreter.invoke()
        assert time.monotonic() - start_s < 30


def test_a_region_that_is_too_large_stays_on_the_cpu() -> None:
    g = Graph()
    x = g.input((1 << 18,))
    content = model(g.build(g.op(ADD, [g.op(unary.FLOOR, [x], NoOptions()), x], AddOptions())))
    interpreter = Interpreter(content, delegates=[CLDelegate(num_threads=1)], memory_limit=2 << 20)
    interpreter.allocate_tensors()
    report = interpreter.delegation_report()
    assert not report.partitions
    assert "memory_limit" in str(report)
    assert Interpreter(content, delegates=[CLDelegate(num_threads=1)], memory_limit=1 << 28).allocate_tensors() is None


@pytest.mark.parametrize("preserve", [False, True])
def test_values_that_outlive_an_invoke_count_once(preserve: bool) -> None:
    """Variables, resources and preserved tensors, however often they are written."""
    g = Graph()
    x = g.input((1000,))
    (handle,) = g.node(VAR_HANDLE, [], [TensorSpec(TensorType.RESOURCE, ())], VarHandleOptions("", "v"))
    g.node(ASSIGN_VARIABLE, [handle, g.op(unary.FLOOR, [x], NoOptions())], [], NoOptions())
    (read,) = g.node(READ_VARIABLE, [handle], [TensorSpec(TensorType.FLOAT32, (1000,))], NoOptions())
    content = model(g.build(g.op(unary.CEIL, [read], NoOptions())))
    interpreter = Interpreter(content, memory_limit=1 << 20, experimental_preserve_all_tensors=preserve)
    interpreter.allocate_tensors()
    held = []
    for _ in range(4):
        interpreter.invoke()
        held.append(interpreter._budget.live_bytes)  # type: ignore[union-attr]
    assert held[1] == held[2] == held[3] >= 8000


@pytest.mark.parametrize("limits", [{"memory_limit": 0}, {"time_limit": -1.0}, {"time_limit": math.nan}])
def test_limits_must_be_positive(limits: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match="expected more than 0"):
        Interpreter(_endless(), **limits)


def test_a_pad_of_gigabytes_is_refused() -> None:
    g = Graph()
    x = g.input((1, 1))
    padded = g.op(pad.PAD, [x, g.const(np.int32([[0, 30000], [0, 30000]]))], NoOptions())
    with pytest.raises(LimitError, match="takes 3600240004 bytes"):
        Interpreter(model(g.build(padded)), memory_limit=1 << 30).allocate_tensors()
