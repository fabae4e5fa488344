"""Streams of short steps, which the device runs several at a time: the texts, caches and errors of step by step."""

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl import Generator
from litecl.generate import model
from litecl.generate.loop import Asked, Loop
from litecl.generate.model import LanguageModel
from litecl.generate.runners import Caches
from litecl.generate.sampling import Sampling, probabilities
from litecl.generate.session import Session
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array
from support.causal_lm import CausalLM
from support.shared import SHARED

LM = CausalLM()
LLM = SHARED / "llm"
PROMPT = np.random.default_rng(0).integers(0, 300, 9).tolist()
TEXT = LM.greedy(PROMPT, 56)  # up to the end of the context
UNUSED = [token for token in range(LM.words) if token not in TEXT][:10]  # more than the loop takes


class Letters:
    """A tokenizer with one character a token."""

    stop_tokens = ()

    def encode(self, text: str, first: bool) -> list[int]:
        return [ord(each) - 0x4E00 for each in text]

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(chr(0x4E00 + token) for token in tokens)


LETTERS = Letters()


@pytest.fixture(scope="module", autouse=True)
def short() -> Iterator[None]:
    """Every step is short, and the first one loads the loop."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model, "_LOAD_S", 0.0)
        patch.setattr(model, "_SHORT_S", math.inf)
        yield


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return LM.write(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def chunks(path: Path) -> Generator:
    generator = Generator(path, tokenizer=LETTERS)
    generator.generate(PROMPT, max_tokens=2)  # loads the loop
    return generator


@pytest.fixture(scope="module")
def steps(path: Path) -> Generator:
    return by_steps(Generator(path, tokenizer=LETTERS))


def by_steps(generator: Generator) -> Generator:
    generator._model._is_looped = {False: False, True: False}
    return generator


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tokens each run of the loop generates."""
    run, made = Loop.run, list[int]()

    def counted(self: Loop, *arguments: Any) -> list[int] | None:
        tokens = run(self, *arguments)
        made.append(len(tokens or ()))
        return tokens

    monkeypatch.setattr(Loop, "run", counted)
    return made


def state(held: Session) -> list[Any]:
    """Everything that a session's next call depends on. The caches, by heads and slots, up to the last token read."""
    held.fork()  # settles
    caches = held._model.values(held._caches)
    read = [value[:, :, : held._held].tobytes() for value in caches.values()]
    return [held._tokens, held._held, held._random.bit_generator.state, read]


def fill(held: Session) -> None:
    held.generate(PROMPT)


def end_at_a_token(held: Session) -> None:
    assert held.generate(PROMPT, stop_tokens=[*UNUSED, TEXT[9]]).finish == "stop token"


def end_at_two_tokens(held: Session) -> None:
    held._lexicon._stops = [(TEXT[20], TEXT[21])]
    assert held.generate(PROMPT).finish == "stop token"
    held._lexicon._stops = []


def end_at_a_text(held: Session) -> None:
    assert held.generate(PROMPT, stop=LETTERS.decode(TEXT[23:25])).finish == "stop sequence"


def leave(held: Session) -> None:
    for _, piece in zip(range(7), held.stream(PROMPT), strict=False):
        assert not piece.finish


def leave_without_a_token(held: Session) -> None:
    held.generate(PROMPT[:3], max_tokens=1)
    held.stream(PROMPT)


def use_in_between(held: Session) -> None:
    stream = held.stream(PROMPT)
    pieces = [next(stream) for _ in range(4)]
    held.generate([5, 6], max_tokens=20)
    pieces += [next(stream) for _ in range(4)]
    other = held.stream([7])
    pieces += [next(other), next(other), next(stream), next(other), next(stream)]
    assert len({*pieces}) > 2


def draw(held: Session) -> None:
    held.generate(PROMPT[:3], max_tokens=20, temperature=4.0, top_k=40, top_p=0.9, seed=3)
    for _, _ in zip(range(9), held.stream([4], temperature=2.0, top_k=64), strict=False):
        pass
    held.generate([5], max_tokens=20, temperature=0.3, top_k=9)


def draw_in_between(held: Session) -> None:
    held.generate(PROMPT, max_tokens=5, temperature=2.0, seed=3)
    for _, _ in zip(range(9), held.stream([4]), strict=False):
        pass
    held.generate([5], max_tokens=5, temperature=2.0)
    held.generate(max_tokens=20)
    held.generate([5], max_tokens=5, temperature=2.0)


USES: Sequence[Callable[[Session], None]] = (
    *(fill, end_at_a_token, end_at_two_tokens, end_at_a_text, leave, leave_without_a_token),
    *(use_in_between, draw, draw_in_between),
)


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_as_step_by_step(
    use: Callable[[Session], None], chunks: Generator, steps: Generator, sizes: list[int], tmp_path: Path
) -> None:
    """The text, what the caches hold of it to the bit, and what comes next; so are a fork and a file."""
    one, other = chunks.session(), steps.session()
    for each in one, other:
        each._random = np.random.default_rng(7)
        each._settled = each._now()
        use(each)
    assert any(size > 1 for size in sizes) == (use is not leave_without_a_token)
    assert state(one) == state(other)
    one.save(tmp_path / "saved")
    assert state(chunks.load(tmp_path / "saved")) == state(one.fork()) == state(one)
    if one.room > 8:
        goes_on = [each.generate([8, 9], max_tokens=4).tokens for each in (one, one.fork(), other)]
        assert goes_on[0] == goes_on[2]
    assert state(one) == state(other)


