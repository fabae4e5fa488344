"""FLOAT16 models on the device: float32 within regions, halves at their ends."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.graph import Array, Model, TensorSpec
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops.arg_max import ARG_MAX, ArgMaxOptions
from litecl.interpreter.ops.binary import ADD, FLOOR_DIV, FLOOR_MOD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.cast import CAST, CastOptions
from litecl.interpreter.ops.compare import EQUAL, GREATER_EQUAL, LESS
from litecl.interpreter.ops.control import WHILE, WhileOptions
from litecl.interpreter.ops.quantize import DEQUANTIZE
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.ops.topk_v2 import TOPK_V2
from litecl.interpreter.ops.unary import CEIL, EXP, FLOOR, ROUND, SIGN
from litecl.interpreter.schema import TensorType as T
from litecl.random_graphs.graphs import THEMES, Call, draw, families_of
from support import devices
from support.build import Graph, model

_FLOATS = [theme for theme in THEMES if T.FLOAT32 in theme.types]


def run(model_: Model, calls: Sequence[Sequence[Array]], device: Any = None, **options: Any) -> tuple[Any, Interpreter]:
    interpreter = Interpreter(model_, delegates=[] if device is None else [CLDelegate(device)], **options)
    results = []
    for feeds in calls:
        for detail, feed in zip(interpreter.get_input_details(), feeds, strict=True):
            interpreter.resize_tensor_input(detail["index"], feed.shape)
        interpreter.allocate_tensors()
        for detail, feed in zip(interpreter.get_input_details(), feeds, strict=True):
            interpreter.set_tensor(detail["index"], feed)
        interpreter.invoke()
        results.append([interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()])
    return results, interpreter


def reasons(interpreter: Interpreter) -> list[str]:
    return [row.reason for row in interpreter.delegation_report().nodes]


def halved(model_: Model) -> Model:
    return replace(model_, subgraphs=tuple(replace(g, tensors=tuple(map(_half, g.tensors))) for g in model_.subgraphs))


def widened(model_: Model) -> Model:
    graphs = (replace(g, tensors=tuple(map(_float, g.tensors))) for g in model_.subgraphs)
    return replace(model_, subgraphs=tuple(graphs))


def _float(spec: TensorSpec) -> TensorSpec:
    if spec.type != T.FLOAT16:
        return spec
    return replace(spec, type=T.FLOAT32, data=None if spec.data is None else _wide(spec.data))


def _wide(x: Array) -> Array:
    return x.astype(np.float32) if x.dtype == np.float16 else x


def _half(spec: TensorSpec) -> TensorSpec:
    if spec.type != T.FLOAT32:
        return spec
    return replace(spec, type=T.FLOAT16, data=None if spec.data is None else spec.data.astype(np.float16))


def _feeds(calls: Sequence[Call]) -> list[list[Array]]:
    return [[x.astype(np.float16) if x.dtype == np.float32 else x for x in call.feeds] for call in calls]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1, 8))])
def test_random_graphs(seed: int) -> None:
    """Fusions, loops and aliases of float32 graphs hold for halves. Expected is float32 arithmetic, rounded at the end:
    sums that overflow in the interpreter do not on the device.
    """
    claimed = compared = 0
    for number, theme in enumerate(_FLOATS[:: 3 if seed == 0 else 1]):
        families = families_of(theme, np.random.default_rng([seed, number]), 6)
        drawn = draw([seed, number], theme, families)
        feeds = _feeds([call for call in drawn.calls if call.entry == 0 and not call.reset][:2])
        half = halved(drawn.model)
        try:
            run(half, feeds)
        except LiteclError:  # an operator without FLOAT16, or one that mixes it with other weights
            continue
        wanted, _ = run(widened(half), [[_wide(x) for x in call] for call in feeds])
        got, interpreter = run(half, feeds, "native")
        report = interpreter.delegation_report()
        assert not report.failures
        claimed += sum(row.claimed for row in report.nodes)
        for a, b in zip(got, wanted, strict=True):
            for x, y in zip(a, b, strict=True):
                assert x.shape == y.shape
                compared += _compare(x, y)
    assert claimed > 20
    assert compared > 5


def _compare(x: Array, y: Array) -> int:
    if x.dtype != np.float16:
        return 0
    with np.errstate(over="ignore"):
        y = y.astype(np.float16)
    both = np.isfinite(x) & np.isfinite(y)
    if not both.any():
        return 0
    a, b = x[both].astype(np.float64), y[both].astype(np.float64)
    assert np.abs(a - b).max() <= 0.02 * max(1e-2, np.abs(b).max())
    return 1


@devices.on_each
def test_every_half_goes_in_and_out(device: Any) -> None:
    """Infinities, subnormals and NaN included."""
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    g = Graph()
    y = g.op(ADD, [g.input(every.shape, T.FLOAT16), g.const(np.zeros(1, np.float16))], AddOptions())
    ((got,),), interpreter = run(model(g.build(y)), [[every]], device)
    assert interpreter.delegation_report().nodes[0].claimed
    np.testing.assert_array_equal(got, every)


@devices.on_each
def test_results_are_rounded_to_even_once(device: Any) -> None:
    """Sums between two halves, halfway and just beyond, and sums beyond the largest."""
    x = np.array([2048, 2050, -2048, 2048, 65504, 65504, -65504], np.float16)
    y = np.array([1, 1, -1, 1.001, 15.99, 16, -16], np.float16)
    g = Graph()
    total = g.op(ADD, [g.input(x.shape, T.FLOAT16), g.input(y.shape, T.FLOAT16)], AddOptions())
    ((got,),), _ = run(model(g.build(total)), [[x, y]], device)
    np.testing.assert_array_equal(got, [2048, 2052, -2048, 2050, 65504, np.inf, -np.inf])


def test_between_nodes_nothing_is_lost() -> None:
    """The CPU's sum is infinite halfway, the device's is not; the report says that it holds float32."""
    x = np.full(8, 60000, np.float16)
    g = Graph()
    a = g.input(x.shape, T.FLOAT16)
    twice = g.op(ADD, [a, a], AddOptions())
    y = g.op(ADD, [twice, g.const(-x)], AddOptions())
    built = model(g.build(y))
    ((on_cpu,),), _ = run(built, [[x]])
    ((got,),), interpreter = run(built, [[x]], "native")
    assert np.isinf(on_cpu).all()
    np.testing.assert_array_equal(got, x)
    report = interpreter.delegation_report()
    assert "float32 within regions" in report.halves
    assert report.halves in str(report)


def test_kept_tensors_are_halves() -> None:
    """As the CPU's are."""
    x = np.linspace(-3, 3, 24, dtype=np.float16).reshape(4, 6)
    g = Graph()
    e = g.op(EXP, [g.input(x.shape, T.FLOAT16)], NoOptions())
    g.op(SOFTMAX, [e], SoftmaxOptions(1.0))
    built = model(g.build(len(g.tensors) - 1))
    _, cpu = run(built, [[x]], experimental_preserve_all_tensors=True)
    _, device = run(built, [[x]], "native", experimental_preserve_all_tensors=True)
    for tensor in range(len(g.tensors)):
        a, b = cpu.get_tensor(tensor), device.get_tensor(tensor)
        assert a.dtype == b.dtype == np.float16
        np.testing.assert_allclose(b, a, rtol=3e-2, atol=1e-6)


