"""Replies in JSON: which tokens a schema lets follow, by the package llguidance."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np

from litecl.generate import tokenizers
from litecl.generate.chat import ChatPrompt
from litecl.generate.generator import Generator
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array
from litecl.serve.completions import Refused

_WRITTEN = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}  # else blanks may never end
_LAST = 32  # tokens, which are more than any mark has
_TEXTS, _JOINS = {"pattern", "format"}, {"$ref", "anyOf", "oneOf"}  # what stands beside these holds too
_CONDITIONS = {*_TEXTS, *_JOINS, "multipleOf"}
_MOST_PATTERNS, _MOST_STATES = 8, 50_000  # for which llguidance takes a second at most


class JsonReplies:
    """Makes masks of ``GenerationOptions`` for replies of one model."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator

    def mask(self, schema: Mapping[str, Any], prompt: ChatPrompt) -> Callable[[Sequence[int], Array], None]:
        """Return the mask of one reply; thinking that the prompt has begun comes first. Raises Refused."""
        tokenizer, llguidance = self._tokenizer, _llguidance()
        _require_simple(schema)
        try:
            grammar = llguidance.LLMatcher.grammar_from_json_schema(dict(schema), _WRITTEN)
        except ValueError as error:
            raise _refused(str(error)) from error
        matcher = llguidance.LLMatcher(tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise _refused(_fault(matcher))
        ends = [each.end for each in prompt.form.marks if each.part == prompt.within == "thinking"]

        def mask(tokens: Sequence[int], allowed: Array) -> None:
            if ends:
                if not any(end in self._text(tokens[-_LAST:]) for end in ends):
                    return
                ends.clear()
            elif tokens:
                matcher.consume_token(tokens[-1])
            chosen = np.frombuffer(matcher.compute_logit_bias(), np.uint8)[: len(allowed)]
            if matcher.is_error():  # such as a grammar that becomes too complex
                raise ModelError(f"response_format: {_fault(matcher)}")
            allowed[:] = False
            allowed[: len(chosen)] = chosen > 0

        return mask

    def _text(self, tokens: Sequence[int]) -> str:
        assert self._generator.tokenizer is not None
        return tokenizers.marked(self._generator.tokenizer, tokens)

    @cached_property
    def _tokenizer(self) -> Any:
        """The tokenizer as llguidance has it."""
        llguidance = _llguidance()
        library = getattr(self._generator.tokenizer, "library", None)
        ends = [*self._generator.stop_tokens]
        if library is None or not ends:
            raise _refused("this model has no tokenizer.json or SentencePiece model, or no token that ends a text")
        if hasattr(library, "id_to_piece"):
            source, known = llguidance.TokenizerWrapper(_pieces(library, ends[0])), len(library)
        else:
            source, known = library.to_str(), library.get_vocab_size()
        try:
            return llguidance.LLTokenizer(source, n_vocab=max(self._generator.vocabulary, known), eos_token=ends)
        except Exception as error:  # the library raises any
            raise _refused(f"llguidance can't read this model's tokenizer: {error}") from error


def _pieces(library: Any, end: int) -> Any:
    """Return a SentencePiece model in the form that llguidance takes: the bytes of each token."""
    numbers = range(len(library))
    special = [n for n in numbers if library.is_control(n) or library.is_unknown(n) or library.is_unused(n)]
    texts = [library.id_to_piece(n) for n in numbers]
    encoded = [
        bytes([int(text[1:-1], 16)]) if library.is_byte(n) else text.replace("\N{LOWER ONE EIGHTH BLOCK}", " ").encode()
        for n, text in enumerate(texts)
    ]
    known = {piece: n for n, piece in enumerate(encoded) if n not in special}
    longest = max(map(len, known))

    class Tokenizer(SimpleNamespace):
        def __call__(self, text: bytes) -> list[int]:
            """Encode a part of a text by the longest pieces: the library would put a blank before it."""
            tokens, at = list[int](), 0
            while at < len(text):
                size = next((n for n in range(longest, 0, -1) if text[at : at + n] in known), None)
                if size is None:
                    return [*tokens, library.unk_id()]
                tokens.append(known[text[at : at + size]])
                at += size
            return tokens

    return Tokenizer(eos_token_id=end, bos_token_id=None, tokens=encoded, special_token_ids=special)


def _require_simple(schema: Mapping[str, Any]) -> None:
    """Refuse conditions for which llguidance, whose limits don't count them, would take minutes or much memory.

    Each further pattern of one text doubles both; a multiple takes the square of the number that its digits write, and
    the multiples of one number act as their product.
    """
    parts = [*_parts(schema)]
    joined = any("allOf" in part or (part.keys() & _JOINS and len(part.keys() & _CONDITIONS) > 1) for part in parts)
    if joined and sum(len(part.keys() & _TEXTS) for part in parts) > _MOST_PATTERNS:
        raise _refused(f"expected at most {_MOST_PATTERNS} patterns and formats in a schema that joins conditions")
    multiples = [part["multipleOf"] for part in parts if isinstance(part.get("multipleOf"), int | float)]
    states = [int(re.sub(r"e.*|\D", "", str(each)) or 0) for each in multiples]
    if (prod(states) if joined else max(states, default=0)) > _MOST_STATES:
        raise _refused(
            f"multipleOf: expected digits of at most {_MOST_STATES}, all multiplied if a schema joins conditions"
        )


def _parts(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield all objects of a document."""
    left = [schema]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            yield each
        left += each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()


def _fault(matcher: Any) -> str:
    """Return a matcher's error without its state, which follows in further lines."""
    return str(matcher.get_error()).partition("\n")[0]


def _llguidance() -> Any:
    try:
        import llguidance
    except ModuleNotFoundError as error:
        raise _refused("JSON needs the package llguidance on the server: pip install 'litecl[json]'") from error
    return llguidance


def _refused(why: str) -> Refused:
    return Refused(400, f"response_format: {why}", "response_format", "unsupported_parameter")