@pytest.mark.parametrize(
    ("count", "wanted"), [(1, [1]), (3, [2, 1]), (20, [2, 2, 4, 8, 4]), (56, [2, 2, 4, 8, 16, 24])]
)
def test_sizes(count: int, wanted: list[int], chunks: Generator, sizes: list[int]) -> None:
    """The first tokens come at once, and no invoke generates more than is wanted, or than there are so far."""
    got = chunks.generate(PROMPT, max_tokens=count)
    assert [*got.tokens] == TEXT[:count]
    assert (sizes, got.finish, got.timing.decode_tokens) == (wanted, "max_tokens", count)


@pytest.mark.parametrize("begun", [True, False])
def test_a_stream_that_another_call_leaves_no_room(begun: bool, chunks: Generator, steps: Generator) -> None:
    """It ends with an error: past the last slot, the model would compute a wrong token."""
    for held in chunks.session(), steps.session():
        held.generate(PROMPT, max_tokens=1)
        stream = held.stream(PROMPT, temperature=1.0, top_k=9, seed=1)
        if begun:
            next(stream)
        held.generate()
        before = held.tokens
        with pytest.raises(ModelError, match=f"another call has left {65 if begun else 74} tokens"):
            next(stream)
        assert (held.tokens, held.room) == (before, 0)
        held.rewind(before[:60])
        assert held.tokens == before[:60]
        assert held.score([1, 2]) == pytest.approx(chunks.session().score([*before[:60], 1, 2])[-2:], abs=1e-5)


def test_a_stream_that_another_call_leaves_no_token(chunks: Generator, tmp_path: Path) -> None:
    held = chunks.session()
    held.save(tmp_path / "empty")
    held.generate(PROMPT, max_tokens=3)
    stream = held.stream()
    held.restore(tmp_path / "empty")
    with pytest.raises(ModelError, match="another call has left 0 tokens"):
        next(stream)
    assert [*held.generate(PROMPT, max_tokens=3).tokens] == TEXT[:3]


@pytest.mark.parametrize(
    "options",
    [
        {"log_probs": True},
        {"logits": True},
        {"repetition_penalty": 1.5},
        {"presence_penalty": 0.5},
        {"frequency_penalty": -0.5},
        {"logit_bias": {3: -100.0}},
        {"mask": lambda tokens, allowed: None},
        {"temperature": 1.0},
        {"temperature": 1.0, "top_k": 65},
    ],
    ids=lambda options: next(iter(options)),
)
def test_what_needs_each_step(options: dict[str, Any], chunks: Generator, sizes: list[int]) -> None:
    assert len(chunks.generate(PROMPT, max_tokens=20, **options).tokens) == 20
    assert not sizes