def test_conversions_within() -> None:
    """DEQUANTIZE and CAST from halves that enter are on the device; CAST to halves, which rounds, is not."""
    x = np.linspace(-3, 3, 24, dtype=np.float16)
    g = Graph()
    entering = g.input(x.shape, T.FLOAT16)
    half = g.op(EXP, [entering], NoOptions())
    wide = g.op(DEQUANTIZE, [entering], NoOptions())
    whole = g.op(CAST, [entering], CastOptions(T.FLOAT16, T.INT32))
    narrow = g.op(CAST, [g.op(EXP, [wide], NoOptions())], CastOptions(T.FLOAT32, T.FLOAT16))
    last = g.op(ADD, [narrow, half], AddOptions())
    built = model(g.build(wide, whole, narrow, last))
    (wanted,), _ = run(built, [[x]])
    (got,), interpreter = run(built, [[x]], "native")
    rows = interpreter.delegation_report().nodes
    assert [row.op for row in rows if not row.claimed] == ["CAST"]
    assert "depends on the type FLOAT16" in next(row.reason for row in rows if not row.claimed)
    for a, b in zip(got, wanted, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=3e-2)


X = np.linspace(0.1, 300, 4001).astype(np.float16)
_TOP = [TensorSpec(T.FLOAT16, (9,)), TensorSpec(T.INT32, (9,))]
_ALIKE = (CEIL, DEQUANTIZE, FLOOR, ROUND, SIGN)
_OF_TWO = (EQUAL, FLOOR_DIV, FLOOR_MOD, GREATER_EQUAL, LESS)
STEPS: dict[str, tuple[Op, Any, Array | None, list[TensorSpec]]] = {
    **{f"CAST {t.name}": (CAST, CastOptions(T.FLOAT16, t), None, []) for t in (T.INT32, T.UINT8, T.BOOL, T.FLOAT32)},
    **{op.name: (op, op.options(), None, []) for op in _ALIKE},
    **{op.name: (op, op.options(), (X * np.float16(1.1)).astype(np.float16), []) for op in _OF_TWO},
    "ARG_MAX": (ARG_MAX, ArgMaxOptions(T.INT64), np.array(0, np.int32), [TensorSpec(T.INT64, ())]),
    "TOPK_V2": (TOPK_V2, TOPK_V2.options(), np.array(9, np.int32), _TOP),
}
"""Operators whose results jump: options, the constant beside the number, and results that don't follow from these."""


