"""The meaning of a model's tokens: its tokenizer, and the tokens that begin and end its texts."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property

from litecl.generate.text import TextStream
from litecl.generate.tokenizers import Tokenizer
from litecl.interpreter.errors import MissingExtra, ModelError

Named = tuple[int, ...] | str  # tokens by number, or one by its text


class Lexicon:
    """The tokenizer of a model, which is read when a text first needs it.

    read: makes it; None where there is none. start: what begins a text, None: what the tokenizer begins one with.
    stops: what ends one, besides what ends one by the tokenizer.
    """

    def __init__(self, read: Callable[[], Tokenizer] | None, start: Named | None, stops: Sequence[Named]) -> None:
        self._read = read
        self._start = start
        self._stops = stops

    @cached_property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer, None where there is none. Raises MissingExtra where its library is not installed."""
        return None if self._read is None else self._read()

    def encode(self, text: str, first: bool) -> list[int]:
        """Return the tokens of a text. first: whether a context begins with it. Raises ModelError for no tokenizer."""
        tokenizer = self.tokenizer
        if tokenizer is None:
            raise ModelError("a text needs a tokenizer: give numbers of tokens instead, or Generator(tokenizer=...)")
        if first and self._start is not None:
            return [*self._numbers(self._start), *tokenizer.encode(text, False)]
        return tokenizer.encode(text, first)

    def stops(self, needs_text: bool) -> list[tuple[int, ...]]:
        """Return the sequences of tokens that end a text; without a tokenizer those that are known by number."""
        tokenizer = self.usable(needs_text)
        known = [self._numbers(stop) for stop in self._stops if tokenizer is not None or not isinstance(stop, str)]
        return [*known, *([] if tokenizer is None else [(token,) for token in tokenizer.stop_tokens])]

    def stream(self, before: Sequence[int], stop: Sequence[str], needs_text: bool) -> TextStream | None:
        """Return what makes texts of tokens; None without a tokenizer. Raises ModelError where ``stop`` needs one."""
        tokenizer = self.usable(needs_text or bool(stop))
        if tokenizer is None and stop:
            raise ModelError(
                "stop: without a tokenizer there are no texts: give stop_tokens, or Generator(tokenizer=...)"
            )
        return None if tokenizer is None else TextStream(tokenizer, before, stop)

    def usable(self, needed: bool) -> Tokenizer | None:
        """Return the tokenizer; None where its library is not installed, unless it is needed."""
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
