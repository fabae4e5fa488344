"""Random graphs on the device: a short run of ``litecl.perf.compare.fuzz_graphs``, and that it finds what is wrong."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from litecl.delegate.ops import CL_OPS
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Model
from litecl.interpreter.ops import unary
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.schema import ActivationFunctionType
from litecl.perf.compare import fuzz_graphs
from litecl.perf.compare.graph_fuzz import elementwise, oracle, pairs, work
from litecl.perf.compare.graph_fuzz.graphs import THEMES, Call, Drawn, draw, families_of, kind_of
from litecl.perf.compare.graph_fuzz.modes import MODES
from support.build import Graph, model, randn


@pytest.mark.parametrize(
    ("mode", "batch", "graphs"), [("one thread", 2, 30), ("two threads", 7, 30), ("as a GPU", 17, 4)]
)
def test_random_graphs(mode: str, batch: int, graphs: int, capsys: pytest.CaptureFixture[str]) -> None:
    """No graph of a batch differs; ``python -m litecl.perf.compare.fuzz_graphs`` is the long form."""
    arguments = ["--graphs", str(graphs), "--families", "3", "--start", str(batch), "--modes", mode, "--json"]
    assert fuzz_graphs.main(arguments) == 0, capsys.readouterr().out


def _models(seeds: int) -> list[Drawn]:
    rngs = [np.random.default_rng(seed) for seed in range(seeds)]
    return [draw([7, i], theme, families_of(theme, rng, 12)) for theme in THEMES for i, rng in enumerate(rngs)]


def test_draws_every_operator() -> None:
    """Products of every type, too."""
    counts: Counter[tuple[str, str]] = Counter()
    for drawn in _models(14):
        counts.update((n.op.name, kind_of(g, n)) for g in drawn.model.subgraphs for n in g.nodes)
        oracle.run(Interpreter(drawn.model), drawn.calls[:1])
    assert not {*(op.name for op in CL_OPS), "IF", "WHILE", "CALL"} - {name for name, _ in counts}
    for name in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"):
        kinds = {"float32", "hybrid", "quantized int8", "quantized uint8", "quantized int16"}
        assert {kind for op, kind in counts if op == name} >= kinds


def test_draws_the_same_again() -> None:
    families = families_of(THEMES[0], np.random.default_rng(0), 8)
    first, second = (draw([1, 2], THEMES[0], families) for _ in range(2))
    assert [node.op for node in first.model.subgraphs[0].nodes] == [node.op for node in second.model.subgraphs[0].nodes]
    assert all(np.array_equal(a, b) for a, b in zip(first.calls[0].feeds, second.calls[0].feeds, strict=True))


def test_finds_a_wrong_kernel_and_makes_its_graph_small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """NEG for ABS: found among nodes that hide it, and cut out of them."""
    monkeypatch.setattr("litecl.delegate.claim.options.CL_OPS", {**CL_OPS, unary.ABS: CL_OPS[unary.NEG]})
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


def test_a_process_that_dies_is_a_finding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    batch = work.Batch(seed=0, number=0, graphs=1, theme=4, mode="queued", first=-1)
    worker = work.Worker(batch, tmp_path, None)
    with pytest.raises(EOFError):
        while worker.hear() is None:
            pass
    assert worker.lost("crash").findings[0].kind == "crash"


def test_adapts_weights_to_halves() -> None:
    drawn = replace(_models(1)[0])
    halved: Model = work.adapted(drawn, MODES["fp16 weights"]).model
    constants = [t.data for g in halved.subgraphs for t in g.tensors if t.data is not None and t.dtype == np.float32]
    assert all(np.array_equal(c, c.astype(np.float16).astype(np.float32)) for c in constants)
