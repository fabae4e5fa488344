"""Replies in JSON, and calls of tools: which tokens a schema lets follow, by the package llguidance."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np

from litecl.generate import tokenizers
from litecl.generate.chat import ChatPrompt
from litecl.generate.generator import Generator
from litecl.generate.replies import MARKS
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array
from litecl.serve.completions import Refused

Mask = Callable[[Sequence[int], Array], None]

_WRITTEN = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}  # else blanks may never end
_LAST = 32  # tokens, which are more than any mark has
_TEXTS, _JOINS = {"pattern", "format"}, {"$ref", "allOf", "anyOf", "oneOf"}  # what stands beside these holds too
_PARTS = {"properties", "patternProperties", "additionalProperties", "items", "prefixItems"}
_CONDITIONS = {*_TEXTS, *_JOINS, *_PARTS, "multipleOf"}
_MOST_PATTERNS, _MOST_STATES = 8, 50_000  # for which llguidance takes a second at most


class JsonReplies:
    """Makes masks of ``GenerationOptions`` for replies of one model."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator

    def mask(self, schema: Mapping[str, Any], prompt: ChatPrompt) -> Mask:
        """Return the mask of one reply; thinking that the prompt has begun comes first. Raises Refused."""
        with _refusing("response_format"):
            _require_simple(schema)
            grammar = _llguidance().LLMatcher.grammar_from_json_schema(dict(schema), _WRITTEN)
            return self._mask(grammar, prompt, "response_format")

    def mask_of_calls(self, calls: Mapping[str, Mapping[str, Any]], prompt: ChatPrompt) -> Mask:
        """Return the mask of a reply that calls one of these tools. calls: the schema of each one's arguments."""
        with _refusing("tool_choice"):
            if not prompt.form.call:
                raise ValueError('expected "auto" or "none", as this model does not write its calls in JSON')
            _require_simple({"tools": [*calls.values()]})
            rules = [f"start: {self._with_tokens(prompt.form.call)}"]
            rules += [f"call: {' | '.join(f'call_{n}' for n in range(len(calls)))}"]
            for number, (name, schema) in enumerate(calls.items()):
                if schema.get("type") != "object":
                    raise ValueError(f'expected a schema of the type "object" for the arguments of {name}')
                begin = f'{{"name": "{name}", "{"parameters" if prompt.form.bare else "arguments"}": '
                rules += [f'call_{number}: {json.dumps(begin)} arguments_{number} "}}"']
                rules += [f"arguments_{number}: %json {json.dumps({**schema, 'x-guidance': _WRITTEN})}"]
            return self._mask(_llguidance().LLMatcher.grammar_from_lark("\n".join(rules)), prompt, "tool_choice")

    def _with_tokens(self, rule: str) -> str:
        """Return a rule with tokens in place of the marks that are tokens: texts don't match special ones."""
        tokenizer = self._generator.tokenizer
        for mark in MARKS:
            last = [] if tokenizer is None else tokenizer.encode(mark, False)[-1:]
            if tokenizer is not None and last and tokenizers.name(tokenizer, last[0]) == mark:
                rule = rule.replace(f'"{mark}"', f"<[{last[0]}]>")
        return rule

    def _mask(self, grammar: str, prompt: ChatPrompt, param: str) -> Mask:
        matcher = _llguidance().LLMatcher(self._tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise ValueError(_fault(matcher))
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
                raise ModelError(f"{param}: {_fault(matcher)}")
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
            raise ValueError("this model has no tokenizer.json or SentencePiece model, or no token that ends a text")
        if hasattr(library, "id_to_piece"):
            source, known = llguidance.TokenizerWrapper(_pieces(library, ends[0])), len(library)
        else:
            source, known = library.to_str(), library.get_vocab_size()
        try:
            return llguidance.LLTokenizer(source, n_vocab=max(self._generator.vocabulary, known), eos_token=ends)
        except Exception as error:  # the library raises any
            raise ValueError(f"llguidance can't read this model's tokenizer: {error}") from error


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
    """Raise ValueError for conditions that llguidance, whose limits don't count them, takes minutes or much memory for.

    Each further pattern of one text doubles both; a multiple takes the square of the number that its digits write, and
    the multiples of one number act as their product.
    """
    parts = [*_parts(schema)]
    joined = any(_joins(part) for part in parts)
    if joined and sum(len(part.keys() & _TEXTS) for part in parts) > _MOST_PATTERNS:
        raise ValueError(f"expected at most {_MOST_PATTERNS} patterns and formats in a schema that joins conditions")
    multiples = [part["multipleOf"] for part in parts if isinstance(part.get("multipleOf"), int | float)]
    states = [int(re.sub(r"e.*|\D", "", str(each)) or 0) for each in multiples]
    if (prod(states) if joined else max(states, default=0)) > _MOST_STATES:
        raise ValueError(
            f"multipleOf: expected digits of at most {_MOST_STATES}, all multiplied if a schema joins conditions"
        )


def _joins(part: Mapping[str, Any]) -> bool:
    """Return whether several conditions of a schema may hold for one value."""
    every = part.get("allOf")
    return (isinstance(every, list) and len(every) > 1) or (
        not part.keys().isdisjoint(_JOINS) and len(part.keys() & _CONDITIONS) > 1
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
        raise ValueError("JSON needs the package llguidance on the server: pip install 'litecl[json]'") from error
    return llguidance


@contextmanager
def _refusing(param: str) -> Iterator[None]:
    """Refuse a request for a ValueError. param: the field that asks for what can't be."""
    try:
        yield
    except ValueError as error:
        raise Refused(400, f"{param}: {error}", param, "unsupported_parameter") from error
