"""Sessions of a small model: prompts in pieces, forks, files, turns, errors; against numpy without caches."""

import errno
import json
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl import Generator
from litecl.generate import model, runners
from litecl.generate.model import LanguageModel, _keep_all
from litecl.generate.session import Session
from litecl.generate.signatures import Entry, Role, Step
from litecl.interpreter import Interpreter
from litecl.interpreter.device_run import DeviceRun
from litecl.interpreter.errors import ArgumentError, DelegateError, ModelError
from litecl.interpreter.file.writer import write_file
from support.causal_lm import CausalLM
from support.damage import changed_bytes, changed_words
from support.interrupts import interrupted, places

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


def test_a_prompt_costs_no_more_than_in_any_other_steps() -> None:
    """A step costs its width, padding included, and a decode step one token, and each as much again as eight tokens;
    narrow steps may take less than one wide one."""
    lm = CausalLM(words=20, slots=600, prefills=(512, 128))
    split = LanguageModel(Interpreter(lm.model()), {}).pieces

    def least(count: int) -> int:
        wide = [(a, b) for a in (0, 1) for b in range(5) if 512 * a + 128 * b <= lm.slots]
        return min(520 * a + 136 * b + 9 * max(count - 512 * a - 128 * b, 0) for a, b in wide)

    for count in (1, 2, 16, 31, 127, 128, 129, 299, 384, 400, 512, 560):
        pieces = split(count, 0)
        assert sum(pieces) == count
        widths = [1 if n == 1 else 128 if n <= 128 else 512 for n in pieces]
        assert sum(widths) + 8 * len(widths) == least(count), count
    assert split(299, 0) == [128, 128, 43]
    assert split(400, 0) == [400]


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


