"""One text, or conversation, in a model: its tokens, and the caches that hold what the model has read of them."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict
from operator import index
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from litecl.generate import saved
from litecl.generate.lexicon import Lexicon
from litecl.generate.loop import Asked
from litecl.generate.model import LanguageModel
from litecl.generate.options import Finish, Generation, GenerationOptions, Piece, Timing
from litecl.generate.sampling import choose, log_softmax
from litecl.generate.text import TextStream
from litecl.generate.whole import STOPS
from litecl.interpreter.errors import ArgumentError, ModelError
from litecl.interpreter.graph import Array
from litecl.interpreter.records import record

Prompt = str | Sequence[int]

_UNCERTAIN = 1 << 62  # more tokens than any session has: of caches that hold nobody knows what
_NO_LOGITS: Array = np.empty(0)  # of tokens that the device has chosen


class _Settled(NamedTuple):
    """A session's number of tokens, random numbers, and the state of these: what an error or interrupt leaves."""

    length: int
    random: np.random.Generator
    state: Mapping[str, Any]


class Session:
    """A text that grows: prompts are added, and the model goes on. ``Generator.session`` makes one.

    Sessions of one generator share its weights; each has caches of its own. A session is for one thread at a time.
    An error or interrupt leaves tokens and random numbers as they were, but for pieces that ``stream`` has yielded; the
    model then reads again what the caches held.
    """

    def __init__(self, model: LanguageModel, lexicon: Lexicon, defaults: Mapping[str, Any]) -> None:
        self._model = model
        self._lexicon = lexicon
        self._defaults = defaults
        self._tokens: list[int] = []
        self._held = 0  # how many of them the caches hold
        self._caches = model.caches()
        self._random = np.random.default_rng()
        self._settled = self._now()
        self.timing = Timing()

    @property
    def tokens(self) -> tuple[int, ...]:
        """All tokens, of prompts and generated ones."""
        return tuple(self._tokens[: self._settled.length])

    @property
    def room(self) -> int:
        """How many more tokens the model can read."""
        return max(self._model.context_length - self._settled.length, 0)

    def stream(self, prompt: Prompt = "", **options: Any) -> Iterator[Piece]:
        """Add a prompt, and yield what follows, token by token.

        prompt: a text, or the numbers of tokens; an empty one goes on with what was generated. options: those of
        ``GenerationOptions``. To leave the iterator early is fine: the session holds the prompt and what was yielded;
        nothing if that was nothing.

        Raises ModelError for a prompt that is too long or has no tokens, and for numbers that are none of a token;
        MissingExtra for a text where the tokenizer's library is not installed.
        """
        return self._pieces(prompt, options, piecewise=True)

    def _pieces(self, prompt: Prompt, options: Mapping[str, Any], *, piecewise: bool) -> Iterator[Piece]:
        """Check a prompt and options, and return what yields pieces. piecewise: what was yielded is settled."""
        self._settle()
        asked = GenerationOptions.of({**self._defaults, **options})
        is_text = isinstance(prompt, str)
        tokens = self._checked(self._numbers(prompt))
        text = self._lexicon.stream([*self._tokens, *tokens], asked.stop, is_text)
        ends = self._lexicon.stops(is_text) if asked.stop_tokens is None else [(end,) for end in asked.stop_tokens]
        if asked.whole and (len(ends) > STOPS or any(len(end) != 1 for end in ends)):
            raise ModelError(f"whole: expected at most {STOPS} stop tokens, one by one, got {[*ends]}")
        return self._generated(tokens, asked, text, ends, piecewise)

    def generate(self, prompt: Prompt = "", **options: Any) -> Generation:
        """Add a prompt, and return all that follows; see ``stream``."""
        before = self.timing
        pieces = [*self._pieces(prompt, options, piecewise=False)]
        generation = Generation.of(pieces, self.timing - before)
        self._settled = self._now()
        return generation

    def score(self, prompt: Prompt) -> tuple[float, ...]:
        """Add a prompt, and return the logarithm of every token's probability, given those before it.

        It is read step by step. A session's first token has none before it, and no probability. Raises what ``stream``
        raises.
        """
        self._settle()
        tokens = self._checked(self._numbers(prompt))
        found = []
        for token in tokens:
            if self._tokens:
                found.append(float(log_softmax(self._read())[token]))
            self._tokens.append(token)
        scores = tuple(found)
        self._settled = self._now()
        return scores

    def fork(self) -> "Session":
        """Return another session with the same tokens, caches and random numbers to come; both go on independently."""
        self._settle()
        other = Session(self._model, self._lexicon, self._defaults)
        other._tokens, other._held = [*self._tokens], self._held
        other._caches = self._model.holding(self._model.values(self._caches))
        other._random = deepcopy(self._random)
        other._settled = other._now()
        return other

    def save(self, path: str | PathLike[str]) -> None:
        """Write tokens, caches and random numbers to come to a file, which ``Generator.load`` reads."""
        self._settle()
        random = record(saved.Random, self._random.bit_generator.state)
        state = saved.State([*self._tokens], self._held, random)
        saved.write(path, self._model.fingerprint, state, self._model.values(self._caches))

    def restore(self, path: str | PathLike[str]) -> None:
        """Become what was saved. Raises ModelError for a file of another model, or that is damaged."""
        model = self._model
        limits = saved.Limits(model.fingerprint, model.vocabulary, model.context_length + 1, model.cache_specs)
        state, values = saved.read(path, limits)
        random = np.random.default_rng()
        random.bit_generator.state = asdict(state.random)
        tokens, caches = [*state.tokens], model.holding(values)
        settled = _Settled(len(tokens), random, random.bit_generator.state)
        self._tokens, self._held, self._random, self._caches = tokens, state.held, random, caches
        self._settled = settled  # no call since the first store: an interrupt finds all of one session

    # Parts

    def _numbers(self, prompt: Prompt) -> Iterable[int]:
        if isinstance(prompt, str):
            return self._lexicon.encode(prompt, not self._tokens) if prompt else ()
        return prompt

    def _checked(self, tokens: Iterable[int]) -> list[int]:
        """Return tokens that can be added. Raises ModelError, with the session as it was."""
        try:
            numbers = [index(token) for token in tokens]
        except TypeError as error:
            raise ArgumentError(f"prompt: expected a text or numbers of tokens, got {tokens!r:.100}") from error
        if outside := [n for n in numbers if not 0 <= n < self._model.vocabulary]:
            raise ModelError(
                f"prompt: tokens {outside[:5]} are out of range for a vocabulary of {self._model.vocabulary}"
            )
        if not numbers and not self._tokens:
            raise ModelError("prompt: expected at least one token, got none")
        if len(self._tokens) + len(numbers) > self._model.context_length:
            raise ModelError(
                f"prompt: {len(numbers)} tokens do not fit into the context of {self._model.context_length}, of which "
                f"{len(self._tokens)} are used"
            )
        return numbers

    def _generated(
        self,
        prompt: Sequence[int],
        asked: GenerationOptions,
        text: TextStream | None,
        ends: Sequence[tuple[int, ...]],
        piecewise: bool,
    ) -> Iterator[Piece]:
        self._settle()
        self._tokens += prompt
        if asked.seed is not None:
            self._random = np.random.default_rng(asked.seed)
        for count, (token, logits) in enumerate(self._tokens_of(asked, ends), 1):
            self._tokens.append(token)
            finish = self._finish(count, asked, ends)
            written = "" if text is None else text.flush() if finish == "stop token" else text.push(token, bool(finish))
            if text is not None and text.stopped:
                finish = "stop sequence"
            log_prob = float(log_softmax(logits)[token]) if asked.log_probs else None
            piece = Piece(written, token, log_prob, logits if asked.logits else None, finish)
            if piecewise:
                self._settled = self._now()
            yield piece
            if finish:
                return

    def _tokens_of(self, asked: GenerationOptions, ends: Sequence[tuple[int, ...]]) -> Iterator[tuple[int, Array]]:
        """Yield tokens without end, each to be added before the next, with the logits that it is chosen from."""
        if asked.whole:
            for token in self._whole(asked, ends):
                yield token, _NO_LOGITS
        while True:
            logits = self._read()
            start = time.perf_counter()
            token = choose(logits, asked.sampling, self._tokens, self._random)
            self.timing += Timing(decode_tokens=1, decode_s=time.perf_counter() - start)
            yield token, logits

    def _whole(self, asked: GenerationOptions, ends: Sequence[tuple[int, ...]]) -> list[int]:
        """Return what one invoke generates; nothing where its logits are no numbers, of which the next step tells."""
        self._prefill()
        room = self._model.context_length - len(self._tokens) + 1
        count = room if asked.max_tokens is None else min(asked.max_tokens, room)
        stops = [end for (end,) in ends if 0 <= end < self._model.vocabulary]
        uniforms = deepcopy(self._random).random(count)
        goal = Asked(self._tokens[-1], self._held, count, stops, asked.sampling, uniforms)
        self._model.prepare_loop(goal.draws)
        start = time.perf_counter()
        try:
            tokens = self._model.generate(goal, self._caches)
        except BaseException:
            self._held = _UNCERTAIN
            raise
        if tokens is None:
            self._held = _UNCERTAIN
            return []
        self._held += len(tokens)
        if goal.draws:
            self._random.random(len(tokens))  # as many as were used
        self.timing += Timing(decode_tokens=len(tokens), decode_s=time.perf_counter() - start)
        return tokens

    def _finish(self, count: int, asked: GenerationOptions, ends: Sequence[tuple[int, ...]]) -> Finish:
        if any(tuple(self._tokens[-len(end) :]) == end for end in ends):
            return "stop token"
        if count == asked.max_tokens:
            return "max_tokens"
        return "context" if len(self._tokens) > self._model.context_length else ""

    def _read(self) -> Array:
        """Let the model read the tokens that its caches do not hold, and return the logits of the next one."""
        self._prefill()
        start = time.perf_counter()
        logits = self._run(1)
        assert logits is not None
        self.timing += Timing(decode_s=time.perf_counter() - start)
        return logits

    def _prefill(self) -> None:
        """Let the model read all tokens but the last."""
        if self._held > len(self._tokens):
            self._forget()
        self._held = min(self._held, len(self._tokens) - 1)
        start = time.perf_counter()
        pieces = self._model.pieces(len(self._tokens) - 1 - self._held, self._held)
        for count in pieces:
            self._run(count)
        self.timing += Timing(prefill_tokens=sum(pieces), prefill_s=time.perf_counter() - start if pieces else 0.0)

    def _run(self, count: int) -> Array | None:
        try:
            part = self._tokens[self._held : self._held + count]
            logits = self._model.run(part, self._held, self._caches)
        except BaseException:
            self._held = _UNCERTAIN
            raise
        self._held += count
        return logits

    def _now(self) -> "_Settled":
        return _Settled(len(self._tokens), self._random, self._random.bit_generator.state)

    def _settle(self) -> None:
        """Go back to what is settled, after a call that has not ended: only the next one can be sure to begin."""
        length, self._random, self._random.bit_generator.state = self._settled
        if self._held > length:  # what other tokens have left in the caches is not told apart
            self._held = _UNCERTAIN
        del self._tokens[length:]
        if self._held > length:
            self._forget()

    def _forget(self) -> None:
        """Begin with new caches: what they hold is not certain. The model reads all tokens again."""
        self._caches, self._held = self._model.caches(), 0
