"""Reads a bundle's description of its model: start and stop tokens, sampling, context length, chat template.

The messages LlmMetadata and ExecutorMetadata of https://github.com/google-ai-edge/LiteRT-LM/tree/main/runtime/proto.
"""

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from litecl.generate.lexicon import Named
from litecl.generate.protobuf import Message
from litecl.interpreter.dataclass import dataclass

_UNSPECIFIED, _TOP_K, _TOP_P, _GREEDY = range(4)  # sampler types; LiteRT-LM takes the first for _TOP_P


@dataclass(frozen=True)
class Metadata:
    """start, stops: see ``Lexicon``. sampling: default keywords of ``GenerationOptions``.

    context_length, sliding_window: None if not given. template: of chats, in Jinja; None if not given. thinking: the
    marks around the parts of a reply that are thinking.
    """

    start: Named | None = None
    stops: tuple[Named, ...] = ()
    sampling: Mapping[str, Any] = field(default_factory=dict)
    context_length: int | None = None
    sliding_window: int | None = None
    template: str | None = None
    thinking: tuple[tuple[str, str], ...] = ()


def metadata(llm: bytes, executor: bytes = b"") -> Metadata:
    """Decode the messages. Raises ModelError for invalid bytes."""
    message, runs = Message(llm), Message(executor).message(1)
    starts = [_token(each) for each in message.messages(1)]
    stops = [_token(each) for each in message.messages(2)]
    return Metadata(
        next((start for start in starts if start), None),
        tuple(stop for stop in stops if stop),
        _sampling(message.message(4)) if 4 in message else {},
        runs.integer(1) or message.integer(5) or None,
        runs.message(3).integer(3) or None,
        message.text(7) or (_affixes(message.message(3)) if 3 in message else None),
        tuple((each.text(2), each.text(3)) for each in message.messages(8) if each.integer(4)),
    )


def _affixes(given: Message) -> str:
    """Return a template that puts texts before and after each message, by role, as older bundles have them."""
    roles = {"user": 1, "assistant": 2, "system": 3}
    around = {role: [given.message(n).text(1), given.message(n).text(2)] for role, n in roles.items()}
    return _AFFIXED.replace("AROUND", json.dumps(around))


_AFFIXED = """\
{%- set around = AROUND -%}
{%- for message in messages -%}
{%- if message.role not in around -%}
{{- raise_exception("no role " ~ message.role ~ " in this model's prompts") -}}
{%- endif -%}
{{- around[message.role][0] ~ message.content ~ around[message.role][1] -}}
{%- endfor -%}
{%- if add_generation_prompt %}{{ around.assistant[0] }}{% endif -%}
"""


def _token(union: Message) -> Named:
    return union.text(2) or union.message(1).integers(1)


def _sampling(given: Message) -> dict[str, Any]:
    """Return the keywords for SamplerParameters. Without a known type there are none."""
    kind, k, p, temperature = given.integer(1), given.integer(2), given.number(3), given.number(4)
    if kind == _GREEDY:
        return {"temperature": 0.0}
    if kind not in (_TOP_K, _TOP_P) and not (kind == _UNSPECIFIED and temperature > 0):
        return {}
    fields: dict[str, Any] = {"temperature": temperature if 4 in given else 1.0}
    if k > 0:
        fields["top_k"] = k
    if kind != _TOP_K and 0 < p <= 1:
        fields["top_p"] = p
    if 5 in given:
        fields["seed"] = given.integer(5) % (1 << 32)
    return fields
