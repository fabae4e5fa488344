"""The parts of replies: thinking, content and calls of tools, in the formats of public families of models."""

import random
from collections.abc import Mapping
from typing import Any

import pytest

from litecl.generate.replies import Named, ReplyFormat, Splitter, split
from support.chat_templates import TEMPLATES

HERMES = ReplyFormat.of(TEMPLATES["qwen"], tools=True)


def joined(parts: list[tuple[str, str]]) -> Mapping[str, str]:
    texts: dict[str, str] = {}
    for part, text in parts:
        texts[part] = texts.get(part, "") + text
    return texts


@pytest.mark.parametrize(
    ("marks", "text", "calls"),
    [
        ("<tool_call>", '<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>', [("f", {"x": 1})]),
        (
            "<tool_call>",
            '<tool_call>{"name": "f"}</tool_call>\n<tool_call>{"name": "g"}</tool_call>',
            [("f", {}), ("g", {})],
        ),
        (
            "<tool_call>",
            "<tool_call>\n<function=f>\n<parameter=x>\n[1]\n</parameter>\n<parameter=y>\na b\n</parameter>\n"
            "</function>\n</tool_call>",
            [("f", {"x": [1], "y": "a b"})],
        ),
        ("[TOOL_CALLS]", '[TOOL_CALLS] [{"name": "f", "arguments": {"x": {"y": 2}}}]', [("f", {"x": {"y": 2}})]),
        ("[TOOL_CALLS]", '[TOOL_CALLS]f[ARGS]{"x": 1}[TOOL_CALLS]g[ARGS]{}', [("f", {"x": 1}), ("g", {})]),
        ('"parameters"', '{"name": "f", "parameters": {"x": null}}', [("f", {"x": None})]),
        ('<|python_tag|> "parameters"', '<|python_tag|>{"name": "f", "parameters": {}}', [("f", {})]),
        (
            "<start_function_call>",
            "<start_function_call>call:f{a:<escape>x, {y}:<escape>,b:3,c:[<escape>p<escape>,true],d:{e:-1.5}}"
            "<end_function_call>",
            [("f", {"a": "x, {y}:", "b": 3, "c": ["p", True], "d": {"e": -1.5}})],
        ),
        ("<|tool_call>", '<|tool_call>call:f{a:<|"|>3<|"|>}<tool_call|>', [("f", {"a": "3"})]),
        (
            "<|tool_call_start|>",
            '<|tool_call_start|>[f(x=1), g(y="a")]<|tool_call_end|>',
            [("f", {"x": 1}), ("g", {"y": "a"})],
        ),
        ("```tool_code", "```tool_code\nprint(a.f(x=[1, 2]))\n```", [("a.f", {"x": [1, 2]})]),
    ],
)
def test_calls(marks: str, text: str, calls: list[Named]) -> None:
    """They are no content; without tools they are."""
    parts, found = split(text, ReplyFormat.of(marks, tools=True))
    assert (found, {part for part, _ in parts}) == (calls, {"tool calls"})
    assert split(text, ReplyFormat.of(marks, tools=False)) == ([("content", text)], [])


@pytest.mark.parametrize(
    ("marks", "text"),
    [
        ("<tool_call>", '<tool_call>{"name": "f"</tool_call>'),
        ("<tool_call>", '<tool_call>{"name": 1}</tool_call>'),
        ("<tool_call>", '<tool_call>{"name": "f"'),
        ("<tool_call>", '<tool_call>{"name": "f", "arguments": "x"}</tool_call>'),
        ("<tool_call>", "<tool_call>" + "[" * 100_000 + "</tool_call>"),
        ("[TOOL_CALLS]", "[TOOL_CALLS]f[ARGS]{"),
        ('"parameters"', '{"name": "f", "parameters": {}'),
        ('"parameters"', '{"answer": 3}'),
        ("<start_function_call>", "<start_function_call>call f<end_function_call>"),
        ("```tool_code", "```tool_code\nimport os\n```"),
        ("```tool_code", "```tool_code\nf(x=open('y'))\n```"),
        ("```tool_code", "```tool_code\nf(1)\n```"),
    ],
)
def test_a_call_that_cannot_be_read_stays_content(marks: str, text: str) -> None:
    assert split(text, ReplyFormat.of(marks, tools=True)) == ([("content", text)], [])


_REPLY = (
    "<think>\nhm\n\n<yes>\n</think>\n\nSure.\n\n<ok>\n<tool_call>\n"
    '{"name": "f", "arguments": {"x": "</think>"}}\n</tool_call>\n<tool_call>\n{"name": "g"}\n</tool_call>\nbye\n'
)


@pytest.mark.parametrize("seed", range(50))
def test_in_any_pieces(seed: int) -> None:
    rng, splitter, parts, at = random.Random(seed), Splitter(HERMES), list[Any](), 0
    while at < len(_REPLY):
        size = rng.randint(1, 7)
        parts += splitter.push(_REPLY[at : at + size], at + size >= len(_REPLY))
        at += size
    calls = [("f", {"x": "</think>"}), ("g", {})]
    assert splitter.calls == calls
    texts = joined(parts)
    assert (texts["thinking"], texts["content"]) == ("hm\n\n<yes>", "Sure.\n\n<ok>bye\n")


def test_content_comes_at_once() -> None:
    """But for what may begin a mark; a reply without marks is not held back at all."""
    splitter = Splitter(HERMES)
    assert [*splitter.push("a <", False)] == [("content", "a ")]
    assert [*splitter.push("b <thi", False)] == [("content", "<b ")]
    assert [*splitter.push("nk>c", False)] == [("thinking", "c")]
    assert [*Splitter(ReplyFormat()).push("a <think>\n", False)] == [("content", "a <think>\n")]


def test_thinking_that_the_prompt_opened() -> None:
    assert split("hm</think>\n\nyes", HERMES, "thinking")[0] == [("thinking", "hm"), ("content", "yes")]
    assert split("hm", HERMES, "thinking")[0] == [("thinking", "hm")]


def test_thinking_that_the_file_declares() -> None:
    form = ReplyFormat.of("", [("<t>", "</t>")], tools=False)
    assert split("<t>a</t>b", form)[0] == [("thinking", "a"), ("content", "b")]
