"""Random graphs on the device: a short run of ``tools.fuzz_graphs``, and that it finds what is wrong."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from litecl.delegate.opencl.environment import POCL
from litecl.delegate.ops import CL_OPS
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Model, TensorSpec
from litecl.interpreter.ops import unary
from litecl.interpreter.ops.cast import CAST, CastOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.reduce import REDUCE_PROD, ReducerOptions
from litecl.interpreter.schema import ActivationFunctionType, TensorType
from litecl.random_graphs import elementwise, pairs
from litecl.random_graphs.graphs import THEMES, Call, draw, families_of
from support import devices, pocl_processor
from support.build import Graph, model, randn
from tools import fuzz_graphs
from tools.graph_fuzz import oracle, work
from tools.graph_fuzz.modes import MODES

_ROOT = Path(__file__).parents[2]
_AS_CPU = _ROOT / "tools/as_cpu"


@pytest.mark.parametrize(
    ("mode", "batch", "graphs"),
    [
        ("one thread", 2, 30),
        *(
            pytest.param(*run, marks=pytest.mark.nightly)
            for run in (("two threads", 7, 30), ("OpenCL, several groups", 12, 8), ("as a GPU", 17, 4))
        ),
    ],
)
def test_random_graphs(
    mode: str, batch: int, graphs: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No graph of a batch differs; ``python -m tools.fuzz_graphs`` is the long form."""
    if MODES[mode].options["device"] != "native" and "LITECL_AS_CPU" not in os.environ:
        monkeypatch.setenv("LITECL_AS_CPU", pocl_processor.best())  # in the processes that run graphs
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(_AS_CPU), *sys.path]))
    arguments = ["--graphs", str(graphs), "--families", "3", "--start", str(batch), "--modes", mode, "--json"]
    assert fuzz_graphs.main(arguments) == 0, capsys.readouterr().out


@pytest.mark.skipif(not any(device.platform.name == POCL for device in devices.tested()), reason="PoCL only")
def test_modes_of_opencl_run_on_a_new_processor() -> None:
    """None is left out because PoCL does not know the processor's name."""
    program = "from tools.graph_fuzz.modes import MODES, fault_of; print(*map(fault_of, MODES.values()))"
    environment = {name: value for name, value in os.environ.items() if name != "LITECL_AS_CPU"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=_ROOT, capture_output=True, text=True, check=True
    )
    assert not done.stdout.strip()


