"""Where generation ends, and what is refused, on a small model."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl import Generator
from litecl.interpreter.errors import ArgumentError, ModelError, ModelFileNotFound
from litecl.interpreter.file.writer import write_file
from support.build import Graph, model
from support.causal_lm import CausalLM

LM = CausalLM()
PROMPT = np.random.default_rng(0).integers(0, 300, 40).tolist()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return LM.write(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module", params=[True, False], ids=["numpy", "delegate"])
def generator(path: Path, request: pytest.FixtureRequest) -> Generator:
    return Generator(path, cpu=request.param)


def test_stop_tokens(generator: Generator) -> None:
    tokens = LM.greedy(PROMPT[:5], 12)
    got = generator.generate(PROMPT[:5], max_tokens=12, stop_tokens=[tokens[6], 9999])
    assert got.tokens == tuple(tokens[: tokens.index(tokens[6]) + 1])
    assert got.finish == "stop token"


def test_a_full_context(generator: Generator) -> None:
    """The last token that is generated is one that the model cannot read any more."""
    session = generator.session()
    got = session.generate(PROMPT[:39])
    assert (len(session.tokens), session.room, got.finish) == (LM.slots + 1, 0, "context")
    assert [*got.tokens][:25] == LM.greedy(PROMPT[:39], 25)
    for prompt in ([], [1]):
        with pytest.raises(ModelError, match="do not fit into the context of 64, of which 65 are used"):
            session.stream(prompt)
    exactly = generator.session().generate([1] * LM.slots)
    assert (len(exactly.tokens), exactly.finish) == (1, "context")


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ([1] * 65, "65 tokens do not fit into the context of 64"),
        ([300], r"tokens \[300\] are out of range for a vocabulary of 300"),
        ([-1], r"out of range"),
        ([], "expected at least one token"),
        ("", "expected at least one token"),
        ("some text", "a text needs a tokenizer"),
    ],
)
def test_prompts_that_cannot_be(generator: Generator, prompt: Any, said: str) -> None:
    """They are refused before anything changes, when the stream is asked for."""
    session = generator.session()
    with pytest.raises(ModelError, match=said):
        session.stream(prompt)
    assert session.tokens == ()
    assert [*session.generate(PROMPT[:4], max_tokens=3).tokens] == LM.greedy(PROMPT[:4], 3)


@pytest.mark.parametrize("prompt", [[1.5], ["a"], [None], 7, [[1, 2]]], ids=str)
def test_prompts_of_another_type(generator: Generator, prompt: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^prompt: expected"):
        generator.stream(prompt)


def test_options_that_there_are_not(generator: Generator) -> None:
    with pytest.raises(ArgumentError, match=r"got \['temprature'\]"):
        generator.stream(PROMPT, temprature=1.0)
    for wrong in ({"max_tokens": 0}, {"stop": ""}, {"stop": "x"}, {"top_k": 0}):
        with pytest.raises(ModelError):
            generator.stream(PROMPT, **wrong)


def test_shorter_contexts(path: Path) -> None:
    generator = Generator(path, cpu=True, context_length=20)
    assert len(generator.session().generate(PROMPT[:15]).tokens) == 6
    with pytest.raises(ModelError, match="hold 64 tokens, got 65"):
        Generator(path, cpu=True, context_length=65)
    with pytest.raises(ModelError, match="at least 1"):
        Generator(path, cpu=True, context_length=0)


def test_closed(path: Path) -> None:
    with Generator(path, cpu=True) as generator:
        session = generator.session()
    with pytest.raises(ModelError, match="closed"):
        session.generate([1], max_tokens=1)


def test_models_that_are_none_of_language(tmp_path: Path) -> None:
    g = Graph()
    write_file(model(g.build(g.input((1, 2)))), tmp_path / "none.tflite")
    with pytest.raises(ModelError, match="expected a language model"):
        Generator(tmp_path / "none.tflite")
    with pytest.raises(ModelFileNotFound):
        Generator(tmp_path / "absent.tflite")
    (tmp_path / "text.txt").write_text("no model at all")
    with pytest.raises(ModelError, match="got none of these") as caught:
        Generator(tmp_path / "text.txt")
    assert "text.txt" in caught.value.__notes__[0]
