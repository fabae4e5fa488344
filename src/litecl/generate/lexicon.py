"""A model's tokenizer, the tokens that begin and end its texts, and the template of its conversations."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING

from litecl.generate import tokenizers
from litecl.generate.text import TextStream
from litecl.generate.tokenizers import Tokenizer
from litecl.interpreter.errors import ArgumentError, MissingExtra, ModelError

if TYPE_CHECKING:
    from litecl.generate.templates import ChatTemplate

Named = tuple[int, ...] | str  # tokens by number, or one by its text

_PROBE = "litecl-probe"


class Lexicon:
    """A model's tokenizer, loaded when a text first needs it.

    read: loads it; None if there is none. start: the tokens that begin a text; None: the tokenizer's. stops: the tokens
    that end a text, in addition to the tokenizer's. chat: the source of the template; None if there is none. thinking:
    see ``Metadata``.
    """

    def __init__(
        self,
        read: Callable[[], Tokenizer] | None,
        start: Named | None,
        stops: Sequence[Named],
        chat: str | None = None,
        thinking: Sequence[tuple[str, str]] = (),
    ) -> None:
        self._read = read
        self._start = start
        self._stops = stops
        self._chat = chat
        self.thinking = thinking
        self._latest: tuple[str | None, list[int]] = None, []  # a conversation and its tokens

    @cached_property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer, if there is one. Raises MissingExtra if its library isn't installed."""
        return None if self._read is None else self._read()

    def encode(self, text: str, first: bool) -> list[int]:
        """Return a text's tokens. first: whether it begins a context.

        Raises ModelError without a tokenizer, and for half a surrogate pair, which no tokenizer takes; ArgumentError
        for anything but a text, and for a tokenizer that returns anything but numbers.
        """
        tokenizer = self.tokenizer
        if not isinstance(text, str):
            raise ArgumentError(f"expected a text, got {text!r:.100}")
        if tokenizer is None:
            raise ModelError("a text needs a tokenizer: give numbers of tokens instead, or Generator(tokenizer=...)")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ModelError(f"expected a text of Unicode, got {text[error.start]!r} at {error.start}") from error
        if first and self._start is not None:
            return [*self._numbers(self._start), *_encoded(tokenizer, text, False)]
        return _encoded(tokenizer, text, first)

    @property
    def has_template(self) -> bool:
        """Whether there is a template of conversations."""
        return self._chat is not None

    @cached_property
    def template(self) -> "ChatTemplate":
        """The template of conversations. Raises ModelError if there is none, or it isn't valid."""
        from litecl.generate.templates import ChatTemplate  # and with it jinja2, only for conversations

        if self._chat is None:
            raise ModelError(
                "chat: this file has no chat template: give one with Generator(template=FILE) or --template FILE"
            )
        tokenizer = self.tokenizer
        start = self._start_numbers()
        names = {"bos_token": "" if tokenizer is None or not start else self._name(start[0])}
        ends = self.stops(False)
        names["eos_token"] = "" if not ends else self._name(ends[-1][0])
        return ChatTemplate(self._chat, names)

    @cached_property
    def takes_parts(self) -> bool:
        """Whether the template reads a message's content as a list of parts only."""
        try:
            return _PROBE not in self.template.render(
                [{"role": "user", "content": _PROBE}], add_generation_prompt=False
            )
        except ModelError:
            return False  # it wants other messages first

    def encode_chat(self, text: str) -> list[int]:
        """Return the tokens of a whole conversation: with a start token if the file asks for it, or the text has it.

        Those of the latest one are kept: a server asks several sessions what they share with it.
        """
        latest, tokens = self._latest
        if latest != text:
            tokens = self._encoded_chat(text)
            self._latest = text, tokens
        return [*tokens]

    def _encoded_chat(self, text: str) -> list[int]:
        start = self._start_numbers()
        name = self._name(start[0]) if start else ""
        if name and text.startswith(name):
            return [*start, *self.encode(text[len(name) :], False)]
        return [*(start if self._start is not None else ()), *self.encode(text, False)]

    def _start_numbers(self) -> Sequence[int]:
        if self._start is not None:
            return self._numbers(self._start)
        return () if self.tokenizer is None else _encoded(self.tokenizer, "", True)[:1]

    def _name(self, token: int) -> str:
        return "" if self.tokenizer is None else tokenizers.name(self.tokenizer, token)

    def stops(self, needs_text: bool) -> list[tuple[int, ...]]:
        """Return the token sequences that end a text; without a tokenizer, only those given as numbers."""
        tokenizer = self.usable(needs_text)
        known = [self._numbers(stop) for stop in self._stops if tokenizer is not None or not isinstance(stop, str)]
        return [*known, *([] if tokenizer is None else [(end,) for end in _ends(tokenizer)])]

    def stream(
        self, before: Sequence[int], stop: Sequence[str], needs_text: bool, marked: bool = False
    ) -> TextStream | None:
        """Return a stream that decodes tokens, None without a tokenizer. marked: with the marks of parts of a reply.

        Raises ModelError if ``stop`` needs a tokenizer.
        """
        tokenizer = self.usable(needs_text or bool(stop))
        if tokenizer is None and stop:
            raise ModelError(
                "stop: without a tokenizer there are no texts: give stop_tokens, or Generator(tokenizer=...)"
            )
        if tokenizer is None:
            return None
        return TextStream(partial(tokenizers.marked, tokenizer) if marked else tokenizer.decode, before, stop)

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
        return tuple(_encoded(self.tokenizer, named, False))


def _encoded(tokenizer: Tokenizer, text: str, first: bool) -> list[int]:
    return _checked("encode()", tokenizer.encode(text, first))


def _ends(tokenizer: Tokenizer) -> list[int]:
    return _checked("stop_tokens", tokenizer.stop_tokens)


def _checked(source: str, tokens: Sequence[int]) -> list[int]:
    """Return what a tokenizer returns, which may be a caller's own. Raises ArgumentError for anything but tokens."""
    try:
        return tokenizers.numbers_of(tokens)
    except TypeError as error:
        raise ArgumentError(f"tokenizer: expected numbers of tokens from {source}, got {tokens!r:.100}") from error
