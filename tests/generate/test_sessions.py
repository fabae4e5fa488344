"""Sessions of a small model: prompts in pieces, forks, files, turns, errors; against numpy without caches."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl import Generator
from litecl.generate.model import LanguageModel, _keep_all
from litecl.generate.signatures import Entry, Role, Step
from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.writer import write_file
from support.causal_lm import CausalLM
from tools.mutation.raw import changed_bytes, changed_words

LM = CausalLM()
PROMPT = np.random.default_rng(0).integers(0, 300, 40).tolist()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return LM.write(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module", params=[True, False], ids=["numpy", "delegate"])
def generator(path: Path, request: pytest.FixtureRequest) -> Generator:
    return Generator(path, cpu=request.param)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 13, 17, 21, 22, 38])
def test_prompts_of_any_length(generator: Generator, count: int) -> None:
    """They are read by the widest prefills that fit, by wider ones, and by steps of decode."""
    got = generator.generate(PROMPT[:count], max_tokens=12, logits=True, log_probs=True)
    assert list(got.tokens) == LM.greedy(PROMPT[:count], 12)
    exact = LM.logits([*PROMPT[:count], *got.tokens])[count - 1 : -1]
    np.testing.assert_allclose(np.array(got.logits), exact, atol=1e-5)
    chances = np.exp(exact) / np.exp(exact).sum(-1, keepdims=True)
    np.testing.assert_allclose(
        got.log_probs, np.log([row[t] for row, t in zip(chances, got.tokens, strict=True)]), atol=1e-5
    )
    assert got.timing.prefill_tokens == count - 1
    assert (got.timing.decode_tokens, got.finish, got.text) == (12, "max_tokens", "")


@pytest.mark.parametrize(
    ("count", "start", "pieces"),
    [
        (0, 0, []),
        (1, 0, [1]),
        (2, 0, [2]),  # of four
        (6, 0, [4, 2]),
        (9, 0, [9]),  # of sixteen
        (8, 0, [4, 4]),
        (39, 0, [16, 16, 4, 3]),
        (16, 48, [16]),
        (15, 48, [15]),
        (15, 49, [4, 4, 4, 1, 1, 1]),
        (3, 61, [1, 1, 1]),  # a step of four would pass the end of the caches
        (3, 60, [3]),
    ],
)
def test_pieces(generator: Generator, count: int, start: int, pieces: list[int]) -> None:
    assert generator._model.pieces(count, start) == pieces


def test_a_prompt_to_the_end_of_the_context(generator: Generator) -> None:
    """Nothing is written past the end, or moved back from there."""
    prompt = [*PROMPT, *PROMPT[:24]]
    session = generator.session()
    session.generate(prompt[:50], max_tokens=1)
    tokens = [*session.tokens, *prompt[50:63]]
    (got,) = session.generate(prompt[50:63], logits=True).logits or ()
    np.testing.assert_allclose(got, LM.logits(tokens)[-1], atol=1e-5)
    assert len(tokens) == LM.slots


def test_only_caches_of_all_tokens_are_read_past_the_end() -> None:
    """A ring, and the state of a convolution, would lose a token of their own to one that is none."""
    mask = Entry("mask", Role.MASK, (1, 1, 1, 64), np.dtype(np.bool_))
    full = Entry("kv_cache_k_0", Role.CACHE, (1, 2, 64, 8), np.dtype(np.float32))
    turned = Entry("kv_cache_v_0", Role.CACHE, (1, 2, 8, 64), np.dtype(np.float32))
    ring = Entry("kv_cache_k_1", Role.CACHE, (1, 2, 32, 8), np.dtype(np.float32))
    for entries, expected in (((mask, full, turned), True), ((mask, full, ring), False), ((full,), False)):
        decode = Step("decode", 1, entries, (), "logits")
        assert _keep_all(decode, 64 if mask in entries else 0) is expected


def test_embeddings_of_a_file_beside(tmp_path: Path) -> None:
    write_file(LM.model(embeddings=True), tmp_path / "model.tflite")
    with pytest.raises(ModelError, match=r"takes \['embeddings'\].*expected one, got none"):
        Generator(tmp_path / "model.tflite", cpu=True)
    write_file(LM.embedder(), tmp_path / "embedder.tflite")
    for cpu in (True, False):
        assert list(Generator(tmp_path / "model.tflite", cpu=cpu).generate(PROMPT, max_tokens=9).tokens) == LM.greedy(
            PROMPT, 9
        )


def test_a_session_remembers(generator: Generator) -> None:
    session = generator.session()
    first = session.generate(PROMPT[:7], max_tokens=3).tokens
    second = session.generate(PROMPT[7:20], max_tokens=5).tokens
    third = session.generate(max_tokens=2).tokens
    text = [*PROMPT[:7], *first, *PROMPT[7:20]]
    assert list(first) == LM.greedy(PROMPT[:7], 3)
    assert [*second, *third] == LM.greedy(text, 7)
    assert session.tokens == (*text, *second, *third)
    assert session.room == LM.slots - 30


def test_scores(generator: Generator) -> None:
    """Of every token but the first of a session; and the session goes on."""
    session = generator.session()
    exact = LM.logits(PROMPT[:20])
    chances = np.log(np.exp(exact) / np.exp(exact).sum(-1, keepdims=True))
    expected = [row[token] for row, token in zip(chances, PROMPT[1:20], strict=False)]
    np.testing.assert_allclose(session.score(PROMPT[:12]), expected[:11], atol=1e-5)
    np.testing.assert_allclose(session.score(PROMPT[12:20]), expected[11:], atol=1e-5)
    assert [*session.generate(max_tokens=5).tokens] == LM.greedy(PROMPT[:20], 5)


def test_sessions_take_turns(generator: Generator) -> None:
    """What one has in its caches is not another's."""
    prompts = [PROMPT[:9], PROMPT[20:31], PROMPT[5:6]]
    streams = [generator.stream(prompt, max_tokens=10) for prompt in prompts]
    turns = [*zip(*streams, strict=True)]
    for prompt, pieces in zip(prompts, zip(*turns, strict=True), strict=True):
        assert [piece.token for piece in pieces] == LM.greedy(prompt, 10)


