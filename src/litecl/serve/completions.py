"""Requests and answers of OpenAI's protocol for texts and chats: https://platform.openai.com/docs/api-reference."""

import json
import re
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from secrets import randbits
from typing import Annotated, Any

import numpy as np
from starlette.exceptions import HTTPException

from litecl.generate.chat import ChatPiece, Reply
from litecl.generate.options import Finish, Piece
from litecl.generate.sampling import log_softmax
from litecl.generate.session import ContextFull
from litecl.generate.tokenizers import Tokenizer
from litecl.interpreter.errors import ArgumentError, LiteclError, ModelError
from litecl.interpreter.graph import Array
from litecl.interpreter.records import Matching, Misfit, Within, record

_MOST_CHOICES, _MOST_STOPS, _MOST_ALTERNATIVES, _MOST_BIASES = 128, 16, 20, 1024
_IGNORED = ("user", "store", "metadata", "service_tier", "parallel_tool_calls", "safety_identifier", "prompt_cache_key")
_TOOL = "[A-Za-z0-9_-]{1,64}"  # the name of a tool
_NO_ARGUMENTS = {"type": "object", "additionalProperties": False}
_LEAST = -9999.0  # the protocol's log probability of a token that is very unlikely
_Penalty = Annotated[float, Within(-2, 2)]
_Biases = Mapping[Annotated[str, Matching("[0-9]{1,9}", "a token's number")], Annotated[float, Within(-100, 100)]]


