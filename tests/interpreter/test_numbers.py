"""``numbers="tflm"``: tflite-micro's integers, against the package itself, case by case and model by model."""

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from litecl.cases import Case
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ArgumentError, ModelError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.binary import MUL, MulOptions
from litecl.interpreter.ops.unary import RELU
from litecl.interpreter.schema import TensorType as T
from support.all_cases import CASES
from support.micro_models import products, quantization
from support.scaled_cases import rescaled
from support.shared import MODELS, needs_shared, rows

needs_tflm = pytest.mark.skipif(find_spec("tflite_micro") is None, reason="tflite-micro is not installed")

OWN_FAULTS = (
    ("GREATER", "INT16"),  # it reads parameters that it never sets, so results change from run to run
    ("DEQUANTIZE", "per channel"),  # the first scale counts for all
    ("EMBEDDING_LOOKUP", "8 bits"),  # likewise
    ("TRANSPOSE_CONV", "32-bit bias"),  # it reads a bias of 64 bits
    ("SPACE_TO_BATCH_ND", "INT8"),  # it pads with a number that it never sets
)
"""Cases, by operator and part of the name, that tflite-micro takes but computes wrongly: litecl doesn't follow."""


def in_tflm(content: bytes, feeds: Sequence[Sequence[Array]], count: int) -> list[list[Array]] | str:
    """Return tflite-micro's outputs of a model, invoke after invoke, or why it refuses."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    from tflite_micro import runtime

    try:
        interpreter = runtime.Interpreter.from_bytes(content, arena_size=64 << 20)
        results = []
        for values in feeds:
            for i, value in enumerate(values):
                interpreter.set_input(value, i)
            interpreter.invoke()
            results.append([np.array(interpreter.get_output(i)) for i in range(count)])
    except Exception as error:
        return str(error)
    return results


@pytest.fixture(scope="module")
def process() -> Iterator[list[Executor]]:
    """A process to run tflite-micro in, which may die."""
    executors = [ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))]
    yield executors
    executors[0].shutdown(cancel_futures=True)


def _asked(process: list[Executor], *arguments: Any) -> list[list[Array]] | None:
    """Return its outputs, None if it refuses or dies."""
    try:
        got = process[0].submit(in_tflm, *arguments).result(timeout=60)
    except Exception:
        process[0] = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
        return None
    return None if isinstance(got, str) else got


def _ours(model: Any, feeds: Sequence[Sequence[Array]], **options: Any) -> tuple[list[list[Array]], Interpreter]:
    interpreter = Interpreter(model, **options)
    interpreter.allocate_tensors()
    results = []
    for values in feeds:
        for detail, value in zip(interpreter.get_input_details(), values, strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        results.append([interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()])
    return results, interpreter


def _integer(case: Case) -> bool:
    (graph,) = case.model().subgraphs
    first = next(spec for spec in graph.tensors)
    return any(q.scale.size for q in case.quantization.values()) and first.type != T.FLOAT32


def _is_fault(case: Case) -> bool:
    return any(case.op.name == op and part in case.name for op, part in OWN_FAULTS)


@needs_tflm
@pytest.mark.nightly
def test_cases(process: list[Executor]) -> None:
    """Every integer case that tflite-micro takes and computes rightly has its bits."""
    compared, changed, apart = 0, set(), []
    for case in filter(_integer, CASES):
        model = case.model()
        (graph,) = model.subgraphs
        # Intermediates of rank 0 have an element, which tflite-micro refuses.
        tensors = (replace(s, shape=(0,)) if s.name.startswith("intermediate_") else s for s in graph.tensors)
        content = write(replace(model, subgraphs=(replace(graph, tensors=tuple(tensors)),)))
        theirs = _asked(process, content, [case.feeds], len(graph.outputs))
        if theirs is None or _is_fault(case):
            continue
        ours, _ = _ours(model, [case.feeds], numbers="tflm")
        compared += 1
        if not all(map(np.array_equal, ours[0], theirs[0])):
            apart.append(repr(case))
        if not all(map(np.array_equal, _ours(model, [case.feeds])[0][0], theirs[0])):
            changed.add(case.op.name)
    assert not apart
    assert compared > 400
    assert changed == {*RULED} - {"MUL"}


@needs_tflm
@pytest.mark.nightly
def test_cases_at_other_scales(process: list[Executor]) -> None:
    """Every such case has tflite-micro's bits with other scales, zero points and elements too."""
    compared, apart, draw = 0, [], np.random.default_rng(7)
    for case in (rescaled(case, draw) for case in CASES if _integer(case) and not _is_fault(case)):
        try:
            model = case.model()
            ours, _ = _ours(model, [case.feeds], numbers="tflm")
        except ModelError:  # division by 0, or a scale that the operator doesn't have
            continue
        theirs = _asked(process, write(model), [case.feeds], len(model.subgraphs[0].outputs))
        if theirs is None:
            continue
        compared += 1
        if not all(map(np.array_equal, ours[0], theirs[0])):
            apart.append(repr(case))
    assert not apart
    assert compared > 300


