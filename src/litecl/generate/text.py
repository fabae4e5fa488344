"""Decodes a token stream, holding back incomplete characters and text that may begin a stop sequence."""

from collections.abc import Callable, Sequence

from litecl.generate.overlap import overlap
from litecl.interpreter.errors import ArgumentError

_UNFINISHED = "\N{REPLACEMENT CHARACTER}"  # shown for a character whose other bytes are in the next token
_CONTEXT = 6  # earlier tokens to decode along: they affect how a token is written


class TextStream:
    """Decodes tokens one by one. decode: to a text. before: the tokens before the first. stop: texts that end it."""

    def __init__(self, decode: Callable[[Sequence[int]], str], before: Sequence[int], stop: Sequence[str]) -> None:
        self._decode = decode
        self._tokens = [*before[-_CONTEXT:]]
        self._out = len(self._tokens)  # number of tokens whose text is out
        self._start = 0  # first token to decode again
        self._stop = stop
        self._held = ""
        self.stopped = False

    def push(self, token: int, last: bool = False) -> str:
        """Add a token; return the text that is now certain. last: no token follows, so nothing is held back.

        ``stopped`` is True once a stop sequence is complete: the text ends before it.
        """
        self._tokens.append(token)
        return self._released(self._written(last), last)

    def extend(self, tokens: Sequence[int], last: bool) -> str:
        """Add tokens up to a stop sequence; return the text that is now certain. last: as for ``push``."""
        written = ""
        for token in tokens:
            written += "" if self.stopped else self.push(token)
        return written + (self.flush() if last and not self.stopped else "")

    def flush(self) -> str:
        """Return the text held back, up to a stop sequence."""
        return self._released(self._written(True), True)

    def _written(self, last: bool) -> str:
        """Return the text that the tokens add. Raises ArgumentError for a tokenizer that returns another thing."""
        before = self._decode(self._tokens[self._start : self._out])
        now = self._decode(self._tokens[self._start :])
        if not isinstance(now, str):
            raise ArgumentError(f"tokenizer: expected a text from decode(), got {now!r:.100}")
        if len(now) <= len(before) or (now.endswith(_UNFINISHED) and not last):
            return ""
        self._start, self._out = self._out, len(self._tokens)
        return now[len(before) :]

    def _released(self, added: str, last: bool) -> str:
        text = self._held + added
        ends = [position for each in self._stop if (position := text.find(each)) >= 0]
        if ends:
            self.stopped, self._held = True, ""
            return text[: min(ends)]
        kept = 0 if last else max((overlap(text, each) for each in self._stop), default=0)
        self._held = text[len(text) - kept :]
        return text[: len(text) - kept]