def test_one_session_in_two_threads(generator: Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other thread, which comes while the model runs, is refused each time, and changes nothing."""
    session, errors = generator.session(), list[str]()

    def intrude() -> None:
        for call in (lambda: session.generate(PROMPT[:2]), lambda: session.score(PROMPT[:2]), session.fork):
            with pytest.raises(ModelError, match="another thread uses this session"):
                call()
            errors.append("refused")

    def meanwhile(run: Callable[..., Any], *given: Any) -> Any:
        thread = threading.Thread(target=intrude)
        thread.start()
        thread.join()
        return run(*given)

    for name in ("run", "generate"):
        monkeypatch.setattr(generator._model, name, partial(meanwhile, getattr(generator._model, name)))
    for whole in (False, True):
        assert [*session.generate(PROMPT[:3], max_tokens=4, whole=whole).tokens] == LM.greedy(session.tokens[:-4], 4)
        assert len(errors) > 3
        errors.clear()


def test_a_mask_that_calls_its_own_session(generator: Generator, tmp_path: Path) -> None:
    """The token would be chosen for another text than the session then has; the session itself stays right."""
    calls: dict[str, Callable[[Session], Any]] = {
        "generate": lambda session: session.generate(PROMPT[5:7], max_tokens=2),
        "a stream": lambda session: [*session.stream(PROMPT[5:7], max_tokens=2)],
        "score": lambda session: session.score(PROMPT[5:7]),
        "rewind": lambda session: session.rewind(PROMPT[:3]),
        "fork": lambda session: session.fork(),
        "save": lambda session: session.save(tmp_path / "in a mask.npz"),
        "restore": lambda session: session.restore(tmp_path / "before.npz"),
    }
    for name, call in calls.items():
        for at in (0, 2):
            session = generator.session()
            session.generate(PROMPT[:4], max_tokens=1)
            session.save(tmp_path / "before.npz")

            def mask(
                tokens: Sequence[int], allowed: Any, call: Any = call, at: int = at, session: Session = session
            ) -> None:
                if len(tokens) == at:
                    call(session)

            with pytest.raises(ModelError, match="another call used this session while it chose a token"):
                session.generate(PROMPT[4:5], mask=mask, max_tokens=4)
            tokens = session.tokens
            assert [*session.generate(max_tokens=4).tokens] == LM.greedy(tokens, 4), (name, at)
    other = generator.session()
    got = generator.generate(PROMPT[:4], mask=lambda tokens, allowed: other.score(PROMPT[:1]) and None, max_tokens=2)
    assert [*got.tokens] == LM.greedy(PROMPT[:4], 2)


def test_another_thread_restores_while_the_model_runs(
    generator: Generator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, refused = generator.session(), list[bool]()
    session.generate(PROMPT[:4], max_tokens=1)
    session.save(tmp_path / "session.npz")
    run = generator._model.run

    def intrude() -> None:
        with pytest.raises(ModelError, match="another thread uses this session"):
            session.restore(tmp_path / "session.npz")
        refused.append(True)

    def meanwhile(*given: Any) -> Any:
        thread = threading.Thread(target=intrude)
        thread.start()
        thread.join()
        return run(*given)

    tokens = session.tokens
    monkeypatch.setattr(generator._model, "run", meanwhile)
    assert [*session.generate(max_tokens=4, log_probs=True).tokens] == LM.greedy(tokens, 4)  # step by step
    assert len(refused) > 3


@pytest.mark.parametrize("given", [5, None, b"session.npz", ["session.npz"]])
def test_a_path_that_is_none(generator: Generator, given: Any) -> None:
    session = generator.session()
    for call in (session.save, session.restore, generator.load):
        with pytest.raises(ArgumentError, match="path: expected the path of a file, got"):
            call(given)


@pytest.mark.parametrize("prompt", [b"text", bytearray(b"text"), {7, 20}, {7: 20}])
def test_prompts_that_are_no_tokens(generator: Generator, prompt: Any) -> None:
    """Bytes are numbers, but of characters; a set has no order."""
    for call in (generator.generate, generator.session().score, generator.session().rewind):
        with pytest.raises(ArgumentError, match="prompt: expected a text or numbers of tokens"):
            call(prompt)


@pytest.mark.parametrize("returned", [[False] * LM.words, (True,) * LM.words, np.ones(3, np.bool_)])
def test_a_mask_that_returns_what_it_allows(generator: Generator, returned: Any) -> None:
    """It would have no effect."""
    with pytest.raises(ArgumentError, match="mask: expected a function that changes its second argument"):
        generator.generate(PROMPT[:4], mask=lambda tokens, allowed: returned)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_process_forked_while_the_model_runs(generator: Generator) -> None:
    """The thread that runs it does not exist in the child, and is not waited for."""
    with generator._model._lock:
        child = os.fork()
        if not child:
            signal.alarm(20)
            os._exit([*generator.generate(PROMPT[:3], max_tokens=4).tokens] != LM.greedy(PROMPT[:3], 4))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


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


def test_a_stream_of_a_whole_generation_that_was_left_is_saved(generator: Generator, tmp_path: Path) -> None:
    """The caches then hold more than was yielded."""
    session = generator.session()
    next(iter(session.stream(PROMPT[:9], max_tokens=12, whole=True)))
    session.save(tmp_path / "session.npz")
    loaded = generator.load(tmp_path / "session.npz")
    assert [*loaded.tokens] == [*PROMPT[:9], *LM.greedy(PROMPT[:9], 1)]
    text = [*loaded.tokens]
    assert [*loaded.generate(max_tokens=5).tokens] == LM.greedy(text, 5)


def test_a_full_disk_leaves_the_session_that_was_saved_before(
    generator: Generator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, file = generator.session(), tmp_path / "session.npz"
    session.generate(PROMPT[:10], max_tokens=4)
    session.save(file)
    tokens, savez = session.tokens, np.savez

    def full(file: Any, **arrays: Any) -> None:
        file.write(b"a part of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    session.generate(max_tokens=2)
    with pytest.raises(OSError, match="No space left"):
        session.save(file)
    monkeypatch.setattr(np, "savez", savez)
    assert generator.load(file).tokens == tokens
    assert [each.name for each in tmp_path.iterdir()] == ["session.npz"]


def _random(**changed: Any) -> Any:
    def change(data: dict[str, Any]) -> None:
        for name, given in changed.items():
            (data["random"]["state"] if name in ("state", "inc") else data["random"])[name] = given

    return change


_WRONG: dict[str, tuple[Any, str]] = {
    "a token past the vocabulary": (lambda d: d["tokens"].append(10**9), "out of range for a vocabulary of 300"),
    "the vocabulary as a token": (lambda d: d["tokens"].append(300), "out of range for a vocabulary of 300"),
    "a negative token": (lambda d: d["tokens"].append(-1), r"tokens\[14\]: expected a number of at least 0, got -1"),
    "half a token": (lambda d: d["tokens"].append(0.5), r"tokens\[14\]: expected an integer, got 0.5"),
    "a text as a token": (lambda d: d["tokens"].append("a"), r"tokens\[14\]: expected an integer"),
    "a truth value as a token": (lambda d: d["tokens"].append(True), r"tokens\[14\]: expected an integer"),
    "no token": (lambda d: d["tokens"].append(None), r"tokens\[14\]: expected an integer"),
    "a text of tokens": (lambda d: d.update(tokens="12"), "tokens: expected a list"),
    "too many tokens": (lambda d: d.update(tokens=[1] * 66), "66 tokens, expected at most 65"),
    "no tokens": (lambda d: d.pop("tokens"), "expected the key 'tokens'"),
    "more held than there are": (lambda d: d.update(held=15), "caches of 15 tokens in a session of 14"),
    "fewer held than none": (lambda d: d.update(held=-1), "held: expected a number of at least 0"),
    "half a token held": (lambda d: d.update(held=2.5), "held: expected an integer"),
    "a truth value held": (lambda d: d.update(held=True), "held: expected an integer"),
    "no random numbers": (lambda d: d.update(random=None), "random: expected a mapping"),
    "another generator": (_random(bit_generator="MT19937"), "random.bit_generator: expected 'PCG64'"),
    "a huge state": (_random(state=1 << 128), r"random.state.state: expected a number of 0 to \d+"),
    "a negative state": (_random(inc=-1), r"random.state.inc: expected a number of 0 to"),
    "a state that is no number": (_random(state="1"), "random.state.state: expected an integer"),
    "a huge half": (_random(uinteger=1 << 32), "random.uinteger: expected a number of 0 to 4294967295"),
    "a half that is no number": (_random(has_uint32=None), r"random.has_uint32: expected one of \[0, 1\]"),
    "a state without a part": (lambda d: d["random"].pop("state"), "random: expected the key 'state'"),
    "another version": (lambda d: d.update(version=2), "a session of version 2, expected 1"),
    "no version": (lambda d: d.pop("version"), "expected the key 'version'"),
    "an unknown key": (lambda d: d.update(other=1), r"\['other'\]"),
    "another model": (lambda d: d.update(model="0" * 64), "another model"),
    "a model that is no text": (lambda d: d.update(model=3), "model: expected a text"),
}
_WRONG_CACHES: dict[str, tuple[Callable[[np.ndarray], Any], str]] = {
    "another shape": (lambda x: x[:, :, 1:], r"expected float32\[.*\], got float32"),
    "another type": (lambda x: x.astype(np.float16), r"expected float32\[.*\], got float16"),
    "objects": (lambda x: x.astype(object), "allow_pickle"),
    "no number": (lambda x: np.where(np.arange(x.size).reshape(x.shape) == 5, np.nan, x), "expected finite numbers"),
    "infinity": (lambda x: np.where(np.arange(x.size).reshape(x.shape) == 5, np.inf, x), "expected finite numbers"),
    "far more": (lambda x: np.tile(x, 99), "larger than that of a session"),
}


@pytest.mark.parametrize("wrong", [*_WRONG, *_WRONG_CACHES])
def test_sessions_with_values_that_do_not_fit(generator: Generator, wrong: str, tmp_path: Path) -> None:
    """A session that reads such a file stays as it was."""
    session, file = generator.session(), tmp_path / "session.npz"
    session.generate(PROMPT[:10], max_tokens=4)
    session.save(file)
    with np.load(file) as arrays:
        members = dict(arrays)
    if wrong in _WRONG:
        change, match = _WRONG[wrong]
        data = json.loads(bytes(members["session"]))
        change(data)
        members["session"] = np.frombuffer(json.dumps(data).encode(), np.uint8)
    else:
        alter, match = _WRONG_CACHES[wrong]
        members["kv_cache_k_0"] = alter(members["kv_cache_k_0"])
    np.savez(file, **members)
    tokens = session.tokens
    with pytest.raises(ModelError, match=match):
        session.restore(file)
    assert session.tokens == tokens
    assert [*session.generate(max_tokens=3).tokens] == LM.greedy([*tokens], 3)


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
    with tempfile.TemporaryFile() as opened, pytest.raises(ArgumentError, match=f"a file, got {opened.fileno()}"):
        generator.load(opened.fileno())  # type: ignore[arg-type]
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


def test_penalties_of_generated_tokens_alone(generator: Generator) -> None:
    """Neither the prompt's tokens count, nor those of an earlier call."""
    session = generator.session()
    for _ in range(2):
        before = [*session.tokens] or PROMPT[:5]
        got = session.generate(() if session.tokens else before, max_tokens=6, presence_penalty=1e9).tokens
        wanted, logits_of = list[int](), LM.logits
        for _ in range(6):
            logits = logits_of([*before, *wanted])[-1]
            logits[wanted] -= 1e9
            wanted.append(int(logits.argmax()))
        assert [*got] == wanted
    assert {*got} & {*before}


def test_a_bias(generator: Generator) -> None:
    (first,) = generator.generate(PROMPT, max_tokens=1, logit_bias={7: 1e6}).tokens
    assert first == 7
    best = generator.generate(PROMPT, max_tokens=1, log_probs=True)
    other = generator.generate(PROMPT, max_tokens=1, logit_bias={best.tokens[0]: -1e6}, log_probs=True)
    assert other.tokens != best.tokens and other.log_probs < best.log_probs  # type: ignore[operator]
    with pytest.raises(ModelError, match=r"logit_bias: tokens \[9999\] are out of range for a vocabulary of"):
        generator.generate(PROMPT, max_tokens=1, logit_bias={9999: 1.0})
    for wrong in ({"a": 1.0}, {1.5: 1.0}, {True: 1.0}, {1: "x"}, [1]):
        with pytest.raises(ArgumentError, match="logit_bias"):
            generator.generate(PROMPT, max_tokens=1, logit_bias=wrong)


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
    pieces = []
    with pytest.raises(KeyboardInterrupt):
        for piece in session.stream(PROMPT[:9], max_tokens=20, log_probs=True):
            pieces.append(piece.token)  # noqa: PERF401  # what comes before the interrupt
    tokens = [*session.tokens]
    assert tokens == [*PROMPT[:9], *pieces]
    assert len(pieces) > 1
    assert [*session.generate(max_tokens=8).tokens] == LM.greedy(tokens, 8)


def test_an_interrupt_anywhere_in_a_generation(path: Path) -> None:
    """It is as if it had never been asked for: the prompt is not read twice, and the same tokens are drawn."""
    generator = Generator(path, cpu=True)
    session, keywords = generator.session(), {"max_tokens": 4, "temperature": 2.0}
    session.generate(PROMPT[:4], seed=3, **keywords)
    tokens, wanted = session.tokens, session.fork().generate(PROMPT[4:9], **keywords).tokens
    ways: dict[str, Callable[[Session], Any]] = {
        "generate": lambda each: each.generate(PROMPT[4:9], **keywords),
        "score": lambda each: each.score(PROMPT[4:9]),
        "another seed": lambda each: each.generate(PROMPT[4:9], seed=8, **keywords),
        "whole": lambda each: each.generate(PROMPT[4:9], whole=True, top_k=8, **keywords),
    }
    for name, way in ways.items():
        way(session.fork())  # a loop is prepared once
        tried = range(0, places(lambda way=way: way(session.fork())), 97)  # type: ignore[misc]
        for number in tried:
            other, held = session.fork(), list[BaseException]()
            if interrupted(lambda other=other, way=way: way(other), number, held) == "raised":  # type: ignore[misc]
                assert other.tokens == tokens, (name, number)
                assert other.generate(PROMPT[4:9], **keywords).tokens == wanted, (name, number)
        assert len(tried) > 10


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"seed": -1}, r"seed: expected a number of at least 0, got -1"),
        ({"seed": "one"}, "seed: expected an integer, got 'one'"),
        ({"seed": 1.5}, "seed: expected an integer"),
        ({"max_tokens": "8"}, "max_tokens: expected an integer"),
        ({"max_tokens": True}, "max_tokens: expected an integer"),
        ({"temperature": "hot"}, "temperature: expected a finite number"),
        ({"temperature": np.nan}, "temperature: expected a finite number"),
        ({"temperature": 1.0, "top_k": 2.5}, "top_k: expected an integer"),
        ({"temperature": 1.0, "top_p": None}, "top_p: expected a finite number"),
        ({"stop": [3]}, r"stop\[0\]: expected a text"),
        ({"stop_tokens": 3}, "stop_tokens: expected a list"),
        ({"stop_tokens": ["a"]}, r"stop_tokens\[0\]: expected an integer"),
        ({"whole": "yes"}, "whole: expected true or false"),
        ({"logits": 1}, "logits: expected true or false"),
    ],
)
def test_wrong_options_change_nothing(generator: Generator, options: dict[str, Any], match: str) -> None:
    """They are refused before the prompt is added."""
    session = generator.session()
    session.generate(PROMPT[:5], max_tokens=2)
    tokens = session.tokens
    for way in (session.generate, session.stream):
        with pytest.raises(ArgumentError, match=match):
            way(PROMPT[5:8], **options)
    assert session.tokens == tokens
    assert [*session.generate(PROMPT[5:8], max_tokens=4).tokens] == LM.greedy([*tokens, *PROMPT[5:8]], 4)


