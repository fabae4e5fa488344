"""One text or conversation: its tokens, and the caches of those that the model has read."""

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, replace
from os import PathLike
from typing import Any, NamedTuple, TypeVar

import numpy as np

from litecl.generate import saved
from litecl.generate.chat import ChatPiece, ChatPrompt, Message, Reply, chat_prompt, reply_pieces
from litecl.generate.lexicon import Lexicon
from litecl.generate.loop import Asked
from litecl.generate.model import LanguageModel
from litecl.generate.options import Finish, Generation, GenerationOptions, Piece, Timing
from litecl.generate.overlap import overlap
from litecl.generate.sampling import choose, log_softmax, masked
from litecl.generate.text import TextStream
from litecl.generate.tokenizers import numbers_of
from litecl.generate.whole import STOPS
from litecl.interpreter.errors import ArgumentError, ModelError
from litecl.interpreter.graph import Array
from litecl.interpreter.records import record

Prompt = str | Sequence[int]
_Result = TypeVar("_Result")

_UNCERTAIN = 1 << 62  # marks caches with unknown content: more tokens than any session has
_NOTHING: Array = np.empty(0)  # in place of logits of tokens that the device chose, and of numbers to draw them
_FIRST, _MOST = 2, 32  # tokens of a stream's first invoke, which takes about as long as a step, and of later ones


class _Settled(NamedTuple):
    """The state to return to after an error or interrupt. length: number of tokens. state: of ``random``."""

    length: int
    random: np.random.Generator
    state: Mapping[str, Any]


class ContextFull(ModelError):
    """A prompt does not fit into the context."""


class _Known(NamedTuple):
    """A conversation's text, and its tokens."""

    text: str
    tokens: tuple[int, ...]


