"""``litecl bench --against``: runtimes that agree, differ, refuse the model or aren't installed."""

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.cli import main, peers
from litecl.cli.commands.bench import _data
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import SUB, SubOptions
from litecl.interpreter.ops.bucketize import BUCKETIZE, BucketizeOptions
from litecl.interpreter.ops.unary import NEG
from litecl.perf import contenders
from litecl.perf.bench import BenchOptions, bench
from litecl.perf.contenders import Refusal, start_peer
from litecl.perf.feeds import difference, random_inputs, run_on
from litecl.perf.isolated import answered
from litecl.perf.models import layers
from litecl.perf.peers import PEERS, chosen
from litecl.perf.peers.peer import Peer
from litecl.perf.peers.positional import Positional, positions
from support.build import Graph, model

INSTALLED = [
    pytest.param(name, marks=pytest.mark.skipif(not PEERS[name].is_installed, reason=f"{name} isn't installed"))
    for name in ("openvino", "onnxruntime")
]


class Wrong(Interpreter):
    """Adds 1 to its outputs."""

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> Array:
        return super().get_tensor(tensor_index, subgraph_index) + 1


def test_a_peer_is_compiled_again_only_for_other_shapes() -> None:
    """Its variables keep their values, as in LiteRT."""
    g = Graph()
    x = g.input((2,), signature=(-1,))
    content = write(model(g.build(g.op(NEG, [x], NoOptions()))))
    compiled: list[Any] = []
    runtime = Positional(content, lambda shapes, outputs: compiled.append(shapes))  # type: ignore[arg-type,func-returns-value]
    for size in (2, 2, 3, 3, 2):
        runtime.resize_tensor_input(x, [size])
        runtime.allocate_tensors()
    assert [[*shapes.values()] for shapes in compiled] == [[(2,)], [(3,)], [(2,)]]


def _refuse(content: bytes, num_threads: int) -> Any:
    raise KeyError("no kernel for FULLY_CONNECTED")


def _fake(load: Callable[[bytes, int], Any]) -> Peer:
    return Peer({"sys": "fake"}, lambda: sys, load)


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PEERS, "litert", _fake(lambda content, num_threads: Interpreter(content)))
    monkeypatch.setitem(PEERS, "openvino", _fake(lambda content, num_threads: Wrong(content)))
    monkeypatch.setitem(PEERS, "onnxruntime", _fake(_refuse))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (file := tmp_path / "dense.tflite").write_bytes(layers.dense(8, 4))
    return file


