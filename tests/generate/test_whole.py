"""A generation in one invoke: the tokens of step by step, in one launch; and the loop in LiteRT."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT
from ai_edge_litert.interpreter import OpResolverType

from litecl import Generator
from litecl.generate.whole import STOPS, looped
from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.writer import write, write_file
from support.causal_lm import CausalLM
from support.command import data, failure
from support.shared import SHARED

LM = CausalLM()
LLM = SHARED / "llm"
PROMPT = np.random.default_rng(0).integers(0, 300, 21).tolist()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return LM.write(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module", params=[True, False], ids=["numpy", "delegate"])
def generator(path: Path, request: pytest.FixtureRequest) -> Generator:
    return Generator(path, cpu=request.param)


@pytest.mark.parametrize(("prompt", "count"), [(1, 1), (1, 20), (7, 30), (21, 43)])
def test_tokens(generator: Generator, prompt: int, count: int) -> None:
    """And the session goes on from there, either way."""
    session = generator.session()
    got = session.generate(PROMPT[:prompt], max_tokens=count, whole=True)
    assert [*got.tokens] == LM.greedy(PROMPT[:prompt], count)
    assert (got.finish, got.timing.decode_tokens) == ("max_tokens", count)
    text = [*session.tokens]
    if len(text) < 55:
        assert [*session.generate([5], max_tokens=3).tokens] == LM.greedy([*text, 5], 3)
        text = [*session.tokens]
        assert [*session.generate(max_tokens=3, whole=True).tokens] == LM.greedy(text, 3)


def test_one_launch(path: Path) -> None:
    generator = Generator(path, num_threads=1)
    generator.generate(PROMPT, max_tokens=30, whole=True)
    generator.generate(PROMPT, max_tokens=30, whole=True, temperature=1.0, top_k=40)
    for loop in generator._model._loops.values():
        (delegation,) = loop.runner.delegations
        report: Any = delegation.report()
        assert all(row.claimed for row in report.nodes)
        assert (len(report.partitions), report.counters.host_syncs) == (1, 1)


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 1.0, "top_k": 64},
        {"temperature": 3.0, "top_k": 7},
        {"temperature": 1.5, "top_k": 40, "top_p": 0.8},
        {"temperature": 5.0, "top_k": 1},
        {"temperature": 0.5, "top_k": 9, "top_p": 1e-6},
    ],
    ids=str,
)
def test_tokens_that_are_drawn(generator: Generator, options: dict[str, Any]) -> None:
    """The same numbers draw the same tokens as step by step, and the session goes on with the next ones."""
    for seed in range(4):
        one, other = generator.session(), generator.session()
        for session, whole in ((one, False), (other, True)):
            session.generate(PROMPT[:9], max_tokens=25, seed=seed, whole=whole, **options)
            session.generate(max_tokens=5, **options)
        assert one.tokens == other.tokens


def test_where_it_ends(generator: Generator) -> None:
    tokens = LM.greedy(PROMPT, 30)
    end = tokens[9]
    got = generator.generate(PROMPT, max_tokens=30, whole=True, stop_tokens=[9999, end])
    assert ([*got.tokens], got.finish) == (tokens[: tokens.index(end) + 1], "stop token")
    full = generator.generate(PROMPT, whole=True)
    assert (len(full.tokens), full.finish) == (LM.slots - len(PROMPT) + 1, "context")
    assert full.tokens == generator.generate(PROMPT).tokens


def test_sessions_take_turns(generator: Generator) -> None:
    one, other = generator.session(), generator.session()
    one.generate(PROMPT[:8], max_tokens=5, whole=True)
    other.generate(PROMPT[9:15], max_tokens=5, whole=True)
    for session in (one, other, one):
        text = [*session.tokens]
        assert [*session.generate(max_tokens=4, whole=True).tokens] == LM.greedy(text, 4)


def test_a_stream_that_is_left(generator: Generator) -> None:
    """Tokens that nobody fetched are none of the session's."""
    session = generator.session()
    for _ in session.stream(PROMPT, max_tokens=20, whole=True):
        break
    assert [*session.tokens] == [*PROMPT, *LM.greedy(PROMPT, 1)]
    assert [*session.generate(max_tokens=5).tokens] == LM.greedy([*session.tokens[:22]], 5)


def test_embeddings_of_a_file_beside(tmp_path: Path) -> None:
    write_file(LM.model(embeddings=True), tmp_path / "model.tflite")
    write_file(LM.embedder(), tmp_path / "embedder.tflite")
    for cpu in (True, False):
        got = Generator(tmp_path / "model.tflite", cpu=cpu).generate(PROMPT, max_tokens=20, whole=True)
        assert [*got.tokens] == LM.greedy(PROMPT, 20)