def test_models_that_step(path: Path, sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of numpy, long steps, the first ones of short steps, and caches that can't forget."""
    assert [*Generator(path, cpu=True).generate(PROMPT, max_tokens=20).tokens] == TEXT[:20]
    generator = Generator(path)
    for where, name, value in (
        *((model, "_SHORT_S", 0.0), (model, "_LOAD_S", math.inf)),
        (generator._model, "may_drop", False),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(where, name, value)
            assert [*generator.generate(PROMPT, max_tokens=20).tokens] == TEXT[:20]
    assert not sizes
    generator.generate(PROMPT, max_tokens=20)
    assert sizes


@pytest.mark.parametrize("seed", range(6))
def test_draws(seed: int, chunks: Generator, steps: Generator, sizes: list[int]) -> None:
    options = {"temperature": 3.0, "top_k": 60, "top_p": 0.95 if seed % 2 else 1.0, "seed": seed}
    assert chunks.generate(PROMPT, **options).tokens == steps.generate(PROMPT, **options).tokens
    assert sum(sizes) > 40


@pytest.mark.parametrize("cpu", [True, False])
def test_draws_that_rounding_could_change(cpu: bool, path: Path) -> None:
    """They are left to a step: those at a boundary between two tokens, and those without the last of ``top_p``."""
    held = Generator(path, cpu=cpu)._model
    chances = probabilities(LM.logits(PROMPT)[-1], Sampling(3.0, 30))
    tokens = np.lexsort((np.arange(LM.words), -chances))[:30]
    ends = np.cumsum(chances[tokens])

    def drawn(uniform: float, **options: Any) -> list[int] | None:
        caches = held.caches()
        for position, token in enumerate(PROMPT[:-1]):
            held.run([token], position, caches)
        sampling = Sampling(3.0, 30, **options)
        asked = Asked(PROMPT[-1], len(PROMPT) - 1, 1, (), sampling, np.full(1, uniform))
        return held.generate(asked, caches)

    for index in (0, 3, 20):
        near, away = 1e-6, chances[tokens[index + 1]] / 2
        assert drawn(ends[index] - near) == drawn(ends[index] + near) == []
        assert drawn(ends[index] + away) == [tokens[index + 1]]
        assert drawn(0.01, top_p=ends[index] - near) == drawn(0.01, top_p=ends[index] + near) == []
        assert drawn(0.01, top_p=ends[index] + away) == [tokens[0]]
    assert drawn(1 - 1e-4) == [tokens[-1]]


def test_caches_that_cannot_forget_a_draw(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that leaves a draw to a step has read the token before it: caches of states must not read it again."""
    generator, run, options = Generator(path, cpu=True), Loop.run, {"temperature": 1.0, "top_k": 9, "seed": 1}
    expected = generator.generate(PROMPT, max_tokens=20, **options).tokens
    monkeypatch.setattr(generator._model, "may_drop", False)
    monkeypatch.setattr(Loop, "run", lambda self, *arguments: (run(self, *arguments) or [])[:-1])
    got = generator.generate(PROMPT, max_tokens=20, whole=True, **options)
    assert got.tokens == expected
    assert got.timing.prefill_tokens == len(PROMPT) - 1 + len(PROMPT) + 18


@pytest.mark.parametrize("error", [KeyboardInterrupt, ModelError])
def test_errors(error: type[BaseException], path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches that were written in part are not trusted: the tokens are read again."""
    held, run, calls = Generator(path).session(), Loop.run, [0]

    def broken(self: Loop, asked: Any, caches: Caches) -> list[int] | None:
        calls[0] += 1
        tokens = run(self, asked, caches)
        if calls[0] == 2:
            for value in caches.values():
                value.write(np.full(value.shape, 7, value.dtype))
            raise error
        return tokens

    monkeypatch.setattr(Loop, "run", broken)
    pieces = []
    with pytest.raises(error):
        for piece in held.stream(PROMPT):
            pieces.append(piece.token)  # noqa: PERF401  # what comes before the error
    assert [*held.tokens] == [*PROMPT, *pieces]
    assert pieces == TEXT[:3]
    assert [*held.generate(max_tokens=20).tokens] == TEXT[3:23]
    calls[0] = 0
    with pytest.raises(error):
        held.fork().generate(max_tokens=18)
    assert [*held.generate().tokens] == TEXT[23:]


def test_a_file_without_a_loop(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Loop, *arguments: Any) -> None:
        raise ModelError("the embedder runs subgraphs")

    monkeypatch.setattr(Loop, "__init__", refused)
    assert [*Generator(path).generate(PROMPT).tokens] == TEXT


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_logits_that_are_no_numbers(wrong: float, tmp_path: Path, sizes: list[int]) -> None:
    """The tokens before them are as step by step, and then comes the error. From then on the model steps."""
    broken = CausalLM()
    broken.weights["table"][TEXT[5]] = wrong
    generator = Generator(broken.write(tmp_path))
    held, pieces = generator.session(), []
    with pytest.raises(ModelError, match="no largest number"):
        for piece in held.stream(PROMPT, max_tokens=20):
            pieces.append(piece.token)  # noqa: PERF401  # what comes before the error
    assert pieces == TEXT[: TEXT.index(TEXT[5]) + 1]
    assert sizes[-1] == 0
    assert [*held.tokens] == [*PROMPT, *pieces]
    del sizes[:]
    assert [*generator.generate(PROMPT, max_tokens=5).tokens] == TEXT[:5]
    assert not sizes


def test_words_that_never_come(path: Path, sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Their logits are -inf, which is no error, but which the loop would take for one."""
    run = LanguageModel.run

    def never(self: LanguageModel, *arguments: Any) -> Array | None:
        logits = run(self, *arguments)
        return logits if logits is None else np.where(np.arange(LM.words) == 3, -np.inf, logits)

    monkeypatch.setattr(LanguageModel, "run", never)
    generator = Generator(path)
    for _ in range(2):
        assert [*generator.generate(PROMPT, max_tokens=20).tokens] == TEXT[:20]
    assert not sizes


@pytest.mark.skipif(not LLM.is_dir(), reason="../shared/llm (exported language models) is not here")
@pytest.mark.parametrize("name", ["llama", "llama_wi4", "gemma3_gpu_wi8_emb4"])
def test_exported_files(name: str, sizes: list[int]) -> None:
    embedder = LLM / "gemma3_gpu_embedder_emb4.tflite" if "gemma3" in name else None
    made = [Generator(LLM / f"{name}.tflite", embedder=embedder) for _ in range(2)]
    one, other = made[0].session(), by_steps(made[1]).session()
    for each in one, other:
        each.generate([7, 30, 411], max_tokens=20, stop_tokens=())
        for _, _ in zip(range(11), each.stream([9, 8], stop_tokens=()), strict=False):
            pass
    assert one.generate(max_tokens=50, stop_tokens=()).tokens == other.generate(max_tokens=50, stop_tokens=()).tokens
    assert one.tokens == other.tokens
    assert sum(sizes) > 60
