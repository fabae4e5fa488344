"""Every operator that quantization has a rule for: the integers are LiteRT's, and stand for the numbers in float."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from litecl.cases import Case
from litecl.converter import Quantization
from litecl.converter.quantization.quantize import quantize
from litecl.converter.quantization.rules import RULES
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array
from litecl.interpreter.integers import InFloat
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops import every_form
from litecl.interpreter.ops.binary import ADD, MUL, SQUARED_DIFFERENCE, SUB, AddOptions, MulOptions, SubOptions
from litecl.interpreter.ops.compare import EQUAL, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL
from litecl.interpreter.ops.quantize import quantize as stored
from litecl.interpreter.ops.select import SELECT_V2
from litecl.interpreter.schema import TensorType
from support import oracle
from support.all_cases import CASES
from support.build import Graph, model

_MOST = 4  # cases of an operator
_WITHOUT_REFERENCE = ("DEPTH_TO_SPACE", "ELU", "TILE")  # of 8 bits: LiteRT has them in its optimised set alone
_COARSE = {
    "DIV": "divisors near zero",
    "L2_NORMALIZATION": "rows that are shorter than the shortest",
    "LOG_SOFTMAX": "values beyond the fixed range, which ends at -16",
    "POOL": "averages that are small beside the largest value",
}


def _float_cases() -> Iterator[Case]:
    """The first cases of each operator whose activations are floats, with weights and bias as constants."""
    count: dict[str, int] = {}
    for case in CASES:
        rule = RULES.get(case.op)
        if rule is None or case.types or case.quantization or count.get(case.op.name, 0) == _MOST:
            continue
        fixed = {*rule.weights, *([] if rule.bias is None else [rule.bias])}
        given = {p for p in fixed if p < len(case.inputs) and case.inputs[p] is not None}
        case = replace(case, constants=case.constants | given)
        floats = [x for x in case.inputs if x is not None and x.dtype == np.float32]
        (graph,) = case.model().subgraphs
        written = all(graph.tensors[t].size for t in graph.outputs)
        if case.feeds and floats and written and all(x.size and np.isfinite(x).all() for x in floats):
            count[case.op.name] = count.get(case.op.name, 0) + 1
            yield case


_CASES = tuple(_float_cases())


def test_every_operator_with_integers_has_a_rule_or_a_reason() -> None:
    signed = {TensorType.INT8, TensorType.INT16}
    quantized = {
        case.op
        for case in CASES
        for value in (case.inputs[p] for p in case.quantization)
        if value is not None and {*case.types.values(), TensorType.of(value.dtype)} & signed
    }
    in_float = {
        case.op
        for case in CASES
        if not case.types and any(x is not None and x.dtype == np.float32 for x in case.inputs)
    }
    known = {*RULES, *(op for op in every_form() if isinstance(op, Op) and isinstance(op.integers, InFloat))}
    assert {op.name for op in (quantized & in_float) - known} == set()
    assert {case.op for case in _CASES} == set(RULES)


@pytest.mark.parametrize("case", _CASES, ids=repr)
@pytest.mark.parametrize("kind", ["int8", "int16"])
def test_rule(case: Case, kind: str) -> None:
    type_ = TensorType[kind.upper()]
    how = Quantization(activations=kind, input_type=kind, output_type=kind, data=[case.feeds])  # type: ignore[arg-type]
    model, report = quantize(case.model(), how)
    assert report is not None
    if type_ not in RULES[case.op].types:
        reasons = {layer.reason for layer in report.layers if layer.op == case.op.name}
        assert reasons <= {f"it has no kernel for {type_.name} activations"}
        return
    assert [layer.reason for layer in report.layers if layer.reason] == []
    if not any(case.op.name.endswith(name) for name in (*_COARSE, "POOL_2D")):
        assert all(layer.own_sqnr_db is None or layer.own_sqnr_db > 22 for layer in report.layers), str(report)
    graph = model.subgraphs[0]
    specs = [graph.tensors[t] for t in graph.inputs]
    feeds = [
        x if s.quantization is None else stored(x, s.quantization, s.type)
        for x, s in zip(case.feeds, specs, strict=True)
    ]
    content = write(model)
    resolver = "optimised" if case.op.name in _WITHOUT_REFERENCE and kind == "int8" else "reference"
    expected = oracle.run(content, feeds, oracle.RESOLVERS[resolver])
    for got, wanted in zip(_run(content, feeds), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


def _run(content: bytes, feeds: list[Array]) -> list[Array]:
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    for detail, feed in zip(interpreter.get_input_details(), feeds, strict=True):
        interpreter.set_tensor(detail["index"], feed)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


@pytest.mark.parametrize("op", [GREATER, LESS_EQUAL, EQUAL], ids=lambda op: op.name)
@pytest.mark.parametrize(("largest", "in_integers"), [(3.0, True), (0.1, False), (900.0, False)])
@pytest.mark.parametrize("other", [0.0, 0.05])
def test_comparisons_have_scales_that_their_kernels_take(
    op: Op, largest: float, in_integers: bool, other: float
) -> None:
    """LiteRT ends the process at a scale of 1 or more, and compares real numbers rounded to multiples of 1/256."""
    g = Graph()
    x = g.op(MUL, [g.input((1, 64)), g.const(np.float32(largest))], MulOptions())
    condition = g.op(op, [x, g.const(np.float32(other))], NoOptions())
    doubled = g.op(ADD, [x, x], AddOptions())
    of = model(g.build(g.op(SELECT_V2, [condition, x, doubled], NoOptions())))
    steps = np.linspace(-1, 1, 64, dtype=np.float32)[None]
    after, _ = quantize(of, Quantization(activations="int8", data=[[steps]]))
    (graph,) = after.subgraphs
    (node,) = (node for node in graph.nodes if node.op is op)
    specs = [graph.tensors[t] for t in node.inputs]
    assert all((spec.type == TensorType.INT8) == in_integers for spec in specs)
    assert all(spec.quantization is None or spec.quantization.scale[0] < 1 for spec in specs)
    (got,) = oracle.run(write(after), [steps])
    (wanted,) = _run(write(of), [steps])
    away = np.abs(steps * largest - other) > largest / 100
    assert np.abs(got - wanted)[away].max() < largest / 25


@pytest.mark.parametrize("op", [GREATER, GREATER_EQUAL, LESS, LESS_EQUAL], ids=lambda op: op.name)
@pytest.mark.parametrize("is_left", [False, True])
@pytest.mark.parametrize("limit", [0.0, 0.1, -0.1, 0.5 * 2 / 255, 7 * 2 / 255, 0.99])
def test_comparisons_of_integers_with_limits_are_exact(op: Op, is_left: bool, limit: float) -> None:
    """Each integer is on the side of the limit on which the number is that it represents."""
    g = Graph()
    x, between = g.input((1, 256)), g.const(np.float32(limit))
    condition = g.op(op, [between, x] if is_left else [x, between], NoOptions())
    of = model(g.build(g.op(SELECT_V2, [condition, x, g.op(ADD, [x, x], AddOptions())], NoOptions())))
    steps = (np.arange(-128, 128) * (2 / 255)).astype(np.float32)[None]
    after, _ = quantize(of, Quantization(activations="int8", data=[[steps]]))
    (wanted,) = _run(write(of), [steps])
    for got in (oracle.run(write(after), [steps])[0], _run(write(after), [steps])[0]):
        np.testing.assert_allclose(got, wanted, atol=0.017)  # a step of the result


@pytest.mark.parametrize(
    ("op", "options", "kind", "small", "near"),
    [
        (ADD, AddOptions(), "int8", 2e-5, 4e-6),
        (ADD, AddOptions(), "int16", 6e-4, 1e-4),
        (SUB, SubOptions(), "int8", 2e-5, 4e-6),
        (SUB, SubOptions(), "int16", 6e-4, 1e-4),
        (SQUARED_DIFFERENCE, NoOptions(), "int8", 3e-2, 8e-3),
    ],
    ids=lambda value: value.name if isinstance(value, Op) else None,
)
def test_results_have_scales_that_their_kernels_take(
    op: Op, options: object, kind: str, small: float, near: float
) -> None:
    """LiteRT ends the process where a result is too small beside the operands."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-8, 8, (1, 64)).astype(np.float32)
    for size, in_integers in ((small, True), (near, False)):
        g = Graph()
        result = g.op(op, [g.input((1, 64)), g.input((1, 64))], options)
        feeds = [x, ((-x if op is ADD else x) + rng.uniform(-size, size, x.shape)).astype(np.float32)]
        of = model(g.build(result))
        after, _ = quantize(of, Quantization(activations=kind, data=[feeds]))  # type: ignore[arg-type]
        (graph,) = after.subgraphs
        (node,) = (node for node in graph.nodes if node.op is op)
        assert (graph.tensors[node.outputs[0]].type != TensorType.FLOAT32) == in_integers
        for got, wanted in zip(oracle.run(write(after), feeds), _run(write(after), feeds), strict=True):
            np.testing.assert_array_equal(got, wanted)