def test_options_of_numpy_types(generator: Generator) -> None:
    given = {"max_tokens": np.int64(4), "seed": np.uint8(3), "temperature": np.float32(2), "stop_tokens": np.array([7])}
    plain = {"max_tokens": 4, "seed": 3, "temperature": 2.0, "stop_tokens": (7,)}
    assert generator.generate(PROMPT[:5], **given).tokens == generator.generate(PROMPT[:5], **plain).tokens


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


# Turns


def test_sessions_in_turns_keep_their_preparations(path: Path) -> None:
    """A step on another session's caches does not have the next one prepared anew."""
    generator = Generator(path)
    one, other = generator.session(), generator.session()
    for session in (one, other):
        session.generate(PROMPT[:3], max_tokens=2)
    run = one._caches.runs["decode"][1][0]
    other.generate(max_tokens=2)
    one.generate(max_tokens=2)
    assert one._caches.runs["decode"][1][0] is run
    assert [*one.tokens] == [*PROMPT[:3], *LM.greedy(PROMPT[:3], 4)] == [*other.tokens]


def test_embedders_keep_their_preparations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A generation prepares each of their steps once, not for every token."""
    write_file(LM.model(embeddings=True), tmp_path / "model.tflite")
    write_file(LM.embedder(), tmp_path / "embedder.tflite")
    prepared = list[int]()

    class Counted(DeviceRun):
        def _prepare(self) -> None:
            prepared.append(1)
            super()._prepare()

    monkeypatch.setattr(runners, "DeviceRun", Counted)
    monkeypatch.setattr(model, "_SHORT_S", 0.0)  # no loop, which steps on a busy machine begin, and which is prepared
    session = Generator(tmp_path / "model.tflite").session()
    assert [*session.generate(PROMPT, max_tokens=3).tokens] == LM.greedy(PROMPT, 3)
    before = len(prepared)
    session.generate(max_tokens=9)
    assert [*session.tokens[len(PROMPT) :]] == LM.greedy(PROMPT, 12)
    assert len(prepared) == before


def test_a_session_that_does_nothing_holds_nobody_up(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose stream is not read on, and one that is over, even with turns without an end."""
    monkeypatch.setattr(model, "_TURN_S", 1e9)
    generator = Generator(path, cpu=True)
    stream = generator.stream(PROMPT[:3], max_tokens=9)
    first = next(stream)
    got: list[Any] = []
    for _ in range(2):
        thread = threading.Thread(target=lambda: got.append(generator.generate(PROMPT[:3], max_tokens=9).tokens))
        thread.start()
        thread.join(20)
    assert got == [tuple(LM.greedy(PROMPT[:3], 9))] * 2
    assert [first.token, *(piece.token for piece in stream)] == LM.greedy(PROMPT[:3], 9)


