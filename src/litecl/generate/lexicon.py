"""A model's tokenizer, and the tokens that begin and end its texts."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property

from litecl.generate.text import TextStream
from litecl.generate.tokenizers import Tokenizer
from litecl.interpreter.errors import MissingExtra, ModelError

Named = tuple[int, ...] | str  # tokens by number, or one by its text


class Lexicon:
    """A model's tokenizer, loaded when a text first needs it.

    read: loads it; None if there is none. start: the tokens that begin a text; None: the tokenizer's. stops: the tokens
    that end a text, in addition to the tokenizer's.
    """

    def __init__(self, read: Callable[[], Tokenizer] | None, start: Named | None, stops: Sequence[Named]) -> None:
        self._read = read
        self._start = start
        self._stops = stops

    @cached_property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer, if there is one. Raises MissingExtra if its library isn't installed."""
        return None if self._read is None else self._read()

    def encode(self, text: str, first: bool) -> list[int]:
        """Return a text's tokens. first: whether it begins a context. Raises ModelError without a tokenizer."""
        tokenizer = self.tokenizer
        if tokenizer is None:
            raise ModelError("a text needs a tokenizer: give numbers of tokens instead, or Generator(tokenizer=...)")
        if first and self._start is not None:
            return [*self._numbers(self._start), *tokenizer.encode(text, False)]
        return tokenizer.encode(text, first)

    def stops(self, needs_text: bool) -> list[tuple[int, ...]]:
        """Return the token sequences that end a text; without a tokenizer, only those given as numbers."""
        tokenizer = self.usable(needs_text)
        known = [self._numbers(stop) for stop in self._stops if tokenizer is not None or not isinstance(stop, str)]
        return [*known, *([] if tokenizer is None else [(token,) for token in tokenizer.stop_tokens])]

    def stream(self, before: Sequence[int], stop: Sequence[str], needs_text: bool) -> TextStream | None:
        """Return a stream that decodes tokens, None without a tokenizer. Raises ModelError if ``stop`` needs one."""
        tokenizer = self.usable(needs_text or bool(stop))
        if tokenizer is None and stop:
            raise ModelError(
                "stop: without a tokenizer there are no texts: give stop_tokens, or Generator(tokenizer=...)"
            )
        return None if tokenizer is None else TextStream(tokenizer, before, stop)

    def usable(self, needed: bool) -> Tokenizer | None:
        """Return the tokenizer. If its library is missing, return None, or raise MissingExtra if it is needed."""
        if needed:
            return self.tokenizer
        with suppress(MissingExtra):
            return self.tokenizer
        return None

    def _numbers(self, named: Named) -> tuple[int, ...]:
        if not isinstance(named, str):
            return named
        assert self.tokenizer is not None
        return tuple(self.tokenizer.encode(named, False))