class Refused(HTTPException):  # type: ignore[misc]
    """A request that is refused. param, code: see the protocol's error objects."""

    def __init__(self, status: int, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(status, message)
        self.param, self.code = param, code


def error_object(status: int, message: str, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """Return an error as the protocol writes it."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


@dataclass(frozen=True, kw_only=True)
class _Options:
    """What both kinds of requests have. top_k, repetition_penalty: litecl's own, as other servers name them."""

    model: str
    stream: bool = False
    stream_options: Mapping[str, Any] = field(default_factory=dict)
    max_tokens: Annotated[int, Within(1)] | None = None
    temperature: Annotated[float, Within(0)] | None = None
    top_p: Annotated[float, Within(0, 1)] | None = None
    top_k: Annotated[int, Within(1)] | None = None
    repetition_penalty: float | None = None
    presence_penalty: _Penalty = 0.0
    frequency_penalty: _Penalty = 0.0
    logit_bias: Annotated[_Biases, Within(0, _MOST_BIASES)] = field(default_factory=dict)
    n: Annotated[int, Within(1, _MOST_CHOICES)] = 1
    seed: int | None = None
    stop: str | Annotated[Sequence[str], Within(0, _MOST_STOPS)] = ()


@dataclass(frozen=True, kw_only=True)
class _ChatRequest(_Options):
    messages: Annotated[Sequence[Any], Within(1)]
    max_completion_tokens: Annotated[int, Within(1)] | None = None
    logprobs: bool = False
    top_logprobs: Annotated[int, Within(0, _MOST_ALTERNATIVES)] = 0
    tools: Sequence[Any] = ()
    tool_choice: Any = None
    response_format: Mapping[str, Any] = field(default_factory=dict)
    reasoning_effort: str | None = None
    modalities: Sequence[str] = ("text",)
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _TextRequest(_Options):
    prompt: Any
    max_tokens: Annotated[int, Within(0)] | None = None
    logprobs: Annotated[int, Within(0, _MOST_ALTERNATIVES)] | None = None
    echo: bool = False
    best_of: int | None = None
    suffix: str | None = None


@dataclass(frozen=True)
class Asked:
    """A request. options: of ``Session.stream``, without the seed. alternatives: how many tokens to tell beside each.

    messages, tools, variables: of a chat. schema: of the JSON that replies are to be. calls: the tools of which replies
    are to call one, with the schemas of their arguments. prompts: of texts, each a text or tokens.
    """

    chat: bool
    stream: bool
    with_usage: bool
    choices: int
    seed: int | None
    options: Mapping[str, Any]
    alternatives: int | None
    messages: Sequence[Any] = ()
    tools: Sequence[Any] = ()
    variables: Mapping[str, Any] = field(default_factory=dict)
    schema: Mapping[str, Any] | None = None
    calls: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    prompts: Sequence[str | Sequence[int]] = ()

    def options_of(self, choice: int) -> dict[str, Any]:
        """Return the options of one of the choices, whose texts differ, whatever seed the file sets."""
        return {**self.options, "seed": randbits(63) if self.seed is None else (self.seed + choice) % (1 << 63)}


def asked_of(body: bytes | bytearray, name: str, defaults: Mapping[str, Any], *, chat: bool) -> Asked:
    """Return a request. name: of the model. defaults: options that its file sets. Raises Refused."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"expected a JSON object ({type(error).__name__}: {error})") from error
    if not isinstance(document, dict):
        raise Refused(400, f"expected a JSON object, got {type(document).__name__}")
    given = {key: value for key, value in document.items() if value is not None and key not in _IGNORED}
    kind: type[_ChatRequest] | type[_TextRequest] = _ChatRequest if chat else _TextRequest
    for each in given.keys() - {known.name for known in fields(kind)}:
        raise _unsupported(each)
    try:
        request = record(kind, given)
    except Misfit as error:
        raise Refused(400, str(error), error.field.partition("[")[0]) from error
    if request.model != name:
        detail = f"The model {request.model[:200]!r} does not exist; expected {name!r}"
        raise Refused(404, detail, "model", "model_not_found")
    for each, is_unknown in _UNKNOWN.items():
        if hasattr(request, each) and is_unknown(getattr(request, each)):
            raise _unsupported(each)
    return _chat(request, defaults) if isinstance(request, _ChatRequest) else _texts(request, defaults)


def _unsupported(name: str) -> Refused:
    return Refused(400, f"{name[:100]}: this server has no such option", name[:100], "unsupported_parameter")


_UNKNOWN: Mapping[str, Any] = {
    "suffix": bool,
    "echo": bool,
    "best_of": lambda value: value not in (None, 1),
    "modalities": lambda value: [*value] != ["text"],
    "reasoning_effort": bool,
}
"""Fields that are understood, with values that are not, by a test."""


def _chat(request: _ChatRequest, defaults: Mapping[str, Any]) -> Asked:
    if request.top_logprobs and not request.logprobs:
        raise Refused(400, "top_logprobs: expected logprobs to be true", "top_logprobs")
    tools = () if request.tool_choice == "none" else request.tools
    schema = _schema(request.response_format)
    if tools and schema is not None:
        raise Refused(400, 'response_format: JSON without tools, or with tool_choice "none"', "response_format")
    most = request.max_tokens if request.max_completion_tokens is None else request.max_completion_tokens
    return Asked(
        True,
        request.stream,
        bool(request.stream_options.get("include_usage")),
        request.n,
        request.seed,
        _options(request, most, defaults, request.logprobs, request.top_logprobs),
        request.top_logprobs if request.logprobs else None,
        messages=request.messages,
        tools=tools,
        variables=request.chat_template_kwargs,
        schema=schema,
        calls=_required(request.tool_choice, tools),
    )


def _required(tool_choice: Any, tools: Sequence[Any]) -> Mapping[str, Mapping[str, Any]]:
    """Return the tools of which a reply must call one, with the schemas of their arguments; none if it need not."""
    if tool_choice in (None, "auto", "none"):
        return {}
    schemas = dict[str, Mapping[str, Any]]()
    for index, tool in enumerate(tools):
        function = tool.get("function") if isinstance(tool, dict) else None
        name, given = (function.get("name"), function.get("parameters")) if isinstance(function, dict) else (None, None)
        if not isinstance(name, str) or not re.fullmatch(_TOOL, name) or not isinstance(given, dict | None):
            expected = 'expected {"type": "function", "function": {"name": ..., "parameters": {...}}}'
            raise Refused(400, f"tools[{index}]: {expected}, with a name as {_TOOL}", "tools")
        schemas[name] = _NO_ARGUMENTS if given is None else given
    match tool_choice:
        case "required" if schemas:
            return schemas
        case {"type": "function", "function": {"name": str(name)}} if name in schemas:
            return {name: schemas[name]}
    expected = 'expected "auto", "none", "required" or {"type": "function", "function": {"name": ...}}'
    raise Refused(400, f"tool_choice: {expected}, of one of {[*schemas][:20]}", "tool_choice")


def _schema(response_format: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the schema of a reply in JSON, None for a text."""
    match response_format:
        case {"type": "json_object"}:
            return {"type": "object"}
        case {"type": "json_schema", "json_schema": {"schema": dict(schema)}}:
            return schema
    if response_format.get("type", "text") != "text":
        expected = 'the type "text", "json_object", or "json_schema" with {"json_schema": {"schema": {...}}}'
        raise Refused(400, f"response_format: expected {expected}", "response_format")
    return None


def _texts(request: _TextRequest, defaults: Mapping[str, Any]) -> Asked:
    alternatives, most = request.logprobs, 16 if request.max_tokens is None else request.max_tokens
    return Asked(
        False,
        request.stream,
        bool(request.stream_options.get("include_usage")),
        request.n,
        request.seed,
        _options(request, most, defaults, alternatives is not None, alternatives or 0),
        alternatives,
        prompts=_prompts(request.prompt),
    )


def _options(
    request: _Options, most: int | None, defaults: Mapping[str, Any], log_probs: bool, alternatives: int
) -> dict[str, Any]:
    """Return the options of a generation: the request's, else the file's, else the protocol's temperature of 1."""
    stop = (request.stop,) if isinstance(request.stop, str) else tuple(request.stop)
    if not all(stop):
        raise Refused(400, "stop: expected texts of at least one character", "stop")
    options: dict[str, Any] = {"max_tokens": most, "stop": stop, "log_probs": log_probs, "logits": alternatives > 0}
    options |= {"presence_penalty": request.presence_penalty, "frequency_penalty": request.frequency_penalty}
    options["logit_bias"] = {int(token): bias for token, bias in request.logit_bias.items()}
    for name in ("temperature", "top_p", "top_k", "repetition_penalty"):
        if getattr(request, name) is not None:
            options[name] = getattr(request, name)
    if options.get("top_p") == 0:  # the most likely token alone, which the protocol allows
        options |= {"top_p": 1.0, "top_k": 1}
    return {"temperature": defaults.get("temperature", 1.0), **options}


def _prompts(given: Any) -> list[str | Sequence[int]]:
    """Return the prompts: of a text, several, tokens, or several of these."""
    if isinstance(given, str) or _are_tokens(given):
        return [given]
    if isinstance(given, list) and given and all(isinstance(each, str) or _are_tokens(each) for each in given):
        if len(given) > _MOST_CHOICES:
            raise Refused(400, f"prompt: expected at most {_MOST_CHOICES}, got {len(given)}", "prompt")
        return given
    raise Refused(400, "prompt: expected a text, a list of texts, or tokens", "prompt")


def _are_tokens(given: Any) -> bool:
    return isinstance(given, list) and bool(given) and all(type(each) is int for each in given)


def refusal_of(error: LiteclError) -> Refused:
    """Return how to refuse a request whose generation raises."""
    if isinstance(error, ContextFull):
        return Refused(400, str(error), None, "context_length_exceeded")
    wrong = isinstance(error, ModelError | ArgumentError)
    return Refused(400 if wrong else 500, f"{type(error).__name__}: {error}")


@dataclass
class Usage:
    """Counts of tokens. cached: of the prompt, those that the server had read for an earlier request."""

    prompt: int = 0
    cached: int = 0
    generated: int = 0

    def document(self) -> dict[str, Any]:
        """Return the counts as the protocol writes them."""
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.generated,
            "total_tokens": self.prompt + self.generated,
            "prompt_tokens_details": {"cached_tokens": self.cached},
        }


@dataclass(frozen=True)
class TokenScore:
    """A token and its log probability. alternatives: the most likely tokens there, with theirs."""

    token: int
    log_prob: float
    alternatives: Sequence[tuple[int, float]]

    @classmethod
    def of(cls, pieces: Sequence[Piece], count: int) -> "list[TokenScore]":
        """Return the scores of pieces, without stop tokens. count: of alternatives. Drops the pieces' logits."""
        scores = []
        for piece in pieces:
            likely = [] if piece.logits is None else _most_likely(log_softmax(piece.logits), count)
            piece.logits = None  # of all tokens they would take much memory
            if piece.finish != "stop token":
                scores.append(cls(piece.token, max(piece.log_prob or 0.0, _LEAST), likely))
        return scores


def _most_likely(log_probs: Array, count: int) -> list[tuple[int, float]]:
    tokens = np.argpartition(-log_probs, count - 1)[:count] if count < len(log_probs) else np.arange(len(log_probs))
    ordered = tokens[np.lexsort((tokens, -log_probs[tokens]))]
    return [(int(token), max(float(log_probs[token]), _LEAST)) for token in ordered]


class Answer:
    """Writes the answers of a request, whole or in chunks. tokenizer: names the tokens of log probabilities."""

    def __init__(self, asked: Asked, name: str, tokenizer: Tokenizer | None) -> None:
        self._asked, self._name, self._tokenizer = asked, name, tokenizer
        self._id = f"{'chatcmpl' if asked.chat else 'cmpl'}-{uuid.uuid4().hex}"
        self._created = int(time.time())
        self._offsets: dict[int, int] = {}  # of the next token's text, by choice

    def whole(self, choices: Sequence[tuple[Reply, Sequence[TokenScore]]], usage: Usage) -> dict[str, Any]:
        """Return the answer. choices: the reply of each, and its tokens."""
        listed = [self._choice(index, reply, scores) for index, (reply, scores) in enumerate(choices)]
        kind = "chat.completion" if self._asked.chat else "text_completion"
        return self._head(kind) | {"choices": listed, "usage": usage.document()}

    def chunks(self, index: int, piece: ChatPiece, scores: Sequence[TokenScore], first: bool) -> list[dict[str, Any]]:
        """Return a piece of a choice as chunks. scores: of its tokens. first: whether it begins the choice."""
        log_probs = self._log_probs(index, scores)
        reason = None if piece.reply is None else finish_reason(piece.finish, piece.reply)
        if not self._asked.chat:
            return [self._chunk({"index": index, "text": str(piece), "logprobs": log_probs, "finish_reason": reason})]
        deltas = [{"role": "assistant", "content": ""}] if first else []
        if piece and piece.part != "tool calls":
            deltas.append({"content" if piece.part == "content" else "reasoning_content": str(piece)})
        if piece.reply is not None and piece.reply.tool_calls:
            calls = [{"index": i, **call} for i, call in enumerate(_calls(piece.reply))]
            deltas.append({"tool_calls": calls})  # type: ignore[dict-item]
        if log_probs is not None and len(deltas) == first:
            deltas.append({"content": ""})
        chunks = [self._chunk({"index": index, "delta": each, "finish_reason": None}) for each in deltas]
        if log_probs is not None:
            chunks[-1]["choices"][0]["logprobs"] = log_probs
        if reason is not None:
            chunks.append(self._chunk({"index": index, "delta": {}, "finish_reason": reason}))
        return chunks

    def last(self, usage: Usage) -> dict[str, Any] | None:
        """Return the chunk that tells the usage, if it was asked for."""
        return self._chunk(None) | {"usage": usage.document()} if self._asked.with_usage else None

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self._id, "object": kind, "created": self._created, "model": self._name}

    def _chunk(self, choice: dict[str, Any] | None) -> dict[str, Any]:
        kind = "chat.completion.chunk" if self._asked.chat else "text_completion"
        chunk = self._head(kind) | {"choices": [] if choice is None else [choice]}
        return chunk | {"usage": None} if self._asked.with_usage else chunk

    def _choice(self, index: int, reply: Reply, scores: Sequence[TokenScore]) -> dict[str, Any]:
        log_probs = self._log_probs(index, scores)
        reason = finish_reason(reply.finish, reply)
        if not self._asked.chat:
            return {"index": index, "text": reply.content, "logprobs": log_probs, "finish_reason": reason}
        message: dict[str, Any] = {"role": "assistant", "content": reply.content, "refusal": None}
        if reply.thinking:
            message["reasoning_content"] = reply.thinking
        if reply.tool_calls:
            message |= {"content": reply.content or None, "tool_calls": _calls(reply)}
        return {"index": index, "message": message, "logprobs": log_probs, "finish_reason": reason}

    def _log_probs(self, index: int, scores: Sequence[TokenScore]) -> dict[str, Any] | None:
        if self._asked.alternatives is None:
            return None
        if self._asked.chat:
            return {"content": [self._scored(each) for each in scores], "refusal": None}
        texts, offsets = [self._text(each.token) for each in scores], []
        for text in texts:
            offsets.append(self._offsets.get(index, 0))
            self._offsets[index] = offsets[-1] + len(text)
        return {
            "tokens": texts,
            "token_logprobs": [each.log_prob for each in scores],
            "top_logprobs": [self._by_text([*each.alternatives, (each.token, each.log_prob)]) for each in scores],
            "text_offset": offsets,
        }

    def _by_text(self, scored: Sequence[tuple[int, float]]) -> dict[str, float]:
        """Return log probabilities, most likely first: of tokens with the same text the most likely one's."""
        by_text = dict[str, float]()
        for token, log_prob in scored:
            by_text.setdefault(self._text(token), log_prob)
        return by_text

    def _scored(self, score: TokenScore) -> dict[str, Any]:
        others = [self._named(token, log_prob) for token, log_prob in score.alternatives]
        return self._named(score.token, score.log_prob) | {"top_logprobs": others}

    def _named(self, token: int, log_prob: float) -> dict[str, Any]:
        text = self._text(token)
        known = None if "\N{REPLACEMENT CHARACTER}" in text else [*text.encode()]  # a part of a character
        return {"token": text, "logprob": log_prob, "bytes": known}

    def _text(self, token: int) -> str:
        """Return a token's text within a text: at the start of one, tokenizers drop a blank."""
        if self._tokenizer is None:
            return f"token_id:{token}"
        return self._tokenizer.decode([token, token])[len(self._tokenizer.decode([token])) :]


def finish_reason(finish: Finish, reply: Reply) -> str:
    """Return why a choice ends, in the protocol's words."""
    if finish in ("max_tokens", "context"):
        return "length"
    return "tool_calls" if reply.tool_calls else "stop"


def _calls(reply: Reply) -> list[dict[str, Any]]:
    return [
        {
            "id": each.id,
            "type": "function",
            "function": {"name": each.name, "arguments": json.dumps(dict(each.arguments), ensure_ascii=False)},
        }
        for each in reply.tool_calls
    ]