@needs_tflm
@needs_shared
@pytest.mark.nightly
def test_models(process: list[Executor]) -> None:
    compared, changed = 0, set()
    for row in rows():
        if row["kind"] not in ("int8", "int16x8") or int(row["bytes"]) > 1 << 20:
            continue
        content = (MODELS / row["file"]).read_bytes()
        try:
            interpreter = Interpreter(model_content=content)
        except ModelError:  # damaged
            continue
        details, rng = interpreter.get_input_details(), np.random.default_rng(0)
        if any((detail["shape"] <= 0).any() or detail["dtype"] not in _FED for detail in details):
            continue
        feeds = [[_feed(rng, detail) for detail in details] for _ in range(2)]
        theirs = _asked(process, content, feeds, len(interpreter.get_output_details()))
        if theirs is None:
            continue
        ours, _ = _ours(content, feeds, numbers="tflm")
        reference, _ = _ours(content, feeds)
        for a, b, c in zip(ours, theirs, reference, strict=True):
            for x, y, z in zip(a, b, c, strict=True):
                np.testing.assert_array_equal(x, y.reshape(x.shape), err_msg=row["file"])
                changed |= set() if np.array_equal(z, y.reshape(z.shape)) else {row["file"].rpartition("/")[2]}
        compared += 1
    assert compared >= 20
    assert {"ad01_int8.tflite", "dtln_noise_suppression.tflite"} <= changed


_FED = (np.float32, np.int8, np.uint8, np.int16)  # others are shapes or positions


def _feed(rng: np.random.Generator, detail: dict[str, Any]) -> Array:
    dtype = np.dtype(detail["dtype"])
    if dtype.kind == "f":
        return rng.standard_normal(detail["shape"]).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max + 1, detail["shape"]).astype(dtype)


def test_sums_of_16_bits_are_scaled_by_16_bits() -> None:
    """MultiplyByQuantizedMultiplier of a 64-bit sum keeps 15 bits of the factor, rounded, and rounds halves up."""
    case = products(8)
    x, weights, bias = (value.astype(object) for value in case.inputs if value is not None)
    scale = float(np.float32(0.0021)) * float(np.float32(0.013)) / float(np.float32(0.09))
    mantissa, exponent = np.frexp(scale)
    factor = (round(mantissa * 2**31) + (1 << 15)) >> 16
    shift = 15 - int(exponent)
    wanted = [[(total * factor + (1 << (shift - 1))) >> shift for total in row] for row in x @ weights.T + bias]
    got = _ours(case.model(), [case.feeds], numbers="tflm")[0][0][0]
    np.testing.assert_array_equal(got, np.clip(np.array(wanted, np.int64), -32768, 32767))
    assert (got != _ours(case.model(), [case.feeds])[0][0][0]).any()


def test_the_device_leaves_such_nodes_to_the_cpu() -> None:
    case = products(3)
    model = case.model()
    on_cpu, _ = _ours(model, [case.feeds], numbers="tflm")
    got, interpreter = _ours(model, [case.feeds], numbers="tflm", delegates=[CLDelegate("native")])
    np.testing.assert_array_equal(got[0][0], on_cpu[0][0])
    (row,) = interpreter.delegation_report().nodes
    assert not row.claimed
    assert "LiteRT's numbers" in row.reason


RULED = (
    *("ABS", "ADD", "BATCH_MATMUL", "DIV", "ELU", "FULLY_CONNECTED", "LEAKY_RELU", "LOGISTIC", "MUL", "PRELU"),
    *("RELU", "RELU6", "RSQRT", "SOFTMAX", "SUB", "SUM", "TANH", "TRANSPOSE_CONV"),
)
_ON_DEVICE = [case for case in CASES if case.op.name in RULED and case.on_device and _integer(case)]
_ON_DEVICE = [case for case in _ON_DEVICE if all(s.type != T.FLOAT32 for s in case.model().subgraphs[0].tensors)]


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.nightly) for part in range(1, 12))], ids="part {}".format
)
def test_the_device_follows_or_leaves_a_node(part: int) -> None:
    """It never has the reference's bits where tflite-micro's are asked for."""
    claimed = changed = 0
    for case in _ON_DEVICE[part::12]:
        model = case.model()
        wanted, _ = _ours(model, [case.feeds], numbers="tflm")
        got, interpreter = _ours(model, [case.feeds], numbers="tflm", delegates=[CLDelegate("native")])
        for a, b in zip(got[0], wanted[0], strict=True):
            np.testing.assert_array_equal(a, b, err_msg=repr(case))
        claimed += interpreter.delegation_report().nodes[0].claimed
        changed += not all(map(np.array_equal, got[0], _ours(model, [case.feeds])[0][0]))
    assert claimed
    assert changed