def test_sessions_in_threads(generator: Generator) -> None:
    got: dict[int, Any] = {}

    def run(index: int) -> None:
        got[index] = generator.generate(PROMPT[index : index + 12], max_tokens=10).tokens

    threads = [threading.Thread(target=run, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {index: [*tokens] for index, tokens in got.items()} == {
        i: LM.greedy(PROMPT[i : i + 12], 10) for i in range(4)
    }


def test_a_fork_goes_its_own_way(generator: Generator) -> None:
    session = generator.session()
    begun = [*session.generate(PROMPT[:10], max_tokens=4).tokens]
    other = session.fork()
    assert [*other.generate(PROMPT[30:33], max_tokens=5).tokens] == LM.greedy([*PROMPT[:10], *begun, *PROMPT[30:33]], 5)
    assert [*session.generate(max_tokens=5).tokens] == LM.greedy([*PROMPT[:10], *begun], 5)


def test_a_fork_draws_the_same(generator: Generator) -> None:
    session = generator.session()
    session.generate(PROMPT[:10], max_tokens=4, temperature=2.0, seed=3)
    other = session.fork()
    assert (
        session.generate(max_tokens=20, temperature=2.0).tokens == other.generate(max_tokens=20, temperature=2.0).tokens
    )


def test_saved_and_loaded(generator: Generator, path: Path, tmp_path: Path) -> None:
    """In another process too: another generator of the same file."""
    session, file = generator.session(), tmp_path / "session.npz"
    session.generate(PROMPT[:10], max_tokens=4, temperature=2.0, seed=3)
    session.save(file)
    rest = session.generate(PROMPT[10:13], max_tokens=20, temperature=2.0).tokens
    for loaded in (generator.load(file), Generator(path, cpu=True).load(file)):
        assert loaded.generate(PROMPT[10:13], max_tokens=20, temperature=2.0).tokens == rest


def test_files_that_are_no_session_of_the_model(generator: Generator, tmp_path: Path) -> None:
    session, file = generator.session(), tmp_path / "session.npz"
    session.generate(PROMPT[:10], max_tokens=4)
    session.save(file)
    content = file.read_bytes()
    for size in (0, 3, len(content) // 2, len(content) - 3):
        (tmp_path / "cut.npz").write_bytes(content[:size])
        with pytest.raises(ModelError, match=r"cut\.npz: no session"):
            generator.load(tmp_path / "cut.npz")
    with pytest.raises(FileNotFoundError):
        generator.load(tmp_path / "absent.npz")
    other = CausalLM()
    other.weights["out"] += 1
    (tmp_path / "other").mkdir()
    with pytest.raises(ModelError, match="another model"):
        Generator(other.write(tmp_path / "other"), cpu=True).load(file)


def test_seeds(generator: Generator) -> None:
    runs = [generator.generate(PROMPT[:5], max_tokens=20, temperature=3.0, seed=seed).tokens for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]
    assert (
        generator.generate(PROMPT[:5], max_tokens=20, temperature=3.0).tokens
        != generator.generate(PROMPT[:5], max_tokens=20, temperature=3.0).tokens
    )


def test_repetition_penalty(generator: Generator) -> None:
    """No token comes again, of the prompt or generated, where coming again is very unlikely."""
    got = generator.generate(PROMPT[:5], max_tokens=30, repetition_penalty=1e9).tokens
    assert len({*PROMPT[:5], *got}) == len({*PROMPT[:5]}) + 30


def test_an_interrupt_loses_nothing(generator: Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches that were written in part are not trusted: the tokens are read again."""
    session, run, calls = generator.session(), LanguageModel.run, [0]

    def interrupted(self: LanguageModel, tokens: Any, start: int, caches: Any) -> Any:
        calls[0] += 1
        made = run(self, tokens, start, caches)
        if calls[0] == 8:
            for value in caches.values():
                value.write(np.full(value.shape, 7, value.dtype))
            raise KeyboardInterrupt
        return made

    monkeypatch.setattr(LanguageModel, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        session.generate(PROMPT[:9], max_tokens=20)
    tokens = [*session.tokens]
    assert len(tokens) > 10
    assert [*session.generate(max_tokens=8).tokens] == LM.greedy(tokens, 8)


def test_a_stream_may_be_left(generator: Generator) -> None:
    session = generator.session()
    pieces = []
    for piece in session.stream(PROMPT[:9]):
        pieces.append(piece.token)
        if len(session.tokens) == 15:
            break
    assert [*session.tokens[9:], *session.generate(max_tokens=5).tokens] == LM.greedy(PROMPT[:9], 11)
    assert pieces == [*session.tokens[9:15]]


def test_sessions_with_bytes_and_words_that_are_damaged(generator: Generator, tmp_path: Path) -> None:
    """They go on as before, or are refused with a typed error."""
    session = generator.session()
    session.generate(PROMPT[:10], max_tokens=3)
    session.save(tmp_path / "whole.npz")
    content, refused = (tmp_path / "whole.npz").read_bytes(), 0
    for number in range(300):
        change = changed_bytes if number % 2 else changed_words
        (tmp_path / "damaged.npz").write_bytes(change(content, np.random.default_rng(number)))
        try:
            generator.load(tmp_path / "damaged.npz").generate(PROMPT[:2], max_tokens=1)
        except ModelError:
            refused += 1
    assert refused > 200