class Session:
    """A growing text: you add prompts and the model continues. ``Generator.session`` creates one.

    Sessions of one generator share its weights; each has its own caches. Use a session in one thread at a time:
    another gets a ModelError while the model runs. After an error or interrupt, tokens and random numbers are as before
    the call, apart from pieces that ``stream`` has yielded; the model then rereads lost caches.

    go_on: is called before each step that reads a prompt; what it raises ends the call.
    """

    def __init__(self, model: LanguageModel, lexicon: Lexicon, defaults: Mapping[str, Any]) -> None:
        self._model = model
        self._lexicon = lexicon
        self._defaults = defaults
        self._tokens: list[int] = []
        self._held = 0  # how many tokens the caches hold
        self._caches = model.caches()
        self._ahead: list[int] = []  # generated tokens that nobody has taken; the caches hold all but the last
        self._random = np.random.default_rng(defaults.get("seed"))
        self._settled = self._now()
        self._known: _Known | None = None
        self._stop = 0  # how many of the last tokens ended the text
        self._thread: int | None = None  # that runs the model
        self._calls = 0  # that have begun
        self.timing = Timing()
        self.go_on: Callable[[], None] = lambda: None

    @property
    def tokens(self) -> tuple[int, ...]:
        """All tokens, from prompts and generated."""
        return tuple(self._tokens[: self._settled.length])

    @property
    def room(self) -> int:
        """How many more tokens the model can read."""
        return max(self._model.context_length - self._settled.length, 0)

    def stream(self, prompt: Prompt = "", **options: Any) -> Iterator[Piece]:
        """Add a prompt and yield its continuation, token by token.

        prompt: a text, or token numbers; an empty one continues the text so far. options: those of
        ``GenerationOptions``. You may leave the iterator early: the session then holds the prompt and the yielded
        tokens, or neither if nothing was yielded.

        Raises ModelError for a prompt that is too long or has no tokens, and for token numbers out of range;
        MissingExtra for a text if the tokenizer's library isn't installed.
        """
        return self._pieces(prompt, options, piecewise=True)

    def _pieces(
        self, prompt: Prompt, options: Mapping[str, Any], *, piecewise: bool, marked: bool = False
    ) -> Iterator[Piece]:
        """Check a prompt and options; return an iterator of pieces. piecewise: yielded pieces are settled. marked: with
        the marks of the parts of a reply.
        """
        self._settle()
        asked = GenerationOptions.of({**self._defaults, "seed": None, **options})
        is_text = marked or isinstance(prompt, str)
        tokens = self._checked(self._numbers(prompt))
        text = self._lexicon.stream([*self._tokens, *tokens], asked.stop, is_text, marked)
        ends = self._lexicon.stops(is_text) if asked.stop_tokens is None else [(end,) for end in asked.stop_tokens]
        if asked.whole and (len(ends) > STOPS or any(len(end) != 1 for end in ends)):
            raise ModelError(f"whole: expected at most {STOPS} stop tokens, one by one, got {[*ends]}")
        return self._generated(tokens, asked, text, ends, piecewise)

    def generate(self, prompt: Prompt = "", **options: Any) -> Generation:
        """Add a prompt and return its whole continuation; see ``stream``."""
        before = self.timing
        pieces = [*self._pieces(prompt, options, piecewise=False)]
        generation = Generation.of(pieces, self.timing - before)
        self._settled = self._now()
        return generation

    def stream_chat(
        self,
        messages: Sequence[Message] | str | ChatPrompt,
        *,
        tools: Sequence[Any] | None = None,
        variables: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Iterator[ChatPiece]:
        """Yield the reply to a conversation, token by token, by the model's chat template.

        messages: the whole conversation, as mappings with "role" ("system", "user", "assistant", "tool") and "content";
        or a text, for one message of the user; or what ``Generator.chat_prompt`` makes of them. tools: descriptions of
        tools that the model may call, as JSON schemas (https://huggingface.co/docs/transformers/chat_extras).
        variables: of the template, such as ``enable_thinking``.
        options: those of ``GenerationOptions``.

        The session then holds this conversation. What it held before is kept as far as the new prompt begins with it,
        so a longer conversation costs only its new tokens, even if the template writes earlier messages differently.

        Raises ModelError without a template, for messages that it refuses, and a prompt that is too long; ArgumentError
        for messages of another form.
        """
        if isinstance(messages, ChatPrompt):
            prompt = messages
        else:
            prompt = chat_prompt(self._lexicon, messages, tools, variables or {})
        self._settle()
        added = self._kept_of(self._chat_tokens(prompt.text))
        return self._replying(self._pieces(added, options, piecewise=True, marked=True), prompt)

    def chat(self, messages: Sequence[Message] | str | ChatPrompt, **options: Any) -> Reply:
        """Return the whole reply to a conversation; see ``stream_chat``."""
        *_, last = self.stream_chat(messages, **options)
        assert last.reply is not None
        return last.reply

    def shared(self, prompt: ChatPrompt | Sequence[int]) -> int:
        """Return how many tokens of a prompt the session holds already, about."""
        if not isinstance(prompt, ChatPrompt):
            return self._same(prompt)
        if self._known is None or not prompt.text.startswith(self._known.text):
            return self._same(self._lexicon.encode_chat(prompt.text))
        return len(self._known.tokens)

    def rewind(self, tokens: Sequence[int]) -> None:
        """Make the session hold these tokens; what it holds already is kept as far as they begin with it.

        Raises the errors of ``stream``; the session is then as before.
        """
        self._settle()
        before, self._tokens = self._tokens, []
        try:
            numbers = self._checked(tokens)
        finally:
            self._tokens = before
        self._tokens += self._kept_of(numbers)
        self._settled = self._now()

    def _replying(self, stream: Iterator[Piece], prompt: ChatPrompt) -> Iterator[ChatPiece]:
        before = self.timing
        for piece in reply_pieces(stream, prompt):
            if piece.reply is not None:
                generation = replace(piece.reply.generation, timing=self.timing - before)
                piece.reply = replace(piece.reply, generation=generation)
            if piece.reply is not None and piece.finish != "stop sequence":  # which cuts its text
                end = len(self._tokens) - self._stop
                self._known = _Known(prompt.text + piece.reply.generation.text, tuple(self._tokens[:end]))
            yield piece

    def _chat_tokens(self, text: str) -> list[int]:
        """Return a conversation's tokens. What it shares with the one before has the tokens that the model generated,
        which may differ from those that a tokenizer makes of their text.
        """
        known = self._known
        if known is not None and text.startswith(known.text) and self._begins_with(known.tokens):
            return [*known.tokens, *self._lexicon.encode(text[len(known.text) :], False)]
        return self._lexicon.encode_chat(text)

    def _same(self, tokens: Sequence[int]) -> int:
        """Return how many of the session's first tokens are also these tokens' first."""
        pairs = zip(tokens, self._tokens, strict=False)
        return next((n for n, (new, old) in enumerate(pairs) if new != old), min(len(tokens), len(self._tokens)))

    def _begins_with(self, tokens: tuple[int, ...]) -> bool:
        return tuple(self._tokens[: len(tokens)]) == tokens

    def _kept_of(self, tokens: Sequence[int]) -> list[int]:
        """Drop the session's tokens from the first that differs from the given ones; return those to add."""
        if len(tokens) > self._model.context_length:
            raise ContextFull(
                f"the conversation has {len(tokens)} tokens, and the context takes {self._model.context_length}"
            )
        same = self._same(tokens)
        if self._held > same and not self._model.may_drop:
            self._forget()
        self._held = min(self._held, same)
        del self._tokens[same:]
        self._settled = self._now()
        return [*tokens[same:]]

    def score(self, prompt: Prompt) -> tuple[float, ...]:
        """Add a prompt and return every token's log probability, given those before it.

        Reads it step by step. A session's first token has no probability. Raises the errors of ``stream``.
        """
        self._settle()
        tokens = self._checked(self._numbers(prompt))
        log_probs = []
        for token in tokens:
            if self._tokens:
                log_probs.append(float(log_softmax(self._read())[token]))
            self._tokens.append(token)
        scores = tuple(log_probs)
        self._settled = self._now()
        return scores

    def fork(self) -> "Session":
        """Return a copy with the same tokens, caches and upcoming random numbers; both continue independently."""
        self._settle()
        other = Session(self._model, self._lexicon, self._defaults)
        other._tokens, other._held = [*self._tokens], self._held
        other._caches = self._model.holding(self._model.values(self._caches))
        other._random, other._known = deepcopy(self._random), self._known
        other._settled = other._now()
        return other

    def save(self, path: str | PathLike[str]) -> None:
        """Write tokens, caches and the random state to a file for ``Generator.load``. Raises OSError."""
        self._settle()
        random = record(saved.Random, self._random.bit_generator.state)
        state = saved.State([*self._tokens], self._held, random)
        saved.write(path, self._model.fingerprint, state, self._model.values(self._caches))

    def restore(self, path: str | PathLike[str]) -> None:
        """Load a saved session into this one. Raises ModelError for a damaged file, or another model's."""
        model = self._model
        limits = saved.Limits(model.fingerprint, model.vocabulary, model.context_length + 1, model.cache_specs)
        state, values = saved.read(path, limits)
        random = np.random.default_rng()
        random.bit_generator.state = asdict(state.random)
        tokens, caches = [*state.tokens], model.holding(values)
        settled = _Settled(len(tokens), random, random.bit_generator.state)
        self._settle()
        self._tokens, self._held, self._random, self._caches = tokens, state.held, random, caches
        self._ahead = []
        self._settled = settled  # no call since the first store: an interrupt can't mix two sessions

    # Parts

    def _numbers(self, prompt: Prompt) -> Iterable[int]:
        if isinstance(prompt, str):
            return self._lexicon.encode(prompt, not self._tokens) if prompt else ()
        return prompt

    def _checked(self, tokens: Iterable[int]) -> list[int]:
        """Return the tokens as ints, if they can be added. Raises ModelError and ArgumentError; changes nothing."""
        try:
            numbers = numbers_of(tokens)
        except TypeError as error:
            raise ArgumentError(f"prompt: expected a text or numbers of tokens, got {tokens!r:.100}") from error
        if outside := [n for n in numbers if not 0 <= n < self._model.vocabulary]:
            raise ModelError(
                f"prompt: tokens {outside[:5]} are out of range for a vocabulary of {self._model.vocabulary}"
            )
        if not numbers and not self._tokens:
            raise ModelError("prompt: expected at least one token, got none")
        if len(self._tokens) + len(numbers) > self._model.context_length:
            raise ContextFull(
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
        waiting = list[int]()  # tokens whose text isn't out: they may begin a stop of several tokens
        longest, finals = max(map(len, ends), default=0), {end[-1] for end in ends}
        for count, (token, logits) in enumerate(self._tokens_of(asked, ends), 1):
            self._tokens.append(token)
            waiting.append(token)
            last = tuple(self._tokens[-min(count, longest) :]) if longest else ()
            self._stop = 0
            if token in finals:
                self._stop = max((len(end) for end in ends if last[-len(end) :] == end), default=0)
            finish = self._finish(count, asked)
            kept = self._stop if finish or longest < 2 else max(overlap(last, end) for end in ends)
            certain = len(waiting) - kept
            written = "" if text is None else text.extend(waiting[:certain], bool(finish))
            del waiting[:certain]
            if text is not None and text.stopped:
                finish = "stop sequence"
            log_prob = float(log_softmax(logits)[token]) if asked.log_probs else None
            piece = Piece(written, token, log_prob, logits if asked.logits else None, finish)
            if piecewise:
                self._settled = self._now()
            if finish:
                self._model.leave(self._caches)
            yield piece
            if finish:
                return

    def _tokens_of(self, asked: GenerationOptions, ends: Sequence[tuple[int, ...]]) -> Iterator[tuple[int, Array]]:
        """Yield tokens endlessly, with the logits of each. The caller adds a token before taking the next."""
        before = len(self._tokens)
        ahead = self._ahead
        draws = asked.sampling.temperature > 0
        loops = asked.may_loop
        is_ready = asked.whole or (loops and self._model.loops(draws))
        for count in itertools.count():
            if ahead is not self._ahead:  # another call came in between
                self._drop_ahead()
                ahead = self._ahead
            room = self._model.context_length - len(self._tokens) + 1
            if is_ready and not ahead:
                most = room if asked.max_tokens is None else min(room, asked.max_tokens - count)
                few = min(max(count, _FIRST), _MOST)  # few are in vain if the text ends
                wanted = most if asked.whole else min(most, few)
                loops = self._look_ahead(asked, ends, wanted)
                ahead = self._ahead
                is_ready = len(ahead) == wanted  # else the next one needs a step
            if ahead:
                token, logits = ahead.pop(0), _NOTHING
                if draws:
                    self._random.random()  # the number that drew it
                self.timing += Timing(decode_tokens=1)
            else:
                token, logits = self._step(asked, before)
                is_ready = loops and (asked.whole or self._model.loops(draws, logits))
            yield token, logits

    def _step(self, asked: GenerationOptions, before: int) -> tuple[int, Array]:
        """Return the next token, and its logits. before: how many tokens came before the generated ones.

        Raises ModelError if a mask, say, has called the session: the logits are then of another text.
        """
        calls = self._calls
        logits = self._read()
        start = time.perf_counter()
        new = self._tokens[before:] if asked.mask is not None or asked.sampling.counts else ()
        left = logits if asked.mask is None else masked(logits, asked.mask, new)
        if calls != self._calls:
            raise ModelError(
                "another call used this session while it chose a token, such as one of its own mask: give it a session "
                "of its own (fork() copies one)"
            )
        token = choose(left, asked.sampling, self._tokens, self._random, new)
        self.timing += Timing(decode_tokens=1, decode_s=time.perf_counter() - start)
        return token, logits

    def _look_ahead(self, asked: GenerationOptions, ends: Sequence[tuple[int, ...]], count: int) -> bool:
        """Generate tokens in one invoke, at most ``count``: those of ``_step``. There may be none.

        Returns False for logits that aren't finite; a step then raises the error, if it is one.
        """
        self._prefill()
        stops = [end[0] for end in ends if len(end) == 1 and 0 <= end[0] < self._model.vocabulary][:STOPS]
        draws = asked.sampling.temperature > 0
        uniforms = deepcopy(self._random).random(count) if draws else _NOTHING
        goal = Asked(self._tokens[-1], self._held, count, stops, asked.sampling, uniforms)
        self._model.prepare_loop(goal.draws)
        start = time.perf_counter()
        tokens = self._alone(self._model.generate, goal, self._caches)
        self._ahead = ahead = tokens or []
        ends_early = len(ahead) < count and ahead[-1:] not in [[stop] for stop in stops]  # the caches hold all tokens
        is_lost = tokens is None or (ends_early and not self._model.may_drop)
        self._held = _UNCERTAIN if is_lost else self._held + len(ahead)
        self.timing += Timing(decode_s=time.perf_counter() - start)
        return tokens is not None

    def _drop_ahead(self) -> None:
        """Return to the caches' state without the tokens that nobody has taken."""
        if self._ahead:
            self._held = min(self._held, len(self._tokens) - 1) if self._model.may_drop else _UNCERTAIN
            self._ahead = []

    def _finish(self, count: int, asked: GenerationOptions) -> Finish:
        if self._stop:
            return "stop token"
        if count == asked.max_tokens:
            return "max_tokens"
        return "context" if len(self._tokens) > self._model.context_length else ""

    def _read(self) -> Array:
        """Run the model on the tokens that the caches lack; return the next token's logits."""
        self._prefill()
        start = time.perf_counter()
        logits = self._run(1)
        assert logits is not None
        self.timing += Timing(decode_s=time.perf_counter() - start)
        return logits

    def _prefill(self) -> None:
        """Run the model on all tokens but the last. Raises ModelError if another call has left none, or too many."""
        most = self._model.context_length
        if not 1 <= len(self._tokens) <= most:
            raise ModelError(f"another call has left {len(self._tokens)} tokens, expected 1 to {most}")
        if self._held > len(self._tokens):
            self._forget()
        self._held = min(self._held, len(self._tokens) - 1)
        start = time.perf_counter()
        pieces = self._model.pieces(len(self._tokens) - 1 - self._held, self._held)
        for count in pieces:
            self.go_on()
            self._run(count)
        if pieces:
            self.timing += Timing(prefill_tokens=sum(pieces), prefill_s=time.perf_counter() - start)

    def _run(self, count: int) -> Array | None:
        part = self._tokens[self._held : self._held + count]
        logits = self._alone(self._model.run, part, self._held, self._caches)
        self._held += count
        return logits

    def _alone(self, run: Callable[..., _Result], *given: Any) -> _Result:
        """Run the model, unless another thread does on this session; what the caches hold is uncertain if it fails."""
        self._require_alone()
        try:
            self._thread = threading.get_ident()
            return run(*given)
        except BaseException:
            self._held = _UNCERTAIN
            raise
        finally:
            self._thread = None

    def _require_alone(self) -> None:
        """Raise ModelError while another thread runs the model on this session."""
        if self._thread not in (None, threading.get_ident()):
            raise ModelError("another thread uses this session: give it a session of its own (fork() copies one)")

    def _now(self) -> "_Settled":
        return _Settled(len(self._tokens), self._random, self._random.bit_generator.state)

    def _settle(self) -> None:
        """Return to the settled state after a call that didn't finish. The next call does this: it surely runs."""
        self._require_alone()
        self._calls += 1
        length, self._random, self._random.bit_generator.state = self._settled
        self._drop_ahead()
        if self._held > length:  # the caches may hold other tokens
            self._held = _UNCERTAIN
        del self._tokens[length:]
        if self._held > length:
            self._forget()

    def _forget(self) -> None:
        """Replace the caches by empty ones: the model reads all tokens again."""
        self._caches, self._held = self._model.caches(), 0
