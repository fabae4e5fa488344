"""Conversations: messages to the text that a chat model reads, and its tokens to a reply."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from litecl.generate.lexicon import Lexicon
from litecl.generate.options import Finish, Generation, Piece, Timing
from litecl.generate.replies import Part, ReplyFormat, Splitter, ToolCall
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ArgumentError, ModelError, brief

Message = Mapping[str, Any]

_THOUGHTS = ("reasoning_content", "thinking", "reasoning")  # names of an earlier reply's thinking
_TEXT = ("text", "input_text")  # types of a part that is a text


@dataclass(frozen=True)
class Reply:
    """A reply of a chat model; ``str()`` is its content.

    thinking: what it wrote before, empty if nothing. tool_calls: the tools it asks for. generation: all that it
    generated, with marks of parts; ``Generation.text`` is the reply as it was written.
    """

    content: str
    thinking: str
    tool_calls: tuple[ToolCall, ...]
    generation: Generation

    @property
    def finish(self) -> Finish:
        """Why the reply ends."""
        return self.generation.finish

    @property
    def message(self) -> dict[str, Any]:
        """The reply as a message, for the next call of ``chat``. Tools' results follow it, with the role "tool"."""
        message: dict[str, Any] = {"role": "assistant", "content": self.content}
        if self.thinking:
            message["reasoning_content"] = self.thinking
        if self.tool_calls:
            message["tool_calls"] = [
                {"id": each.id, "type": "function", "function": {"name": each.name, "arguments": dict(each.arguments)}}
                for each in self.tool_calls
            ]
        return message

    def __str__(self) -> str:
        return self.content


class ChatPiece(str):
    """New text of a reply. part: of the reply, where calls of tools come as they were written.

    pieces: the tokens since the piece before, which have log probabilities and logits if asked for. finish: why it is
    the last one, else empty. reply: the whole reply, with the last piece.
    """

    part: Part
    pieces: tuple[Piece, ...]
    reply: Reply | None

    __slots__ = ("part", "pieces", "reply")

    def __new__(cls, text: str, part: Part, pieces: Sequence[Piece] = (), reply: Reply | None = None) -> Self:
        """Return a piece with these fields."""
        piece = super().__new__(cls, text)
        piece.part, piece.pieces, piece.reply = part, tuple(pieces), reply
        return piece

    @property
    def finish(self) -> Finish:
        """Why it is the last piece, else empty."""
        return "" if self.reply is None else self.reply.finish


@dataclass(frozen=True)
class ChatPrompt:
    """A conversation as its model reads it. form, within: of the reply. calls: how many calls it has already."""

    text: str
    form: ReplyFormat
    within: Part
    calls: int


def chat_prompt(
    lexicon: Lexicon, messages: Sequence[Message] | str, tools: Sequence[Any] | None, variables: Mapping[str, Any]
) -> ChatPrompt:
    """Return the prompt for a conversation. tools, variables: see ``Session.stream_chat``.

    Raises ModelError without a template, or if it fails, ArgumentError for messages of another form.
    """
    template = lexicon.template
    given = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
    if not isinstance(listed := _plain("messages", given), list):
        raise ArgumentError(f"messages: expected a list, or a text, got {brief(repr(messages))}")
    plain = [_checked(index, each) for index, each in enumerate(listed)]
    if not plain:
        raise ModelError("messages: expected at least one, got none")
    described = None if not tools else _plain("tools", tools)
    if described and "tools" not in template.source:
        raise ModelError("tools: the chat template of this model takes none")
    if "developer" not in template.source:  # OpenAI's newer name of the role, which templates would pass over
        plain = [each | {"role": "system"} if each["role"] == "developer" else each for each in plain]
    if lexicon.takes_parts:
        plain = [each | {"content": _as_parts(each.get("content"))} for each in plain]
    chosen = _plain("variables", variables)
    if not isinstance(chosen, dict) or "messages" in chosen:
        raise ArgumentError(f"variables: expected a mapping without 'messages', got {brief(repr(variables))}")
    named = {"tools": described, "documents": None, "add_generation_prompt": True} | chosen
    text = template.render(plain, **named)
    form = ReplyFormat.of(template.source, lexicon.thinking, tools=bool(described))
    within: Part = "content"
    for marks in form.marks:
        if marks.part == "thinking" and text.rstrip().endswith(marks.start):
            within = "thinking"
    return ChatPrompt(text, form, within, sum(len(each.get("tool_calls") or ()) for each in plain))