def test_unsigned_bytes_are_as_elsewhere() -> None:
    """tflite-micro has no kernels for them."""
    ruled = [case for case in CASES if case.op.name in RULED and _integer(case)]
    unsigned = [case for case in ruled if case.model().subgraphs[0].tensors[0].type == T.UINT8]
    assert {case.op.name for case in unsigned} >= {"LOGISTIC", "TANH", "RELU6", "FULLY_CONNECTED"}
    for case in unsigned:
        wanted, got = (_ours(case.model(), [case.feeds], numbers=numbers)[0][0] for numbers in ("reference", "tflm"))
        for a, b in zip(wanted, got, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=repr(case))


def test_other_nodes_stay_on_the_device() -> None:
    x = np.arange(-8, 8, dtype=np.int8)
    outputs = (TensorSpec(T.INT8, None, quantization=quantization(0.1)),)
    case = Case("relu", RELU, NoOptions(), [x], quantization={0: quantization(0.1)}, outputs=outputs)
    _, interpreter = _ours(case.model(), [case.feeds], numbers="tflm", delegates=[CLDelegate("native")])
    assert interpreter.delegation_report().nodes[0].claimed


def test_scales_of_matrices_are_multiplied_in_float64() -> None:
    """The factor in float32 rounds this sum of products to 166, that in float64 to 165."""
    x_scale, y_scale, scale, zero = 0.04178521782, 0.03129806369, 0.40282976627, -120
    x, y = np.array([[127, 127, 127, 127, 50]], np.int8), np.array([[127], [127], [127], [20], [1]], np.int8)
    output = TensorSpec(T.INT8, None, quantization=replace(quantization(scale), zero_point=np.array([zero])))
    by = {0: quantization(x_scale), 1: quantization(y_scale)}
    case = Case("int8", BATCH_MATMUL, BatchMatMulOptions(), [x, y], quantization=by, outputs=(output,))
    exact = float(np.float32(x_scale)) * float(np.float32(y_scale)) / float(np.float32(scale))
    mantissa, exponent = np.frexp(exact)
    high = (int(x.astype(int)[0] @ y.astype(int)[:, 0]) * round(mantissa * 2**31) + (1 << 30)) >> 31
    wanted = (high + (1 << (-exponent - 1)) >> -exponent) + zero
    assert _ours(case.model(), [case.feeds], numbers="tflm")[0][0][0].item() == wanted
    assert _ours(case.model(), [case.feeds])[0][0][0].item() == wanted + 1


def test_scales_of_products_are_multiplied_in_float64() -> None:
    """Of a factor in float32 and one in float64, squares of 16 bits tell."""
    x_scale, scale = 0.70672166, 9448.699
    by, x = dict.fromkeys((0, 1), quantization(x_scale)), np.arange(32767, dtype=np.int16)
    output = TensorSpec(T.INT16, None, quantization=quantization(scale))
    case = Case("int16", MUL, MulOptions(), [x, x], quantization=by, outputs=(output,))
    mantissa, exponent = np.frexp(float(np.float32(x_scale)) ** 2 / float(np.float32(scale)))
    high = (x.astype(np.int64) ** 2 * round(mantissa * 2**31) + (1 << 30)) >> 31
    wanted = np.minimum((high + (1 << (-exponent - 1))) >> -exponent, 32767)
    got = _ours(case.model(), [case.feeds], numbers="tflm")[0][0][0]
    np.testing.assert_array_equal(got, wanted)
    assert (got != _ours(case.model(), [case.feeds])[0][0][0]).any()


def test_unknown_numbers() -> None:
    with pytest.raises(ArgumentError, match="numbers: expected 'reference' or 'tflm', got 'xnnpack'"):
        Interpreter(products(1).model(), numbers="xnnpack")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["FULLY_CONNECTED", "TRANSPOSE_CONV", "ADD", "PRELU"])
def test_floats_and_other_weights_are_as_before(name: str) -> None:
    """The rules are of integers: floats, with integer weights too, and shuffled weights keep their kernels."""
    cases = [case for case in CASES if case.op.name == name and not _integer(case)]
    shuffled = [case for case in CASES if case.op.name == name and "shuffled" in case.name.lower()]
    assert cases
    assert shuffled or name != "FULLY_CONNECTED"
    for case in (*cases[::5], *shuffled):
        got, wanted = (_ours(case.model(), [case.feeds], numbers=numbers)[0][0] for numbers in ("tflm", "reference"))
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(a, b)


def test_plans_of_the_reference_are_not_taken() -> None:
    """Kept plans of one mode are not used in the other."""
    case = products(5)
    for _ in range(2):
        for numbers in ("reference", "tflm"):
            wanted, _ = _ours(case.model(), [case.feeds], numbers=numbers)
            got, interpreter = _ours(case.model(), [case.feeds], numbers=numbers, delegates=[CLDelegate("native")])
            np.testing.assert_array_equal(got[0][0], wanted[0][0])
            assert interpreter.delegation_report().nodes[0].claimed == (numbers == "reference")