# Masks


def test_a_mask(generator: Generator) -> None:
    """It sees the tokens so far, and only those that it leaves follow; log probabilities are the model's own."""
    seen: list[list[int]] = []

    def even(tokens: Any, allowed: Any) -> None:
        seen.append([*tokens])
        assert allowed.all() and allowed.shape == (300,) and allowed.dtype == bool
        allowed[1::2] = False

    session = generator.session()
    session.generate(PROMPT[:3], max_tokens=2)
    before = [*session.tokens]
    got = session.generate([5], max_tokens=5, mask=even, log_probs=True, logits=True)
    tokens = [*before, 5]
    for token, log_prob in zip(got.tokens, got.log_probs or (), strict=True):
        exact = LM.logits(tokens)[-1]
        assert token == 2 * int(exact[::2].argmax())
        assert log_prob == pytest.approx(exact[token] - np.log(np.exp(exact).sum()), abs=1e-5)
        tokens.append(token)
    assert seen == [[*got.tokens[:n]] for n in range(5)]
    for options in ({"top_k": 290}, {"top_p": 0.999}, {"repetition_penalty": 2.0}):
        drawn = generator.generate([5], max_tokens=20, mask=even, temperature=50.0, seed=1, **options)
        assert not any(token % 2 for token in drawn.tokens) and len({*drawn.tokens}) > 5