def test_strange_inputs_are_fed_and_compared(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--graphs", "6", "--families", "2", "--start", "5", "--modes", "one thread", "--strange", "--json"]
    assert fuzz_graphs.main(arguments) == 0, capsys.readouterr().out
    drawn = [work.drawn_of(work.batch(0, 5, 6, ["one thread"], 2, strange=True), i) for i in range(6)]
    assert any(not np.isfinite(x).all() for d in drawn for c in d.calls for x in c.feeds if x.dtype == np.float32)


@pytest.mark.parametrize("other", [1.0, np.inf, -np.inf, np.nan])
def test_what_is_not_finite_is_compared(other: float) -> None:
    """Unless it is another with other roundings."""
    strange = np.array([np.nan, np.inf, -np.inf], np.float32)
    for i, x in enumerate(strange):
        got = strange.copy()
        got[i] = other
        same = np.array_equal(got[i], x, equal_nan=True)
        assert (oracle.compare(strange, got, [strange]) is None) == same
        assert oracle.compare(strange, got, [strange, np.zeros_like(strange)]) is None


@pytest.mark.nightly
def test_finds_a_wrong_kernel_and_makes_its_graph_small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """NEG for ABS: found among nodes that hide it, and cut out of them."""
    monkeypatch.setattr("litecl.delegate.ops.CL_OPS", {**CL_OPS, unary.ABS: CL_OPS[unary.NEG]})
    monkeypatch.setattr(work, "families_of", lambda *_: (elementwise.function, pairs.extreme))
    batch = work.Batch(seed=3, number=0, graphs=8, theme=4, mode="queued")
    found = work.run_batch(batch, tmp_path, tmp_path / "found", lambda graph: None).findings
    assert found
    assert {finding.kind for finding in found} == {"different"}
    assert any(finding.text.count("\n") <= 3 and "ABS" in finding.text for finding in found)
    assert list((tmp_path / "found").glob("*.tflite"))


def test_rounding_is_allowed_and_no_more() -> None:
    rng = np.random.default_rng(6)
    g = Graph()
    y = g.op(FULLY_CONNECTED, [g.input((9, 40)), g.const(randn(rng, 20, 40)), None], FullyConnectedOptions())
    dense, calls = model(g.build(y)), [Call(0, (randn(rng, 9, 40),))]
    expected = oracle.run(Interpreter(dense), calls)
    exact, near, far = ([[x * np.float32(1 + e) for x in expected[0]]] for e in (0, 3e-7, 1e-3))
    assert not oracle.differences(dense, calls, expected, exact)
    assert oracle.differences(dense, calls, expected, far)
    assert not oracle.differences(dense, calls, expected, near)


def test_rows_with_elements_half_way_between_two_integers() -> None:
    """The range of a row from -a to a has its zero point, and its ends, half-way: rounding decides each for itself."""
    rng, g = np.random.default_rng(8), Graph()
    of_row = g.const(np.array([[13], [-127], [-8], [29], [127]], np.int8), scale=0.01)
    integers = (rng.integers(1, 8, (17, 5)) * [1, -1, -1, 1, 1]).astype(np.int8)  # no sum is small
    integers[:, 1] = -integers[:, 4]  # what moves both ends is not seen
    row = g.op(FULLY_CONNECTED, [g.input((2, 1)), of_row, None], FullyConnectedOptions())
    weights, options = g.const(integers, scale=0.1), FullyConnectedOptions(asymmetric_quantize_inputs=True)
    hybrid = model(g.build(g.op(FULLY_CONNECTED, [row, weights, None], options)))
    calls = [Call(0, (np.array([[0.01051], [3]], np.float32),))]
    ((expected,),) = oracle.run(Interpreter(hybrid), calls)
    step = np.float32([[0.01051], [0]]) * 2 * 1.27 / 255 * 0.1 * integers[:, 4]
    assert not oracle.differences(hybrid, calls, [[expected]], [[(expected - step).astype(np.float32)]])
    assert oracle.differences(hybrid, calls, [[expected]], [[(expected + 20 * step).astype(np.float32)]])


@pytest.mark.parametrize(("large", "differs"), [(1e30, False), (1e3, True)])
def test_a_product_whose_order_decides_may_be_any_integer(large: float, differs: bool) -> None:
    g = Graph()
    product = g.op(REDUCE_PROD, [g.input((1, 4)), g.const(np.array([1], np.int32))], ReducerOptions())
    outputs = [TensorSpec(TensorType.INT64, (1,))]
    (y,) = g.node(CAST, [product], outputs, CastOptions(out_data_type=TensorType.INT64))
    calls = [Call(0, (np.array([[large, large, 0, 2]], np.float32),))]
    expected = oracle.run(Interpreter(model(g.build(y))), calls)
    other = [[np.where(expected[0][0] == 0, expected[0][0] + 7, 0)]]
    assert bool(oracle.differences(model(g.build(y)), calls, expected, other)) == differs


def test_bounds_of_activations_are_exact() -> None:
    """Errors are those of the sums, which may be large, and none where the activation's bound is reached."""
    rng = np.random.default_rng(5)
    g = Graph()
    options = FullyConnectedOptions(ActivationFunctionType.RELU_N1_TO_1)
    y = g.op(FULLY_CONNECTED, [g.input((50, 400)), g.const(randn(rng, 20, 400)), None], options)
    bounded, calls = model(g.build(y)), [Call(0, (randn(rng, 50, 400),))]
    ((expected,),) = oracle.run(Interpreter(bounded), calls)
    inside = np.abs(expected) < 1
    assert inside.any()
    assert not inside.all()
    off = np.where(inside, expected + np.float32(1e-4), expected).astype(np.float32)
    assert not oracle.differences(bounded, calls, [[expected]], [[off]])
    off = np.where(inside, expected, expected * np.float32(1 - 1e-6)).astype(np.float32)
    assert oracle.differences(bounded, calls, [[expected]], [[off]])


@pytest.mark.nightly
def test_a_process_that_dies_is_a_finding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    batch = work.Batch(seed=0, number=0, graphs=1, theme=4, mode="queued", first=-1)
    worker = work.Worker(batch, tmp_path, None)
    with pytest.raises(EOFError):
        while worker.hear() is None:
            pass
    assert worker.lost("crash").findings[0].kind == "crash"


def test_adapts_weights_to_halves() -> None:
    drawn = draw([7, 0], THEMES[0], families_of(THEMES[0], np.random.default_rng(0), 12))
    halved: Model = work.adapted(drawn, MODES["fp16 weights"]).model
    constants = [t.data for g in halved.subgraphs for t in g.tensors if t.data is not None and t.dtype == np.float32]
    assert all(np.array_equal(c, c.astype(np.float16).astype(np.float32)) for c in constants)