def _behind(g: Graph, x: int, name: str) -> list[int]:
    op, options, constant, results = STEPS[name]
    inputs = [x] if constant is None else [x, g.const(constant)]
    return g.node(op, inputs, results, options) if results else [g.op(op, inputs, options)]


@pytest.mark.parametrize("name", STEPS)
def test_rounded_numbers_are_read_where_results_jump(name: str) -> None:
    """Products near whole numbers reach them, and near each other are equal, once they are FLOAT16."""
    g = Graph()
    product = g.op(MUL, [g.input(X.shape, T.FLOAT16), g.const(np.float16(1.1))], MulOptions())
    built = model(g.build(*_behind(g, product, name)))
    (wanted,), _ = run(built, [[X]])
    (got,), interpreter = run(built, [[X]], "native")
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(a, b)
    rows = interpreter.delegation_report().nodes
    assert [row.claimed for row in rows] == [True, False]
    assert "needs its FLOAT16 operands rounded" in rows[1].reason


def test_numbers_that_enter_and_whole_ones_are_rounded() -> None:
    for name in ("CAST INT32", "EQUAL", "ARG_MAX", "DEQUANTIZE"):
        g = Graph()
        whole = g.op(FLOOR, [g.input(X.shape, T.FLOAT16)], NoOptions())
        built = model(g.build(*_behind(g, whole, name)))
        (wanted,), _ = run(built, [[X]])
        (got,), interpreter = run(built, [[X]], "native")
        np.testing.assert_array_equal(got[0], wanted[0])
        assert all(row.claimed for row in interpreter.delegation_report().nodes)


def test_numbers_that_a_loop_hands_on_are_not_rounded() -> None:
    """A body's inputs are the results of its last run, so a loop with a FLOOR stays on the CPU."""
    body, condition, g = Graph("body"), Graph("condition"), Graph()
    i, x = body.input((), T.INT32), body.input((5,), T.FLOAT16)
    steps = body.op(ADD, [i, body.const(np.array(1, np.int32))], AddOptions())
    whole = body.op(FLOOR, [x], NoOptions())
    half = body.op(ADD, [body.op(MUL, [x, body.const(np.float16(1.1))], MulOptions()), whole], AddOptions())
    counted, _ = condition.input((), T.INT32), condition.input((5,), T.FLOAT16)
    less = condition.op(LESS, [counted, condition.const(np.array(7, np.int32))], NoOptions())
    results = [TensorSpec(T.INT32, ()), TensorSpec(T.FLOAT16, (5,))]
    _, last = g.node(WHILE, [g.input((), T.INT32), g.input((5,), T.FLOAT16)], results, WhileOptions(1, 2))
    built = model(g.build(last), condition.build(less), body.build(steps, half))
    feeds = [[np.array(0, np.int32), np.arange(5, dtype=np.float16)]]
    ((wanted,),), _ = run(built, feeds)
    ((got,),), interpreter = run(built, feeds, "native")
    np.testing.assert_array_equal(got, wanted)
    assert "needs its FLOAT16 operands rounded" in interpreter.delegation_report().nodes[0].reason


def test_a_loop_of_halves() -> None:
    """A loop's variables are float32 all through it."""
    body, condition, g = Graph("body"), Graph("condition"), Graph()
    i, x = body.input((), T.INT32), body.input((5,), T.FLOAT16)
    steps = body.op(ADD, [i, body.const(np.array(1, np.int32))], AddOptions())
    half = body.op(ADD, [x, body.const(np.array([0.1], np.float16))], AddOptions())
    counted, _ = condition.input((), T.INT32), condition.input((5,), T.FLOAT16)
    less = condition.op(LESS, [counted, condition.const(np.array(7, np.int32))], NoOptions())
    count, value = g.input((), T.INT32), g.input((5,), T.FLOAT16)
    results = [TensorSpec(T.INT32, ()), TensorSpec(T.FLOAT16, (5,))]
    _, last = g.node(WHILE, [count, value], results, WhileOptions(1, 2))
    built = model(g.build(last), condition.build(less), body.build(steps, half))
    feeds = [[np.array(0, np.int32), np.arange(5, dtype=np.float16)]]
    ((wanted,),), _ = run(built, feeds)
    ((got,),), interpreter = run(built, feeds, "native")
    assert interpreter.delegation_report().nodes[0].claimed, reasons(interpreter)
    np.testing.assert_allclose(got, wanted, rtol=3e-3)
