"""``dynamic_range`` without a delegate: numpy obeys it too, and agrees with LiteRT in the same mode."""

import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from ai_edge_litert.interpreter import OpResolverType

from litecl import Generator, Predictor
from litecl.cases import hybrid
from litecl.cli import main
from litecl.cli.commands import serve
from litecl.converter import Converter, Quantization
from litecl.interpreter.errors import ArgumentError, ModelError
from support import compare, oracle
from support.all_cases import content
from support.causal_lm import CausalLM
from support.command import data
from support.language_models import Steps, greedy

_RESOLVERS: Any = {"asymmetric": OpResolverType.AUTO, "reference": OpResolverType.BUILTIN_REF}
_PROMPT, _COUNT = [5, 6, 7, 8, 9], 8


@pytest.fixture(scope="module")
def language_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model in which some products have 8-bit weights."""
    path = CausalLM(width=64).write(tmp_path_factory.mktemp("language model"))
    path.write_bytes(Converter.from_tflite(path, Quantization(weights="int8")).convert())
    return path


@pytest.mark.parametrize("mode", _RESOLVERS)
def test_predictors(mode: Any) -> None:
    (case,) = [case for case in hybrid.CASES if case.name == "8 bits, 9 x 16 to 33"]
    wanted = {name: oracle.run(content(case), case.feeds, kind)[0] for name, kind in _RESOLVERS.items()}
    predictor = Predictor(content(case), cpu=True, dynamic_range=mode)
    (got,) = predictor(case.feeds[0]).values()
    compare.assert_close(got, wanted.pop(mode), 1e-6)
    with pytest.raises(AssertionError):
        compare.assert_close(got, *wanted.values(), 1e-3)


def test_the_default_is_the_reference() -> None:
    (case,) = [case for case in hybrid.CASES if case.name == "8 bits, 9 x 16 to 33"]
    (got,) = Predictor(content(case), cpu=True)(case.feeds[0]).values()
    compare.assert_close(got, oracle.run(content(case), case.feeds)[0], 1e-6)


@pytest.mark.parametrize("mode", _RESOLVERS)
def test_generators(mode: Any, language_model: Path) -> None:
    model = language_model.read_bytes()
    wanted = {name: greedy(Steps(model, resolver=kind), _PROMPT, _COUNT) for name, kind in _RESOLVERS.items()}
    with Generator(language_model, cpu=True, dynamic_range=mode) as generator:
        got = generator.generate(_PROMPT, max_tokens=_COUNT, logits=True, stop_tokens=())
    tokens, logits = wanted.pop(mode)
    assert got.tokens == tuple(tokens) and got.logits is not None
    compare.assert_close(np.array(got.logits), np.array(logits), 1e-5)
    ((_, others),) = wanted.values()
    assert np.abs(np.array(got.logits) - np.array(others)).max() > 1e-3


@pytest.mark.parametrize("mode", _RESOLVERS)
def test_generate(mode: Any, language_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command's default is that of its help."""
    words = ("generate", language_model, "--tokens", "5,6,7,8,9", "--max-tokens", _COUNT, "--log-probs", "--cpu")
    flag = () if mode == "asymmetric" else ("--dynamic-range", mode)
    (_, logits) = greedy(Steps(language_model.read_bytes(), resolver=_RESOLVERS[mode]), _PROMPT, _COUNT)
    wanted = [x.max() - np.log(np.exp(x.astype(np.float64)).sum()) for x in logits]
    assert data(capsys, *words, *flag)["log_probs"] == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize(("mode", "peer"), [("asymmetric", "litert"), ("reference", "litert-reference")])
def test_bench(mode: str, peer: str, language_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    size = ("--generate", "--prompt-tokens", 5, "--max-tokens", 2, "--runs", 1)
    found = data(capsys, "bench", language_model, *size, "--cpu", "--dynamic-range", mode, "--against", peer)
    assert found["comparisons"][0]["difference"] < 1e-5


@pytest.mark.parametrize("flags", [(), ("--dynamic-range", "reference")])
def test_serve(flags: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """The command gives its mode to the predictor; the server itself, which may not be installed, has no part in it."""
    for name in ("uvicorn", "litecl.serve.app", "litecl.serve.connections", "litecl.serve.text_app"):
        monkeypatch.setitem(sys.modules, name, MagicMock())
    asked: dict[str, Any] = {}

    def predictor(model: Any, **options: Any) -> None:
        asked.update(options)
        raise ModelError("asked")

    monkeypatch.setattr(serve, "Predictor", predictor)
    assert main(["serve", "model.tflite", "--cpu", *flags]) == 1
    assert (asked["cpu"], asked["dynamic_range"]) == (True, "reference" if flags else "asymmetric")


def test_refused(language_model: Path) -> None:
    for made in (Predictor, Generator):
        with pytest.raises(ArgumentError, match="expected 'reference' or 'asymmetric', got 'both'"):
            made(language_model, cpu=True, dynamic_range="both")
