"""``deterministic=True``: the same bits for other processors, numbers of threads, and after tuning."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.cpu import winograd
from litecl.delegate.devices import devices
from litecl.delegate.native import backend, compiler, features, kinds
from litecl.delegate.native.clang import Compiler
from litecl.delegate.tuning import Schedule, Tuning
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.random import MULTINOMIAL
from litecl.interpreter.ops.unary import SIN, TANH
from litecl.interpreter.schema import ActivationFunctionType
from litecl.perf.feeds import outputs_of, prepare, random_inputs, run_on
from litecl.random_graphs.graphs import THEMES, numbered
from support import networks, small_models
from support.build import Graph, model, randn
from support.loop_models import FLOAT, INT, below, next_, plus, while_model

FOUND = compiler.found()
pytestmark = pytest.mark.skipif(
    FOUND is None or "__x86_64__" not in FOUND.macros, reason="no compiler for an x86-64 processor"
)


def at(level: str) -> Compiler:
    """The compiler for another processor; skips the test if this one lacks its instructions."""
    assert FOUND is not None
    other = replace(FOUND, target=(f"-march={level}",), known=None)
    base = replace(FOUND, target=("-march=x86-64",), known=None)
    kind = kinds.here()
    if features.missing(kind.architecture, features.required(kind.architecture, other.macros, base.macros)):
        pytest.skip(f"this processor is no {level}")
    return other


def bits(content: bytes, level: str, threads: int = 1) -> tuple[list[Array], str]:
    """Return the outputs of two invokes, and the report."""
    device = backend.NativeFound(at(level), threads)
    interpreter = Interpreter(content, delegates=[CLDelegate(device, deterministic=True, num_threads=threads)])
    prepare(interpreter, random_inputs(interpreter.get_input_details(), 3))
    results = []
    for _ in range(2):
        interpreter.invoke()
        results += outputs_of(interpreter)
    return results, interpreter.delegation_report().deterministic


NETS: dict[str, Callable[[], bytes]] = {
    "MobileNetV2": lambda: networks.mobilenet_v2(64),
    "ResNet50": lambda: networks.resnet_50(64),
    "EfficientNetB0": lambda: networks.efficientnet_b0(64),
    "BERT": lambda: networks.bert(32, layers=1, width=96, heads=4),
    "LSTM": lambda: write(small_models.lstm()),
}
STEADY = "deterministic: the same bits on every processor, NaN's sign and payload aside"


@pytest.mark.parametrize("net", [*(pytest.param(name, marks=pytest.mark.nightly) for name in [*NETS][:4]), "LSTM"])
def test_networks(net: str) -> None:
    content = NETS[net]()
    expected, said = bits(content, "x86-64-v3")
    assert said == STEADY
    for level, threads in (("x86-64-v3", 2), ("x86-64-v4", 1), ("native", 1), ("native", 2)):
        for wanted, got in zip(expected, bits(content, level, threads)[0], strict=True):
            assert got.tobytes() == wanted.tobytes(), (level, threads)


@pytest.mark.parametrize("number", [*range(3), *(pytest.param(n, marks=pytest.mark.nightly) for n in range(3, 120))])
def test_random_graphs(number: int) -> None:
    """Where the report names no operator."""
    content = write(numbered(7, number * 7 % len(THEMES) + number // len(THEMES) * len(THEMES), 4).model)
    expected, said = bits(content, "x86-64-v3")
    others, _ = bits(content, "native")
    if "but for" not in said:
        for wanted, got in zip(expected, others, strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_without_it_bits_differ() -> None:
    """Else nothing here could fail."""
    processors = [backend.NativeFound(at(level)) for level in ("x86-64-v3", "native")]
    if len({device.target().vector_width for device in processors}) == 1:
        pytest.skip("this processor has vectors of 8 floats")
    content = networks.resnet_50(32)
    runtimes = [Interpreter(content, delegates=[CLDelegate(device)]) for device in processors]
    values = [*random_inputs(runtimes[0].get_input_details(), 3).values()]
    assert run_on(runtimes[0], values)[0].tobytes() != run_on(runtimes[1], values)[0].tobytes()


def test_what_is_refused() -> None:
    with pytest.raises(DelegateError, match="deterministic: a tuning, which is of one processor"):
        CLDelegate(deterministic=True, tuning=Tuning(schedules={"gemm": Schedule()}))
    old = backend.NativeFound(at("x86-64"))
    with pytest.raises(DelegateError, match="has 32 bits, or no fused multiply-add"):
        old.steadied()


def test_another_device_is_a_failure_of_the_device() -> None:
    opencl = [device for device in devices() if not isinstance(device, backend.NativeFound)]
    if not opencl:
        pytest.skip("no OpenCL device")
    interpreter = Interpreter(write(small_models.chain()), delegates=[CLDelegate(opencl[0], deterministic=True)])
    interpreter.allocate_tensors()
    (failure,) = interpreter.delegation_report().failures
    assert "deterministic: expected device='native'" in failure


def test_the_report_names_what_may_differ() -> None:
    g = Graph()
    y = g.op(TANH, [g.op(SIN, [g.input((4, 5))], NoOptions())], NoOptions())
    interpreter = Interpreter(write(model(g.build(y))), delegates=[CLDelegate(deterministic=True, deny_ops=["TANH"])])
    interpreter.allocate_tensors()
    report = interpreter.delegation_report()
    assert report.deterministic == f"{STEADY}, but for SIN (1), TANH (1)"
    assert report.deterministic in str(report)


def _constant(op: Op, options: object, feeds: int) -> Model:
    """An operator of constants, computed at preparation, whose result is added to an input."""
    rng, g = np.random.default_rng(5), Graph()
    y = g.op(op, [g.const(randn(rng, 40, 40)) for _ in range(feeds)], options)
    return model(g.build(g.op(ADD, [g.input((40, 40)), y], AddOptions())))


@pytest.mark.parametrize(
    ("op", "options", "feeds", "named"),
    [
        (TANH, NoOptions(), 1, ", but for TANH (1)"),
        (BATCH_MATMUL, BatchMatMulOptions(), 2, ", but for BATCH_MATMUL (1)"),
        (MUL, MulOptions(), 2, ""),
        (MUL, MulOptions(ActivationFunctionType.TANH), 2, ", but for MUL (1)"),
    ],
    ids=["tanh", "product", "mul", "mul with tanh"],
)
def test_the_report_names_what_is_computed_at_preparation(op: Op, options: object, feeds: int, named: str) -> None:
    """By numpy, some of whose functions round by the processor."""
    _, said = bits(write(_constant(op, options, feeds)), "x86-64-v3")
    assert said == f"{STEADY}{named}"


def test_the_report_names_what_a_loop_takes_from_preparation() -> None:
    def body(g: Graph, x: Sequence[int]) -> tuple[int, int]:
        y = g.op(TANH, [g.const(randn(np.random.default_rng(5), 4, 5))], NoOptions())
        return next_(g, x[0]), plus(g, x[1], y)

    content = write(while_model([((), INT), ((4, 5), FLOAT)], below(3), body))
    interpreter = Interpreter(content, delegates=[CLDelegate(deterministic=True)])
    interpreter.allocate_tensors()
    assert interpreter.delegation_report().deterministic.endswith(", but for TANH (1)")


def test_the_report_names_floats_that_become_integers_on_the_cpu() -> None:
    g = Graph()
    y = g.op(MULTINOMIAL, [g.input((1, 5)), g.const(np.int32(3))], MULTINOMIAL.options(seed=1, seed2=2))
    interpreter = Interpreter(write(model(g.build(y))), delegates=[CLDelegate(deterministic=True)])
    interpreter.allocate_tensors()
    assert interpreter.delegation_report().deterministic.endswith(", but for MULTINOMIAL (1)")


def test_the_first_device_is_that_device() -> None:
    """The index 0 asks for a device as any other does."""
    interpreter = Interpreter(write(small_models.chain()), delegates=[CLDelegate(0, deterministic=True)])
    interpreter.allocate_tensors()
    report, first = interpreter.delegation_report(), devices()[0]
    assert bool(report.failures) != isinstance(first, backend.NativeFound)


def test_winograds_weights_are_rounded_operation_by_operation() -> None:
    """As Python's floats are, to the last bit of float64; BLAS has other orders and fuses operations."""
    taps = np.random.default_rng(5).standard_normal((3, 211))
    expected = [_at_points(*column) for column in taps.T.tolist()]
    np.testing.assert_array_equal(winograd._at_points(taps).T, expected)


def _at_points(constant: float, linear: float, square: float) -> list[float]:
    """The quadratic polynomial's values at the five points over the products of their distances, and at infinity."""
    values = []
    for p in winograd._POINTS:
        factor = 1 / math.prod(p - other for other in winograd._POINTS if other != p)
        values.append(constant * factor + square * (p * p * factor) + linear * (p * factor))
    return [*values, square]