def test_wrong_masks(generator: Generator) -> None:
    session = generator.session()
    with pytest.raises(ModelError, match="mask: it allows no token after 0"):
        session.generate([5], mask=lambda tokens, allowed: allowed.fill(False))
    with pytest.raises(ArgumentError, match="mask: expected a function that changes its second argument"):
        session.generate([5], mask=lambda tokens, allowed: ~allowed)
    with pytest.raises(ArgumentError, match="mask: expected a function"):
        session.generate([5], mask=3)
    with pytest.raises(ModelError, match=r"whole: expected no .* or mask"):
        session.generate([5], mask=print, whole=True)
    with pytest.raises(ZeroDivisionError):
        session.generate([5], mask=lambda tokens, allowed: 1 / 0)
    assert session.tokens == ()
    assert [*session.generate([5, 6], max_tokens=4).tokens] == LM.greedy([5, 6], 4)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"threads": 1}, "there is no option 'threads'; did you mean 'num_threads'"),
        ({"nosuch": 1}, "there is no option 'nosuch'"),
        ({"context_length": "5"}, "context_length: expected a number of tokens"),
        ({"sliding_window": True}, "sliding_window: expected a number of tokens"),
        ({"tokenizer": 3}, "tokenizer: expected the path of a file, or a tokenizer"),
        ({"template": 3}, "template: expected the path of a file"),
        ({"embedder": 3}, "embedder: expected the path of a file"),
        ({"model": None}, "model: expected the path of a file"),
    ],
)
@pytest.mark.parametrize("cpu", [True, False])
def test_wrong_arguments(path: Path, cpu: bool, given: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        Generator(**{"model": path, "cpu": cpu} | given)


def test_wrong_options(generator: Generator, path: Path) -> None:
    with pytest.raises(ArgumentError, match="temperature: expected a finite number, got '1'"):
        generator.generate([1], temperature="1")
    with pytest.raises(DelegateError, match="num_threads: expected a number of at least 1, got '1'"):
        Generator(path, num_threads="1")


def test_rewinding(generator: Generator) -> None:
    """To tokens that begin as the session's do, or not; and to none that fit."""
    session = generator.session()
    session.generate(PROMPT[:9], max_tokens=4)
    for tokens in (PROMPT[:5], PROMPT[:12], [9, *PROMPT[:4]], [9]):
        session.rewind(tokens)
        assert [*session.tokens] == tokens and session.shared(tokens) == len(tokens)
        assert [*session.fork().generate(max_tokens=4).tokens] == LM.greedy(tokens, 4)
    for tokens, said in (([], "at least one token"), ([999], "out of range"), ([1] * 65, "do not fit")):
        with pytest.raises(ModelError, match=said):
            session.rewind(tokens)
        assert session.tokens == (9,)
