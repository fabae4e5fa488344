"""``litecl.bisect(fp16=...)`` names what half precision breaks, and the nodes that must stay in float32."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import litecl
from litecl.bisection.keep import fewest
from litecl.bisection.survey import Survey
from litecl.cli.parser import main
from litecl.delegate import CLDelegate
from litecl.halves import Emulation
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Quantization, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.quantize import QUANTIZE
from litecl.interpreter.ops.unary import TANH
from litecl.interpreter.schema import TensorType
from litecl.perf.feeds import run_on
from support import networks, oracle
from support.bisect_models import doubling
from support.build import Graph, model, randn
from support.half_models import FAILING, Failing

MODES = ("storage", "sums", "both")
_CASES = [(name, mode) for name in FAILING for mode in FAILING[name]().ways]


def _surveyed(case: Failing, mode: str) -> Survey:
    found = litecl.bisect(case.content, inputs={"main_in0": case.feed}, fp16=mode)  # type: ignore[arg-type]
    assert found.halves is not None
    assert found.verdict == "fault"
    return found.halves


def _emulated(case: Failing, mode: str, keep_float: tuple[object, ...] = ()) -> Array:
    interpreter = Interpreter(model_content=case.content, delegates=[Emulation(mode, keep_float)])  # type: ignore[arg-type]
    return run_on(interpreter, [case.feed])[0]


@pytest.mark.parametrize(("name", "mode"), _CASES)
def test_what_fails_in_halves(name: str, mode: str) -> None:
    case = FAILING[name]()
    survey = _surveyed(case, mode)
    first = next(finding for finding in survey.named if finding.overflows)
    ways = {way for way in ("result", "sum") if getattr(first, way)}
    assert (first.op, ways) == (case.op, case.ways[mode]), survey.named
    if ways:
        assert max(first.result, first.sum) > 65504
        assert any("passes 65,504" in text for text in first.what(survey.share))
    got = _emulated(case, mode)
    assert np.isfinite(got).all() == case.is_finite
    assert survey.error > survey.share


@pytest.mark.parametrize(("name", "mode"), _CASES)
def test_what_is_kept_in_float32(name: str, mode: str) -> None:
    """With the nodes that are named the model is right, without any one of them it is not; a delegate takes them."""
    case = FAILING[name]()
    survey = _surveyed(case, mode)
    (expected,) = oracle.run(case.content, [case.feed])
    assert 0 < len(survey.keep_float) < len(survey.findings)
    got = _emulated(case, mode, survey.keep_float)
    assert np.abs(got - expected).max() <= 0.01 * np.abs(expected).max()
    assert survey.kept_error <= 0.01 < survey.error
    delegate = CLDelegate("native", precision="fp16", keep_float=survey.keep_float, cache_dir=None)
    Interpreter(model_content=case.content, delegates=[delegate]).allocate_tensors()


@pytest.mark.parametrize("mode", MODES)
def test_models_that_are_fine(mode: str) -> None:
    """A network of images and one of words: rounding, and nothing that must be kept."""
    for content in (networks.efficientnet_b0(32), networks.bert(8, 1, 2, 32, 4)):
        found = litecl.bisect(content, fp16=mode)  # type: ignore[arg-type]
        assert (found.verdict, found.fault) == ("right", None)
        assert found.halves is not None
        assert (found.halves.keep_float, found.halves.error <= 0.01) == ((), True)
        assert not any(finding.overflows for finding in found.halves.findings)
        assert found.halves.error > 1e-4  # it is in halves


def test_small_numbers_are_told_of() -> None:
    """An epsilon of 1e-8 is 0 in halves: the root of zeros is infinite, though no number is large."""
    case = FAILING["an RMS norm with a small epsilon"]()
    survey = _surveyed(case, "storage")
    assert [f.op for f in survey.named if f.vanished] == ["SQUARE", "MEAN", "ADD"]
    assert [f.what(0.01)[-1] for f in survey.named if f.op == "RSQRT"] == ["the result is not finite"]


def test_the_search_for_the_fewest() -> None:
    """Of sixty nodes two must be kept, besides one that is always."""
    asked: list[list[int]] = []

    def is_right(kept: list[int]) -> bool:
        asked.append([*kept])
        return {17, 40} <= {*kept}

    assert sorted(fewest([99], range(60), is_right)) == [17, 40, 99]
    assert len(asked) < 45
    assert fewest([1], [2, 3], lambda kept: True) == [1]
    assert fewest([], [], lambda kept: False) == []


def test_a_device_that_keeps_nodes_is_bisected_with_them() -> None:
    """``keep_float`` by place holds for the parts of a model too, which have other places."""
    g, rng = Graph(), np.random.default_rng(3)
    x = g.op(TANH, [g.input((3, 600))], NoOptions())
    for columns, depth in ((520, 600), (530, 520)):
        weights = g.const(randn(rng, columns, depth, scale=0.04))
        x = g.op(FULLY_CONNECTED, [x, weights, None], FullyConnectedOptions())
    content = write(model(g.build(x)))
    options = {"precision": "fp16", "relative": 1e-5, "cache_dir": None, "num_threads": 1}
    assert litecl.bisect(content, "native", keep_float=[1, 2], **options).verdict == "right"  # type: ignore[arg-type]
    one = litecl.bisect(content, "native", keep_float=[1], **options)  # type: ignore[arg-type]
    assert one.fault is not None
    assert one.fault.nodes == (2,)


def test_nodes_that_are_kept_already() -> None:
    """The emulation keeps them in the whole model and in its parts, and the survey proposes only further ones."""
    case = FAILING["a sum over pixels"]()
    given = {"main_in0": case.feed}
    both = litecl.bisect(case.content, inputs=given, fp16="both", keep_float=[0, 1])
    assert both.halves is not None
    assert (both.verdict, both.halves.error <= 0.01, both.halves.keep_float) == ("right", True, ())
    one = litecl.bisect(case.content, inputs=given, fp16="both", keep_float=["SUM_2"])
    assert one.halves is not None
    assert one.fault is not None
    assert (one.fault.ops, one.halves.keep_float) == (("MUL",), ("MUL_4",))


def test_emulations_are_runtimes() -> None:
    case = FAILING["an RMS norm"]()
    given = {"main_in0": case.feed}
    sums = litecl.bisect(case.content, "fp16-sums", inputs=given)
    assert sums.fault is not None
    assert (sums.fault.ops, sums.halves) == (("MEAN",), None)
    assert litecl.bisect(case.content, "fp16-both", "fp16-both", given).verdict == "right"
    found = litecl.bisect(case.content, "interpreter", "fp16-storage", given)
    assert (found.tolerance.relative, found.halves) == (0.01, None)
    assert found.verdict != "right"
    with pytest.raises(ModelError, match="fp16: expected one of storage, sums, both, got 'half'"):
        litecl.bisect(case.content, fp16="half")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="pass one of them"):
        litecl.bisect(case.content, "litert", fp16="both")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = FAILING["a sum over pixels"]()
    path, feed = tmp_path / "model.tflite", tmp_path / "x.npy"
    path.write_bytes(case.content)
    np.save(feed, case.feed)
    arguments = ["bisect", str(path), "--input", str(feed), "--fp16", "both"]
    assert main([*arguments, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["suspect"], found["verdict"], found["fault"]["ops"]) == ("fp16-both", "fault", ["SUM"])
    kept = found["halves"]["keep_float"]
    assert [finding["op"] for finding in found["halves"]["findings"] if finding["name"] in kept] == ["SUM", "MUL"]
    page = tmp_path / "page.html"
    assert main([*arguments, "--page", str(page)]) == 1
    said = capsys.readouterr().out
    assert "SUM (node 0) is wrong given right inputs." in page.read_text()
    assert "a partial sum of" in page.read_text()
    assert f"Keep in float32: {','.join(kept)}" in said
    assert "passes 65,504" in said
    run = ["run", str(path), "--input", str(feed), "--precision", "fp16", "--cache", str(tmp_path / "cache")]
    assert main([*run, "--device", "native", "--keep-float", ",".join(kept)]) == 0
    assert main([*run, "--device", "native", "--keep-float", "nothing"]) == 1
    capsys.readouterr()
    fine = tmp_path / "fine.tflite"
    fine.write_bytes(networks.bert(8, 1, 1, 32, 4))
    assert main(["bisect", str(fine), "--fp16", "both"]) == 0
    assert "all outputs are right" in capsys.readouterr().out


def test_rounding_that_grows() -> None:
    """Every node is right in halves by itself, and a single run shows the error after each."""
    found = litecl.bisect(doubling(8), fp16="storage")
    assert found.verdict == "rounding"
    assert [point.node for point in found.growth] == [*range(25)]
    assert found.growth[0].size < 1e-3 < 0.01 < found.growth[-1].size
    assert found.halves is not None
    assert not any(finding.overflows for finding in found.halves.findings)
    assert found.halves.kept_error <= 0.01 < found.halves.error


def test_integer_outputs_may_be_a_step_off() -> None:
    """A quantized output is right in halves if bisect's steps allow it."""
    g = Graph()
    y = g.op(TANH, [g.input((1, 500))], NoOptions())
    by = Quantization(np.full(1, 1 / 128, np.float32), np.zeros(1, np.int64))
    (out,) = g.node(QUANTIZE, [y], [TensorSpec(TensorType.INT8, (1, 500))], NoOptions())
    g.tensors[out] = replace(g.tensors[out], quantization=by)
    content = write(model(g.build(out)))
    found = litecl.bisect(content, fp16="storage")
    assert (found.verdict, found.halves and found.halves.error) == ("right", 0.0)
    strict = litecl.bisect(content, fp16="storage", steps=0)
    assert strict.halves is not None
    assert (strict.verdict, strict.halves.error, len(strict.halves.keep_float) > 0) == ("fault", 1.0, True)
