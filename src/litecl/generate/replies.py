"""The parts of a chat model's reply: thinking, content, and calls of tools, by the marks that its template writes."""

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from litecl.generate.overlap import overlap
from litecl.interpreter.dataclass import dataclass

Part = Literal["content", "thinking", "tool calls"]


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool that a reply asks for. id: unique in the reply's conversation."""

    id: str
    name: str
    arguments: Mapping[str, Any]


Named = tuple[str, Mapping[str, Any]]  # a tool and its arguments


@dataclass(frozen=True)
class Marks:
    """Where a part of a reply starts and ends. An empty end: the reply's. read: of the text between, for calls."""

    start: str
    end: str
    part: Part
    read: Callable[[str], list[Named]] | None = None


@dataclass(frozen=True)
class ReplyFormat:
    """How a model writes its replies. bare: whether a reply that is a JSON object is a call.

    call: how it writes a call, in the notation of Lark, where ``call`` is a JSON object; empty if none is written so.
    """

    marks: tuple[Marks, ...] = ()
    bare: bool = False
    call: str = ""

    @classmethod
    def of(cls, template: str, thinking: Sequence[tuple[str, str]] = (), *, tools: bool) -> "ReplyFormat":
        """Return a model's format, by its template. thinking: marks that its file declares. tools: are there any."""
        declared = [Marks(start, end, "thinking") for start, end in thinking if start and end]
        known = [each for each in _THINKING if each.end in template] if not declared else declared[:1]
        calls = [each for each in _CALLS if each.start in template][:1] if tools else []
        bare = tools and _BARE in template
        in_json = bare or not any(each in template for each in _NOT_JSON)
        call = "call" if bare else "".join(_WRITTEN.get(each.start, "") for each in calls)
        return cls((*known[:1], *calls), bare, call if in_json else "")


def split(text: str, form: ReplyFormat, within: Part = "content") -> tuple[list[tuple[Part, str]], list[Named]]:
    """Return the parts of a whole reply, and its calls; see ``Splitter``."""
    splitter = Splitter(form, within)
    return [*splitter.push(text, True)], splitter.calls


class Splitter:
    """Splits a reply into parts while it is generated, without the marks and the line breaks beside them.

    within: the part that it begins in; a template may have opened the thinking already. calls: those read so far. A
    call that can't be read stays content.
    """

    def __init__(self, form: ReplyFormat, within: Part = "content") -> None:
        self._form = form
        self._in = next((each for each in form.marks if each.part == within), None)
        self._held = ""
        self._bare = form.bare and self._in is None  # whether all so far may be a JSON object
        self._follows_mark = self._in is not None  # whether the part has no text yet, and a mark came before it
        self.calls: list[Named] = []

    def push(self, text: str, last: bool) -> Iterator[tuple[Part, str]]:
        """Add text; yield what is certain now, by parts. last: the reply ends here."""
        self._held += text
        self._bare = self._bare and self._held.lstrip()[:1] in ("{", "")
        while (place := self._next()) is not None:
            at, marks = place
            before, self._held = (
                self._held[:at],
                self._held[at + len(marks.end if marks is self._in else marks.start) :],
            )
            yield from self._whole(before, "" if self._in is None else self._in.end)
            self._in = None if marks is self._in else marks
            self._follows_mark, self._bare = True, False
        if last:
            yield from self._whole(self._held, None)
            self._held = ""
        elif not self._bare and (self._in is None or self._in.read is None):
            yield from self._started(self._held[: len(self._held) - self._kept()])

    def _next(self) -> tuple[int, Marks] | None:
        """Return where the next mark is in the held text, and whose: the end of this part, or the start of one."""
        sought = [(each, each.start) for each in self._form.marks] if self._in is None else [(self._in, self._in.end)]
        places = [(at, marks) for marks, text in sought if text and (at := self._held.find(text)) >= 0]
        return min(places, key=lambda place: place[0], default=None)

    def _kept(self) -> int:
        """Return how many of the held characters may belong to a mark."""
        marks = [each.start for each in self._form.marks] if self._in is None else [self._in.end]
        breaks = len(self._held) - len(self._held.rstrip("\n")) if self._form.marks else 0
        begun = max((overlap(self._held, mark) for mark in marks), default=0)
        if begun:
            text = self._held[: len(self._held) - begun]
            breaks = begun + len(text) - len(text.rstrip("\n"))
        return breaks

    def _started(self, text: str) -> Iterator[tuple[Part, str]]:
        """Yield a part's text, which more may follow."""
        self._held = self._held[len(text) :]
        text = text.lstrip("\n") if self._follows_mark else text
        if text:
            self._follows_mark = False
            yield ("content" if self._in is None else self._in.part), text

    def _whole(self, text: str, mark: str | None) -> Iterator[tuple[Part, str]]:
        """Yield a part's text up to its end. mark: the one that ends it; None at the end of the reply."""
        read = _json_calls if self._bare else None if self._in is None else self._in.read
        calls = [] if read is None else read(text)
        self.calls += calls
        if calls:
            yield "tool calls", text
        elif self._in is not None and read is not None:
            yield "content", f"{self._in.start}{text}{mark or ''}"
        else:
            text = text if mark is None and self._in is None else text.rstrip("\n")
            text = text.lstrip("\n") if self._follows_mark else text
            if text:
                yield ("content" if self._in is None else self._in.part), text


def _json_calls(text: str) -> list[Named]:
    """Read JSON objects with a name and arguments: one, a list, or several one after another."""
    decoder, calls, at = json.JSONDecoder(), list[Named](), 0
    text = text.strip()
    while at < len(text):
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return []
        for each in value if isinstance(value, list) else [value]:
            call = _named(each)
            if call is None:
                return []
            calls.append(call)
        at += len(text[at:]) - len(text[at:].lstrip(" \n\t;,"))
    return calls