def reply_pieces(stream: Iterator[Piece], prompt: ChatPrompt) -> Iterator[ChatPiece]:
    """Yield the pieces of a reply from those of its text; the last one has the reply."""
    splitter, waiting, all_pieces = Splitter(prompt.form, prompt.within), list[Piece](), list[Piece]()
    parts: dict[Part, str] = {"content": "", "thinking": "", "tool calls": ""}
    for piece in stream:
        waiting.append(piece)
        all_pieces.append(piece)
        for part, text in splitter.push(piece, bool(piece.finish)):
            parts[part] += text
            yield ChatPiece(text, part, waiting)
            waiting = []
    numbered = enumerate(splitter.calls, prompt.calls)
    # Mistral's template takes an id of nine letters and digits alone.
    calls = tuple(ToolCall(f"call{number:05}", name, arguments) for number, (name, arguments) in numbered)
    reply = Reply(parts["content"], parts["thinking"], calls, Generation.of(all_pieces, Timing()))
    yield ChatPiece("", "content", waiting, reply)


def _plain(name: str, value: Any) -> Any:
    """Return a copy that has only what JSON has. Raises ArgumentError for anything else."""
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(f"{name}: expected what JSON can hold, got {brief(repr(value))} ({error})") from error


def _checked(index: int, message: Any) -> dict[str, Any]:
    """Return a message whose content is a text, if it has one, and whose calls have objects for arguments.

    Like the transformers library, leave out what is None, as clients of OpenAI send their messages, which templates
    would write as "None" or fail at; and give thoughts all names that templates read.
    """
    where = f"messages[{index}]"
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise ArgumentError(f"{where}: expected a mapping with the text 'role', got {brief(repr(message))}")
    known: dict[str, Any] = {key: value for key, value in message.items() if value is not None}
    if thoughts := [known[name] for name in _THOUGHTS if name in known]:
        known = {"thinking": thoughts[0], **known, "reasoning_content": thoughts[0]}
    content = known.get("content")
    if isinstance(content, list):
        known["content"] = content = "".join(_text_of(where, each) for each in content)
    if not isinstance(content, str | None):
        raise ArgumentError(f"{where}: expected a text for 'content', or a list of parts, got {brief(repr(content))}")
    if content is None and known["role"] in ("user", "system"):
        raise ArgumentError(f"{where}: expected a text for 'content', got a message without it")
    calls = known.get("tool_calls") or []
    if not isinstance(calls, list) or not all(isinstance(each, dict) for each in calls):
        raise ArgumentError(f"{where}: expected a list of mappings for 'tool_calls', got {brief(repr(calls))}")
    for call in calls:
        function = call.get("function", call)
        if isinstance(function, dict) and isinstance(function.get("arguments"), str):
            function["arguments"] = _arguments(where, function["arguments"])
    return known


def _text_of(where: str, part: Any) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind not in _TEXT:
        raise ModelError(f"{where}: expected parts of the type 'text', which this model reads, got {brief(repr(part))}")
    if not isinstance(part.get("text"), str):
        raise ArgumentError(f"{where}: expected a text in a part, got {brief(repr(part))}")
    return str(part["text"])


def _arguments(where: str, text: str) -> Any:
    """Return the arguments that the protocol of OpenAI writes as JSON in a text; templates take them as an object."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"{where}: expected JSON for the arguments of a call, got {brief(text)!r}") from error


def _as_parts(content: str | None) -> list[dict[str, str]]:
    return [] if content is None else [{"type": "text", "text": content}]