def test_only_a_runtime_that_agrees_is_the_fastest(
    path: Path, fakes: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that refuses the model has a row without figures and a reason."""
    asked = ["bench", str(path), "--against", "all", "--threads", "1", "--runs", "3"]
    assert main([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [s["name"] for s in found["subjects"]] == ["litecl", "litert", "openvino"]
    assert [(c["name"], c["agrees"]) for c in found["comparisons"]] == [("litert", True), ("openvino", False)]
    assert found["fastest"] == found["comparisons"][0]
    (refusal,) = found["refusals"]
    assert (refusal["name"], refusal["num_threads"]) == ("onnxruntime", 1)
    assert main([*asked, "-o", str(tmp_path / "table.csv"), "-o", str(tmp_path / "table.md")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "onnxruntime (1 thread): cannot run the model: 'no kernel for FULLY_CONNECTED'" in shown
    assert "more than rounding explains" in shown.partition("openvino (1 thread) / litecl")[2]
    assert "fastest of the others: litert (1 thread), median x" in shown
    row = list(csv.DictReader((tmp_path / "table.csv").open()))[-1]
    assert (row["runtime"], row["median_ms"]) == ("onnxruntime", "")
    assert "no kernel for FULLY_CONNECTED" in row["warnings"]


def test_a_folder_has_a_table_of_the_fastest(path: Path, fakes: None, capsys: pytest.CaptureFixture[str]) -> None:
    """Models of a folder run in another process, without the fakes; so the table shows this process's figures."""
    content = path.read_bytes()
    options = BenchOptions({"num_threads": 1}, runs=2, against=("litert", "openvino"))
    result = bench(content, random_inputs(Interpreter(content).get_input_details(), 0), options)
    cases = [{"model": name, **_data(result, None)} for name in ("a.tflite", "b.tflite")]
    assert [(p.name, p.num_threads, p.models) for p in peers.peers(cases)] == [
        ("litert", 1, 2),
        ("openvino", 1, 2),
        (peers.FASTEST, None, 2),
    ]
    *_, fastest, _ = peers.comparisons(cases)
    (_, rows) = fastest.renderables  # type: ignore[union-attr]
    assert [str(cell) for cell in rows.columns[1].cells] == ["litert (1 thread)"] * 2


def test_says_how_to_install_a_missing_runtime(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in PEERS:
        monkeypatch.setitem(PEERS, name, Peer({"no_such_module": "its-package"}, lambda: None, _refuse))
    assert main(["bench", str(path), "--against", "openvino"]) == 1
    assert "openvino needs other packages: pip install its-package" in capsys.readouterr().err
    assert main(["bench", str(path), "--against", "all"]) == 1
    assert "pip install ai-edge-litert openvino" in capsys.readouterr().err


def test_all_stands_for_those_installed_without_reference_kernels(fakes: None) -> None:
    assert chosen(["all"]) == ("litert", "openvino", "onnxruntime")
    assert chosen(["onnxruntime", "all", "litert-reference"]) == (
        "onnxruntime", "litert", "openvino", "litert-reference"
    )  # fmt: skip


def test_language_models_are_measured_against_litert_alone(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", str(path), "--generate", "--against", "openvino"]) == 1
    assert "expected --against litert or litert-reference, got openvino" in capsys.readouterr().err


def test_positions_are_those_of_names_or_else_the_order() -> None:
    assert positions("inputs", ["a", "b"], [{"b"}, {"x", "a"}]) == [1, 0]
    assert positions("inputs", ["a", "b"], [{"b"}, {"x"}]) == [0, 1]
    assert positions("inputs", ["a", "b"], [{"a", "b"}, {"b"}]) == [0, 1]
    with pytest.raises(LiteclError, match="it has 1 of the model's 2 outputs"):
        positions("outputs", ["a", "b"], [{"a"}])


def _subtraction() -> bytes:
    """x - y, whose inputs must not be exchanged, and x - y - y."""
    g = Graph()
    x, y = g.input((1, 3), signature=(-1, 3)), g.input((1, 3), signature=(-1, 3))
    once = g.op(SUB, [x, y], SubOptions())
    return write(model(g.build(once, g.op(SUB, [once, y], SubOptions()))))


@pytest.mark.parametrize("name", INSTALLED)
def test_runs_several_inputs_and_outputs_of_other_sizes(name: str) -> None:
    """Twice, on one and on two threads, and with other values."""
    content, rng = _subtraction(), np.random.default_rng(0)
    for num_threads in (1, 2):
        runtime = PEERS[name].load(content, num_threads)
        for _ in range(2):
            values = [rng.standard_normal((5, 3)).astype(np.float32) for _ in range(2)]
            assert difference(run_on(runtime, values), run_on(Interpreter(content), values)) < 1e-6


@pytest.mark.parametrize("name", INSTALLED)
def test_is_compared(name: str, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["bench", str(path), "--against", name, "--threads", "1", "--runs", "3", "--streams", "2", "--json"]
    assert main(asked) == 0
    found = json.loads(capsys.readouterr().out)
    (compared,) = found["comparisons"]
    assert compared["difference"] < 1e-5
    assert compared["agrees"]
    assert compared["version"]
    assert [(s["name"], s["streams"]) for s in found["subjects"]][-1] == (name, 2)


@pytest.mark.parametrize("name", INSTALLED)
def test_a_refusal_has_a_reason(name: str) -> None:
    g = Graph()
    content = write(model(g.build(g.op(BUCKETIZE, [g.input((4,))], BucketizeOptions((0.5, 1.5))))))
    refused = start_peer(name, 1, content, {"main_in0": np.ones(4, np.float32)})
    assert isinstance(refused, Refusal)
    assert "BUCKETIZE" in refused.reason.upper()


@pytest.mark.skipif(not PEERS["openvino"].is_installed, reason="openvino isn't installed")
def test_openvino_sends_nothing(tmp_path: Path) -> None:
    """Its telemetry would keep an identity in the home folder and send an event at import."""
    code = "import sys; from litecl.perf.peers import openvino; openvino.module(); "
    code += "sys.exit('openvino_telemetry' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "HOME": str(tmp_path)})
    assert not list(tmp_path.iterdir())


def test_a_process_that_dies_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of LiteRT and OpenVINO on some valid models."""
    monkeypatch.setattr(contenders, "answered", lambda _, *rest: answered("os.abort", *rest))
    refused = start_peer("litert", 1, layers.dense(8, 4), {})
    assert isinstance(refused, Refusal)
    assert refused.reason == "its process was ended by SIGABRT"


def test_a_report_is_written_without_a_peer_that_refuses(fakes: None, path: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.json"
    asked = ["--against", "onnxruntime", "--threads", "1", "--runs", "2", "--no-start", "-o", str(page)]
    assert main(["report", str(path), *asked]) == 0
    written = json.loads(page.read_text())
    assert written["peers"] == []
    assert "onnxruntime (1 thread) cannot run the model: 'no kernel for FULLY_CONNECTED'" in written["notes"]