def _named(value: Any) -> Named | None:
    if isinstance(value, dict) and isinstance(value.get("function"), dict):
        value = value["function"]
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    arguments = value.get("arguments", value.get("parameters", {}))
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return None
    return (value["name"], arguments) if isinstance(arguments, dict) else None


def _hermes_calls(text: str) -> list[Named]:
    """Read a JSON object; or Qwen3-Coder's ``<function=name><parameter=key>value</parameter></function>``."""
    functions = re.findall(r"<function=([^>\s]+)>(.*?)</function>", text, re.S)
    calls: list[Named] = [
        (
            name,
            {
                key: _value(value)
                for key, value in re.findall(r"<parameter=([^>\s]+)>\n?(.*?)\n?</parameter>", body, re.S)
            },
        )
        for name, body in functions
    ]
    return calls or _json_calls(text)


def _mistral_calls(text: str) -> list[Named]:
    """Read a JSON list; or the later ``name[ARGS]{...}`` for each call, after ``[TOOL_CALLS]``."""
    if "[ARGS]" not in text:
        return _json_calls(text)
    calls: list[Named] = []
    for each in text.split("[TOOL_CALLS]"):
        name, _, arguments = each.partition("[ARGS]")
        read = _json_calls(json.dumps({"name": name.partition("[CALL_ID]")[0].strip(), "arguments": arguments}))
        if not read:
            return []
        calls += read
    return calls


def _gemma_calls(text: str) -> list[Named]:
    """Read ``call:name{key:value,...}``, where texts are between <escape> or <|"|>, and other values are JSON's."""
    match = re.fullmatch(r"\s*call:([\w.-]+)(\{.*\})\s*", text, re.S)
    if match is None:
        return []
    texts = list[str]()

    def kept(quoted: re.Match[str]) -> str:
        texts.append(quoted[2])
        return f'"{len(texts) - 1}"'

    body = re.sub(r'(<escape>|<\|"\|>|")(.*?)\1', kept, match[2], flags=re.S)
    body = re.sub(r"([{,]\s*)([\w.-]+)\s*:", r'\1"\2":', body)
    try:
        arguments = json.loads(body)
    except (ValueError, RecursionError):
        return []
    return [(match[1], _with_texts(arguments, texts))]


def _with_texts(value: Any, texts: Sequence[str]) -> Any:
    """Put texts back: every text of the value is the index of one."""
    if isinstance(value, dict):
        return {key: _with_texts(each, texts) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_texts(each, texts) for each in value]
    return texts[int(value)] if isinstance(value, str) else value


def _python_calls(text: str) -> list[Named]:
    """Read calls as Python writes them, with constants for arguments: ``[f(x=1), g(y="a")]``."""
    try:
        body = ast.parse(text.strip()).body
        values = [value for each in body if isinstance(each, ast.Expr) for value in _listed(each.value)]
        calls: list[Named] = [
            (ast.unparse(each.func), {str(k.arg): ast.literal_eval(k.value) for k in each.keywords})
            for each in values
            if isinstance(each, ast.Call) and not each.args and all(k.arg for k in each.keywords)
        ]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return calls if len(calls) == len(values) and all(isinstance(each, ast.Expr) for each in body) else []


def _listed(value: ast.expr) -> Sequence[ast.expr]:
    """Return the calls in an expression: a list's, or those that Gemma prints."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "print" and len(value.args) == 1:
        value = value.args[0]
    return value.elts if isinstance(value, ast.List | ast.Tuple) else [value]


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


_BARE = '"parameters"'  # in the template of Llama 3, which writes a call as a JSON object without marks
_THINKING = (
    Marks("<think>", "</think>", "thinking"),  # Qwen 3, DeepSeek R1, SmolLM 3
    Marks("[THINK]", "[/THINK]", "thinking"),  # Magistral
    Marks("<|channel>thought", "<channel|>", "thinking"),  # Gemma 4
    Marks("<|START_THINKING|>", "<|END_THINKING|>", "thinking"),  # Command A
)
_CALLS = (
    Marks("<tool_call>", "</tool_call>", "tool calls", _hermes_calls),  # Qwen, Hermes, SmolLM 3
    Marks("[TOOL_CALLS]", "", "tool calls", _mistral_calls),  # Mistral
    Marks("<start_function_call>", "<end_function_call>", "tool calls", _gemma_calls),  # FunctionGemma
    Marks("<|tool_call>", "<tool_call|>", "tool calls", _gemma_calls),  # Gemma 4
    Marks("<|tool_call_start|>", "<|tool_call_end|>", "tool calls", _python_calls),  # LFM 2
    Marks("```tool_code", "```", "tool calls", _python_calls),  # Gemma 3
    Marks("<|python_tag|>", "", "tool calls", _json_calls),  # Llama 3
)
_NOT_JSON = ("<function=", "[ARGS]")  # in templates of Qwen3-Coder and later ones of Mistral, which share marks
_WRITTEN = {
    "<tool_call>": r'"<tool_call>" "\n" call "\n" "</tool_call>"',
    "[TOOL_CALLS]": r'"[TOOL_CALLS]" " "? "[" call "]"',
}
"""See ``ReplyFormat.call``."""
MARKS = tuple({text for each in (*_THINKING, *_CALLS) for text in (each.start, each.end) if text} | {"[ARGS]"})
"""Texts that a tokenizer may have as special tokens, which a reply must keep."""