@pytest.mark.filterwarnings("ignore:invalid value encountered")
@pytest.mark.parametrize("cpu", [True, False])
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_logits_that_are_no_numbers(cpu: bool, wrong: float, tmp_path: Path) -> None:
    """They are told of, as step by step."""
    broken = CausalLM()
    broken.weights["table"][LM.greedy(PROMPT, 4)[3]] = wrong
    generator = Generator(broken.write(tmp_path), cpu=cpu)
    session = generator.session()
    with pytest.raises(ModelError, match="no largest number"):
        session.generate(PROMPT, max_tokens=20, whole=True)
    assert session.tokens == ()
    with pytest.raises(ModelError, match="no largest number"):
        [*session.stream(PROMPT, max_tokens=20, whole=True)]
    assert [*session.tokens] == [*PROMPT, *LM.greedy(PROMPT, 4)]


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 1.0},
        {"temperature": 1.0, "top_k": 65},
        {"repetition_penalty": 1.1},
        {"presence_penalty": 1.0},
        {"frequency_penalty": -1.0},
        {"logit_bias": {3: 1}},
        {"stop": "x"},
        {"log_probs": True},
        {"logits": True},
        {"stop_tokens": range(STOPS + 1)},
    ],
    ids=str,
)
def test_what_it_does_not_do(generator: Generator, options: dict[str, Any]) -> None:
    session = generator.session()
    with pytest.raises(ModelError, match=r"^whole: expected"):
        session.generate(PROMPT, max_tokens=3, whole=True, **options)
    assert session.tokens == ()
    assert [*session.generate(PROMPT, max_tokens=3).tokens] == LM.greedy(PROMPT, 3)


def test_the_loop_in_litert(path: Path) -> None:
    """The same file runs there, with the same tokens."""
    generator = Generator(path, cpu=True)
    model = generator._model
    made = looped(generator._interpreter.model, model._decode, {}, LM.slots, None)
    litert = LiteRT(model_content=bytes(write(made)), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    run = litert.get_signature_runner("generate")
    tokens = LM.greedy([7], 25)
    given = {"count": np.int32(25), "position": np.int32(0), "token": np.int32(7)}
    caches = model.values(model.caches())
    found = run(**given, stops=np.full(STOPS, -1, np.int32), **caches)
    assert found["text"][: found["steps"]].tolist() == tokens
    assert found["finite"]
    stopped = run(**given, stops=np.array([tokens[3]] + [-1] * (STOPS - 1), np.int32), **caches)
    assert stopped["text"][: stopped["steps"]].tolist() == tokens[: tokens.index(tokens[3]) + 1]


@pytest.mark.parametrize("embeddings", [False, True])
def test_a_file_with_the_loop(embeddings: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In LiteRT: a prompt by the file's own prefill, and then all tokens in one invoke."""
    write_file(LM.model(embeddings=embeddings), tmp_path / "model.tflite")
    write_file(LM.embedder(), tmp_path / "embedder.tflite")
    found = data(capsys, "convert", tmp_path / "model.tflite", "--generate", "20", "-o", tmp_path / "out.tflite")
    assert [each["key"] for each in found["signatures"]] == ["prefill_16", "prefill_4", "decode", "generate"]
    litert = LiteRT(str(tmp_path / "out.tflite"), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    caches = {name: np.zeros((1, 2, 64, 8), np.float32) for name in ("kv_cache_k_0", "kv_cache_v_0")}
    read = LM.weights["table"][PROMPT[:4]][None] if embeddings else np.array([PROMPT[:4]], np.int32)
    mask = np.where(np.arange(64) <= np.arange(4)[:, None], 0, -1e30).astype(np.float32)[None, None]
    given = {"embeddings" if embeddings else "tokens": read, "input_pos": np.arange(4, dtype=np.int32), "mask": mask}
    caches = litert.get_signature_runner("prefill_4")(**given, **caches)
    numbers = {"count": np.int32(20), "position": np.int32(4), "token": np.int32(PROMPT[4])}
    made = litert.get_signature_runner("generate")(**numbers, stops=np.full(STOPS, -1, np.int32), **caches)
    assert made["text"].tolist() == LM.greedy(PROMPT[:5], 20)


def test_files_that_get_no_loop(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.tflite"
    assert "from 1 to 64 tokens" in failure(capsys, "convert", path, "--generate", "65", "-o", out)
    write_file(LM.model(embeddings=True), tmp_path / "alone.tflite")
    told = failure(capsys, "convert", tmp_path / "alone.tflite", "--generate", "5", "-o", out)
    assert "'embeddings': expected an embedder that computes it" in told
    told = failure(capsys, "convert", path, "--generate", "5", "--verify", "--quantize", "int8", "-o", out)
    assert "--generate: --quantize, --verify: no effect" in told
    assert not out.exists()


@pytest.mark.skipif(not LLM.is_dir(), reason="../shared/llm (exported language models) is not here")
@pytest.mark.parametrize("name", ["llama", "llama_wi4", "gemma3_gpu", "gemma3_gpu_wi8_emb4"])
@pytest.mark.parametrize("cpu", [True, False], ids=["numpy", "delegate"])
def test_exported_files(name: str, cpu: bool) -> None:
    embedder = LLM / "gemma3_gpu_embedder_emb4.tflite" if "gemma3" in name else None
    generator = Generator(LLM / f"{name}.tflite", embedder=embedder, cpu=cpu)
    prompt = np.random.default_rng(6).integers(3, 512, 19).tolist()
    one, other = (generator.generate(prompt, max_tokens=50, whole=whole, stop_tokens=()) for whole in (False, True))
    assert one.tokens == other.tokens
