"""Tokenizers: text to tokens and back, through ``tokenizers`` or ``sentencepiece``."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from operator import index
from pathlib import Path
from typing import Any, Protocol

from litecl.generate.replies import MARKS
from litecl.interpreter.errors import MissingExtra, ModelError
from litecl.interpreter.file.reader import content_of

_INSTALL = "pip install 'litecl[llm]'"
_BESIDE = ("tokenizer.json", "tokenizer.model", "spiece.model", "sentencepiece.model")


class Tokenizer(Protocol):
    """Converts text to tokens and back. Your own needs these methods. first: whether the text begins a context."""

    def encode(self, text: str, first: bool) -> list[int]:
        """Return the tokens of a text."""

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, skipping special ones."""

    @property
    def stop_tokens(self) -> Sequence[int]:
        """The tokens that end a text."""


def numbers_of(tokens: Iterable[object]) -> list[int]:
    """Return tokens as ints. Raises TypeError for anything else: bytes are a text, and a set has no order."""
    if isinstance(tokens, bytes | bytearray | Set | Mapping):
        raise TypeError
    return [index(token) for token in tokens]  # type: ignore[arg-type]  # which checks it


def marked(tokenizer: Tokenizer, tokens: Sequence[int]) -> str:
    """Return the text of tokens, skipping special ones but those that mark the parts of a reply.

    A tokenizer without a method ``marked`` of its own skips all of them.
    """
    return tokenizer.marked(tokens) if hasattr(tokenizer, "marked") else tokenizer.decode(tokens)


def name(tokenizer: Tokenizer, token: int) -> str:
    """Return a token as templates name it, such as ``<bos>``; empty if the tokenizer has no method ``name``."""
    return str(tokenizer.name(token)) if hasattr(tokenizer, "name") else ""


class _Json:
    """Hugging Face's ``tokenizer.json``, read by ``tokenizers``. ends: the text of its end-of-text token."""

    def __init__(self, content: bytes, ends: str | None = None) -> None:
        try:
            from tokenizers import Tokenizer as Library
        except ModuleNotFoundError as error:
            raise MissingExtra(f"a tokenizer.json is read by the package tokenizers: {_INSTALL}") from error
        with _raising("the tokenizer cannot be read"):
            self._library = Library.from_str(content.decode())
        self._library.no_truncation()  # which the file may ask for; a prompt stays whole, as in transformers
        self._library.no_padding()
        end = None if ends is None else self._library.token_to_id(ends)
        self.stop_tokens: Sequence[int] = () if end is None else (end,)
        special = [each.content for each in self._library.get_added_tokens_decoder().values() if each.special]
        self._unmarked = re.compile(
            "|".join(map(re.escape, sorted({*special} - {*MARKS}, key=len, reverse=True))) or "$."
        )
        self._keeps_marks = bool({*special} & {*MARKS})

    @property
    def library(self) -> Any:
        """The ``tokenizers.Tokenizer``."""
        return self._library

    def name(self, token: int) -> str:
        return self._library.id_to_token(token) or ""

    def marked(self, tokens: Sequence[int]) -> str:
        if not self._keeps_marks:
            return self.decode(tokens)
        return self._unmarked.sub("", self._library.decode([*tokens], skip_special_tokens=False))

    def encode(self, text: str, first: bool) -> list[int]:
        with _raising("the tokenizer cannot encode the text"):
            return list(self._library.encode(text, add_special_tokens=first).ids)

    def decode(self, tokens: Sequence[int]) -> str:
        return str(self._library.decode([*tokens]))


@contextmanager
def _raising(what: str) -> Iterator[None]:
    """Raise ModelError for a library's error: a plain Exception, or a panic of Rust's, which is none."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise ModelError(f"{what}: {error}") from error
        raise


class _SentencePiece:
    """A SentencePiece model, read by ``sentencepiece``."""

    def __init__(self, content: bytes) -> None:
        try:
            from sentencepiece import SentencePieceProcessor
        except ModuleNotFoundError as error:
            raise MissingExtra(
                f"a tokenizer of SentencePiece is read by the package sentencepiece: {_INSTALL}"
            ) from error
        if not content:  # the library would accept it but load nothing
            raise ModelError("the tokenizer cannot be read: it is empty")
        with _raising("the tokenizer cannot be read"):
            self._library = SentencePieceProcessor(model_proto=content)
        ends = self._library.eos_id()
        self.stop_tokens: Sequence[int] = () if ends < 0 else (ends,)

    @property
    def library(self) -> Any:
        """The ``sentencepiece.SentencePieceProcessor``."""
        return self._library

    def name(self, token: int) -> str:
        return str(self._library.id_to_piece(token)) if token < len(self._library) else ""

    def encode(self, text: str, first: bool) -> list[int]:
        begins = first and self._library.bos_id() >= 0
        return [*([self._library.bos_id()] if begins else []), *self._library.encode(text)]

    def decode(self, tokens: Sequence[int]) -> str:
        known = len(self._library)  # a model may have more tokens than pieces: the rest have no text
        return str(self._library.decode([token for token in tokens if token < known]))


def load(content: bytes, ends: str | None = None) -> Tokenizer:
    """Return the tokenizer in a file's content, JSON or SentencePiece. ends: as for ``tokenizer.json``.

    Raises MissingExtra if its library isn't installed, and ModelError for content that it can't read.
    """
    return _Json(content, ends) if content.lstrip()[:1] == b"{" else _SentencePiece(content)


def from_file(path: Path) -> Tokenizer:
    """Load a tokenizer. A ``tokenizer.json`` takes its end-of-text token from ``tokenizer_config.json`` beside it.

    Raises the errors of ``load``, and ModelFileError.
    """
    content = bytes(content_of(path))
    try:
        return load(content, _ends(path.with_name("tokenizer_config.json")))
    except ModelError as error:
        expected = "expected a tokenizer.json or a SentencePiece model"
        raise ModelError(f"{path}: {expected}: {error}") from error


def beside(model: Path) -> Path | None:
    """Return the tokenizer file in a model's folder, None if there is none."""
    return next((path for name in _BESIDE if (path := model.with_name(name)).is_file()), None)


def _ends(config: Path) -> str | None:
    try:
        token: Any = json.loads(config.read_bytes()).get("eos_token")
    except (OSError, ValueError, RecursionError, AttributeError):
        return None
    ends = token.get("content") if isinstance(token, dict) else token
    return ends if isinstance(ends, str) else None
