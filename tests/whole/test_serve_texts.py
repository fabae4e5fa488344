"""`litecl serve` of a language model: OpenAI's protocol, by its client and by hand; limits, deadlines, errors."""

import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl import Generator
from litecl.cli import main
from litecl.cli.command import Output
from litecl.cli.commands import serve
from litecl.cli.commands.serve import _listening
from litecl.generate.model import LanguageModel
from litecl.interpreter.errors import DelegateError, ModelError
from litecl.serve.completions import Refused, asked_of
from litecl.serve.json_replies import JsonReplies
from support import tokenizers
from support.chat_models import chat_model
from support.command import failure, small_model
from support.served import Client, serving_here, started

connections = pytest.importorskip("litecl.serve.connections", reason="litecl[serve] is not installed")
text_app = pytest.importorskip("litecl.serve.text_app", reason="litecl[serve] is not installed")
pytest.importorskip("tokenizers", reason="litecl[llm] is not installed")
sentencepiece = pytest.importorskip("sentencepiece", reason="litecl[llm] is not installed")

TEMPLATE = (
    "{% for m in messages %}{{ m.role[0] }}:{{ m.content }}<eos>{% endfor %}{% if add_generation_prompt %}a:{% endif %}"
    "{# <think></think> <tool_call> tools #}"
)
CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
USER = {"role": "user", "content": "cat"}
ASKED = {"model": "lm", "messages": [USER], "temperature": 0, "max_tokens": 6}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return chat_model(tmp_path_factory.mktemp("served"), TEMPLATE, slots=160)


@pytest.fixture(scope="module")
def generator(path: Path) -> Generator:
    return Generator(path, cpu=True)


@pytest.fixture(scope="module")
def serving(generator: Generator) -> Iterator[Callable[..., Client]]:
    """Starts servers of the bundle, each with its own options."""
    with serving_here() as serve:
        yield lambda **options: serve(text_app.text_app(generator, text_app.TextServing("lm", **options))[0])


@pytest.fixture(scope="module")
def client(serving: Callable[..., Client]) -> Client:
    return serving()


def answered(client: Client, path: str = CHAT, **fields: Any) -> dict[str, Any]:
    status, answer = client.post({**ASKED, **fields}, path)
    assert status == 200, answer
    return dict(answer)


def events(client: Client, **fields: Any) -> list[Any]:
    """Return a stream's events, without its end."""
    import urllib.request

    path = TEXT if "prompt" in fields else CHAT
    body = {**(ASKED if path == CHAT else {"model": "lm", "temperature": 0, "max_tokens": 6}), "stream": True, **fields}
    request = urllib.request.Request(client.address + path, json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        sent = answer.read().decode()
    *lines, last, rest = sent.split("\n\n")
    assert (last, rest) == ("data: [DONE]", "")
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def text(client: Client, **fields: Any) -> dict[str, Any]:
    status, answer = client.post({"model": "lm", "temperature": 0, "max_tokens": 6, **fields}, TEXT)
    assert status == 200, answer
    return dict(answer)


def test_a_conversation(client: Client, generator: Generator) -> None:
    answer, expected = answered(client), generator.chat([USER], max_tokens=6, temperature=0)
    (choice,) = answer["choices"]
    message = {"role": "assistant", "content": expected.content, "refusal": None}
    assert choice == {"index": 0, "message": message, "logprobs": None, "finish_reason": "length"}
    assert generator.tokenizer is not None
    prompt = len(generator.tokenizer.encode("u:cat<eos>a:", False))
    usage = answer["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (prompt, len(expected.generation.tokens))
    assert usage["total_tokens"] == prompt + 6
    assert (answer["object"], answer["model"]) == ("chat.completion", "lm")
    assert answered(client, max_tokens=None, max_completion_tokens=3)["usage"]["completion_tokens"] == 3


def test_a_conversation_goes_on_in_its_caches(serving: Callable[..., Client], generator: Generator) -> None:
    client = serving(sessions=2)
    first = answered(client)
    reply = {"role": "assistant", "content": "the mat"}
    messages = [USER, reply, {"role": "user", "content": "dog"}]
    second = answered(client, messages=messages)
    assert second["usage"]["prompt_tokens_details"]["cached_tokens"] >= first["usage"]["prompt_tokens"] - 1
    assert second["choices"][0]["message"]["content"] == generator.chat(messages, max_tokens=6, temperature=0).content


def test_texts(client: Client, generator: Generator) -> None:
    """One, several, and tokens."""
    expected = [generator.generate(prompt, max_tokens=6, temperature=0).text for prompt in ("the cat", "dog")]
    assert [each["text"] for each in text(client, prompt="the cat")["choices"]] == expected[:1]
    answer = text(client, prompt=["the cat", "dog"], n=2)
    assert [(each["index"], each["text"]) for each in answer["choices"]] == [
        (0, expected[0]),
        (1, expected[0]),
        (2, expected[1]),
        (3, expected[1]),
    ]
    tokens = generator.encode("the cat")
    assert answer["usage"]["prompt_tokens"] == len(tokens) + len(generator.encode("dog"))
    assert answer["usage"]["completion_tokens"] == 24
    assert text(client, prompt=[tokens])["choices"][0]["text"] == expected[0]
    assert answer["object"] == "text_completion"
    assert text(client, prompt="the cat", max_tokens=None)["usage"]["completion_tokens"] == 16


def test_streams(client: Client) -> None:
    """Their pieces add up to the whole answer, and the figures at the end are those requested."""
    sent = events(client)
    assert sent[0]["choices"] == [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]
    content = "".join(each["choices"][0]["delta"].get("content", "") for each in sent)
    assert content == answered(client)["choices"][0]["message"]["content"]
    assert [each["choices"][0]["finish_reason"] for each in sent] == [*[None] * (len(sent) - 1), "length"]
    assert len({each["id"] for each in sent}) == 1 and not any("usage" in each for each in sent)
    *_, last = events(client, stream_options={"include_usage": True})
    assert (last["choices"], last["usage"]["completion_tokens"]) == ([], 6)
    sent = events(client, prompt="the cat", n=2)
    for index in range(2):
        own = [each["choices"][0] for each in sent if each["choices"][0]["index"] == index]
        assert "".join(each["text"] for each in own) == text(client, prompt="the cat")["choices"][0]["text"]
        assert own[-1]["finish_reason"] == "length"


def test_seeds_and_choices(client: Client) -> None:
    """A seed gives the same answers, which differ among each other."""
    asked: dict[str, Any] = {"temperature": 9, "n": 3, "seed": -5}
    first, again, other = (
        [each["message"]["content"] for each in answered(client, **asked | fields)["choices"]]
        for fields in ({}, {}, {"seed": 6})
    )
    assert first == again and len({*first}) == 3 and first != other
    cold = answered(client, **asked, top_p=0.0)["choices"]
    assert {each["message"]["content"] for each in cold} == {answered(client)["choices"][0]["message"]["content"]}


def test_a_seed_that_the_file_sets_is_none_of_a_request() -> None:
    """Else all choices of sessions that have answered nothing yet would be the same text."""
    asked = asked_of(b'{"model": "m", "prompt": "a", "n": 2}', "m", {"seed": 7, "top_k": 5}, chat=False)
    assert len({7, *(asked.options_of(choice)["seed"] for choice in (0, 0, 1))}) == 4


def test_without_a_temperature_it_is_one(client: Client, generator: Generator) -> None:
    """As the protocol says, unless the file says otherwise."""
    asked = {"model": "lm", "prompt": "the cat", "seed": 4, "max_tokens": 8}
    _, answer = client.post(asked, TEXT)
    expected = generator.generate("the cat", max_tokens=8, temperature=1.0, seed=4).text
    assert answer["choices"][0]["text"] == expected
    assert text_app.asked_of(json.dumps(asked), "lm", {"temperature": 0.5}, chat=False).options["temperature"] == 0.5


@pytest.mark.parametrize("as_list", [False, True])
def test_stop_texts(client: Client, as_list: bool) -> None:
    whole = answered(client)["choices"][0]["message"]["content"]
    stop = whole[3:5]
    (choice,) = answered(client, stop=[stop, "zzz"] if as_list else stop)["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == (whole[: whole.index(stop)], "stop")
    sent = events(client, stop=stop)
    assert "".join(each["choices"][0]["delta"].get("content", "") for each in sent) == whole[: whole.index(stop)]
    assert sent[-1]["choices"][0]["finish_reason"] == "stop"


def test_log_probs(client: Client, generator: Generator) -> None:
    """Of chats and of texts, whole and in a stream."""
    expected = generator.chat([USER], max_tokens=6, temperature=0, log_probs=True).generation
    told = answered(client, logprobs=True, top_logprobs=3)["choices"][0]["logprobs"]["content"]
    assert [each["logprob"] for each in told] == pytest.approx(expected.log_probs)
    for each in told:
        first = each["top_logprobs"][0]
        assert (first["token"], first["logprob"], first["bytes"]) == (each["token"], each["logprob"], each["bytes"])
        ordered = [other["logprob"] for other in each["top_logprobs"]]
        assert len(ordered) == 3 and ordered == sorted(ordered, reverse=True)
    streamed = [each["choices"][0].get("logprobs") for each in events(client, logprobs=True, top_logprobs=3)]
    assert [one for each in streamed if each for one in each["content"]] == told
    assert answered(client, logprobs=True)["choices"][0]["logprobs"]["content"][0]["top_logprobs"] == []
    told = text(client, prompt="the cat", logprobs=2)["choices"][0]["logprobs"]
    wanted = generator.generate("the cat", max_tokens=6, temperature=0, log_probs=True)
    assert told["token_logprobs"] == pytest.approx(wanted.log_probs)
    assert [max(each.values()) for each in told["top_logprobs"]] == pytest.approx(wanted.log_probs)
    assert told["text_offset"][:2] == [0, len(told["tokens"][0])]


def test_the_tokens_of_log_probs_are_the_text(path: Path, tmp_path: Path) -> None:
    """With their blanks, which a tokenizer of SentencePiece drops at the start of a text."""
    tokenizer = tmp_path / "tokenizer.model"
    tokenizer.write_bytes(tokenizers.sentencepiece())
    app, _ = text_app.text_app(Generator(path, cpu=True, tokenizer=tokenizer), text_app.TextServing("lm"))
    with serving_here() as serve:
        (word,) = sentencepiece.SentencePieceProcessor(str(tokenizer)).encode("the")
        choice = text(serve(app), prompt="cat", logprobs=1, logit_bias={str(word): 9}, frequency_penalty=2)["choices"][
            0
        ]
    assert " the" in choice["logprobs"]["tokens"][1:] and choice["logprobs"]["text_offset"][-1] < len(choice["text"])
    assert choice["text"].lstrip() == "".join(choice["logprobs"]["tokens"]).lstrip()


def test_penalties_and_bias(client: Client, generator: Generator) -> None:
    options: dict[str, Any] = {"presence_penalty": 1.5, "frequency_penalty": 0.25}
    plain = generator.chat([USER], max_tokens=20, temperature=0).content
    expected = generator.chat([USER], max_tokens=20, temperature=0, logit_bias={40: 9, 41: 9}, **options).content
    got = answered(client, max_tokens=20, logit_bias={"40": 9, "41": 9.0}, **options)["choices"][0]["message"][
        "content"
    ]
    assert got == expected != plain
    banned = answered(client, logit_bias={"40": 100, "41": -100})["choices"][0]["message"]["content"]
    assert generator.tokenizer is not None and banned == generator.tokenizer.decode([40] * 6)


def test_no_tokens(client: Client, generator: Generator) -> None:
    """A text may have none, as the protocol says, a reply must have one."""
    answer = text(client, prompt=["the cat", "dog"], max_tokens=0, n=2)
    assert [(each["text"], each["finish_reason"]) for each in answer["choices"]] == [("", "length")] * 4
    prompts = sum(len(generator.encode(each)) for each in ("the cat", "dog"))
    assert (answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"]) == (prompts, 0)
    (sent,) = events(client, prompt="the cat", max_tokens=0)
    assert sent["choices"][0]["finish_reason"] == "length"
    assert answered(client, max_tokens=1)["usage"]["completion_tokens"] == 1


SCHEMA = {
    "type": "object",
    "properties": {"é": {"type": "boolean"}, "n": {"enum": [1, 22]}},
    "required": ["é", "n"],
    "additionalProperties": False,
}
IN_JSON = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": SCHEMA}}


def _patterns(count: int) -> dict[str, Any]:
    return {f"p{n}": {"type": "string", "pattern": f"^{n}*$"} for n in range(count)}


@pytest.mark.parametrize("kind", ["tokenizer.json", "tokenizer.model"])
def test_replies_in_json(path: Path, tmp_path: Path, kind: str) -> None:
    """From a model that wasn't trained for it, with any seed; as one answer, and as a stream."""
    pytest.importorskip("llguidance", reason="litecl[json] is not installed")
    (tmp_path / kind).write_bytes(tokenizers.hugging_face() if "json" in kind else tokenizers.sentencepiece())
    ends = 1 if "json" in kind else 2
    tokenizers.write_config(tmp_path)
    made = Generator(path, cpu=True, tokenizer=tmp_path / kind)
    assert [*made.stop_tokens] == [ends]
    with serving_here() as serve:
        client = serve(text_app.text_app(made, text_app.TextServing("lm"))[0])
        asked: dict[str, Any] = {"response_format": IN_JSON, "max_tokens": 60, "temperature": 3, "n": 4, "seed": 2}
        choices = answered(client, **asked)["choices"]
        contents = [each["message"]["content"] for each in choices]
        assert {each["finish_reason"] for each in choices} == {"stop"} and len({*contents}) > 1
        for content in contents:
            assert content == json.dumps(read := json.loads(content), ensure_ascii=False)
            assert read.keys() == SCHEMA["properties"].keys() and type(read["é"]) is bool and read["n"] in (1, 22)  # type: ignore[attr-defined]
        sent = [each["choices"][0] for each in events(client, **asked)]
        for index, content in enumerate(contents):
            assert content == "".join(each["delta"].get("content", "") for each in sent if each["index"] == index)
        any_object = {"response_format": {"type": "json_object"}, "max_tokens": 9, "temperature": 0}
        assert answered(client, **any_object)["choices"][0]["message"]["content"].startswith("{")
        for schema in (
            {"anyOf": [{"type": "string", "pattern": f"^{n}$"} for n in range(9)]},  # one of them at a time
            {"type": "number", "multipleOf": 0.01},
            {"allOf": [{"$ref": "#/$defs/x"}], "default": {}, "$defs": {"x": {"properties": _patterns(9)}}},
        ):
            chosen = {"type": "json_schema", "json_schema": {"schema": schema}}
            assert answered(client, response_format=chosen)["choices"]
        for schema, said in (
            ({"type": "frog"}, "Invalid type: frog"),
            ({"$ref": "http://127.0.0.1/x"}, "does not fetch resources"),
            ({"enum": ["\ud800"]}, "not JSON serializable"),
            ({"allOf": [{"pattern": f"^{n}*$"} for n in range(9)]}, "at most 8 patterns and formats"),
            (
                {"$ref": "#/x", "properties": _patterns(1), "x": {"properties": _patterns(8)}},
                "at most 8 patterns and formats",
            ),
            ({"multipleOf": 50001}, "multipleOf: expected digits of at most 50000"),
            (
                {"$ref": "#/x", "multipleOf": 0.5, "x": {"multipleOf": 10001}},
                "multipleOf: expected digits of at most 50000",
            ),
        ):
            wrong = {"type": "json_schema", "json_schema": {"schema": schema}}
            status, answer = client.post(ASKED | {"response_format": wrong}, CHAT)
            assert (status, answer["error"]["param"]) == (400, "response_format") and said in answer["error"]["message"]


def test_json_follows_thinking(path: Path, generator: Generator, tmp_path: Path) -> None:
    """Which the template begins: anything may be thought."""
    pytest.importorskip("llguidance", reason="litecl[json] is not installed")
    (tmp_path / "thinking.jinja").write_text("{{ messages[0].content }}<think>{# </think> #}")
    thinking = Generator(path, cpu=True, template=tmp_path / "thinking.jinja")
    mask = JsonReplies(thinking).mask(SCHEMA, thinking.chat_prompt("cat"))
    assert thinking.tokenizer is not None
    thought = thinking.tokenizer.encode("hm</think>", False)
    for count in range(len(thought) + 1):
        allowed = np.ones(300, bool)
        mask(thought[:count], allowed)
        assert allowed.all() == (count < len(thought))
    assert thinking.tokenizer.decode(np.flatnonzero(allowed).tolist()[:1]) == "{"
    allowed = np.ones(300, bool)
    JsonReplies(generator).mask(SCHEMA, generator.chat_prompt("cat"))((), allowed)
    assert 1 <= allowed.sum() < 5


TOOLS: list[Any] = [
    {"type": "function", "function": {"name": "f", "description": "x", "parameters": SCHEMA}},
    {"type": "function", "function": {"name": "g-2"}},
]
NAMED = {"type": "function", "function": {"name": "f"}}


@pytest.mark.parametrize("marks", ["<tool_call>", "[TOOL_CALLS]", '"parameters"'])
@pytest.mark.parametrize("special", [False, True], ids=["texts", "tokens"])
def test_required_calls(path: Path, tmp_path: Path, marks: str, special: bool) -> None:
    """Of a model that knows nothing of tools, whatever the seed, as each family writes them; marks may be tokens."""
    pytest.importorskip("llguidance", reason="litecl[json] is not installed")
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(tokenizers.hugging_face().decode())
    if special:
        tokenizer.add_special_tokens(["<tool_call>", "</tool_call>", "[TOOL_CALLS]"])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    tokenizers.write_config(tmp_path)
    (tmp_path / "tools.jinja").write_text(f"{{{{ messages[0].content }}}}{{# {marks} tools #}}")
    made = Generator(path, cpu=True, tokenizer=tmp_path / "tokenizer.json", template=tmp_path / "tools.jinja")
    with serving_here() as serve:
        client = serve(text_app.text_app(made, text_app.TextServing("lm"))[0])
        asked: dict[str, Any] = {"tools": TOOLS, "max_tokens": 120, "temperature": 3, "n": 12, "seed": 2}
        for tool_choice, names in (("required", {"f", "g-2"}), (NAMED, {"f"})):
            choices = answered(client, tool_choice=tool_choice, **asked)["choices"]
            assert {(each["finish_reason"], each["message"]["content"]) for each in choices} == {("tool_calls", None)}
            calls = [call["function"] for each in choices for call in each["message"]["tool_calls"]]
            assert len(calls) == 12 and {each["name"] for each in calls} == names
            for each in calls:
                arguments = json.loads(each["arguments"])
                assert arguments.keys() == (SCHEMA["properties"].keys() if each["name"] == "f" else set())  # type: ignore[attr-defined]
        deltas = [each["choices"][0]["delta"] for each in events(client, tool_choice=NAMED, **asked | {"n": 1})]
        assert [each["tool_calls"][0]["function"] for each in deltas if "tool_calls" in each] == calls[:1]
        assert not any(each.get("content") for each in deltas)


@pytest.mark.parametrize("marks", ["<start_function_call>", "<tool_call> <function=", "[TOOL_CALLS] [ARGS]", ""])
def test_calls_that_are_not_written_in_json_cannot_be_required(
    path: Path, generator: Generator, tmp_path: Path, marks: str
) -> None:
    (tmp_path / "tools.jinja").write_text(f"{{{{ messages[0].content }}}}{{# {marks} tools #}}")
    other = Generator(path, cpu=True, template=tmp_path / "tools.jinja")
    with pytest.raises(Refused, match='tool_choice: expected "auto" or "none", as this model does not write its calls'):
        JsonReplies(other).mask_of_calls({"f": SCHEMA}, other.chat_prompt("cat", tools=TOOLS))
    with pytest.raises(Refused, match='of the type "object" for the arguments of f'):
        JsonReplies(generator).mask_of_calls({"f": {"type": "string"}}, generator.chat_prompt("cat", tools=TOOLS))


def test_json_without_its_package(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llguidance", None)
    status, answer = client.post(ASKED | {"response_format": {"type": "json_object"}}, CHAT)
    assert status == 400 and "pip install 'litecl[json]'" in answer["error"]["message"]
    assert answered(client, response_format={"type": "text"})["choices"]


@pytest.fixture
def scripted(generator: Generator, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Has the model write a text, and end."""

    def script(wanted: str) -> None:
        tokens = [*generator.tokenizer.encode(wanted, False), 1]  # type: ignore[union-attr]
        left = iter(tokens)
        monkeypatch.setattr("litecl.generate.session.choose", lambda *_: next(left))

    return script


def test_tools_and_thinking(client: Client, scripted: Callable[[str], None]) -> None:
    written = '<think>hm</think>Yes.<tool_call>{"name": "f", "arguments": {"x": "é"}}</tool_call>'
    tools = [{"type": "function", "function": {"name": "f"}}]
    scripted(written)
    (choice,) = answered(client, tools=tools, max_tokens=None)["choices"]
    message = choice["message"]
    assert (choice["finish_reason"], message["content"], message["reasoning_content"]) == ("tool_calls", "Yes.", "hm")
    (call,) = message["tool_calls"]
    assert (call["type"], call["function"]) == ("function", {"name": "f", "arguments": '{"x": "é"}'})
    scripted(written)
    deltas = [each["choices"][0]["delta"] for each in events(client, tools=tools, max_tokens=None)]
    assert "".join(each.get("reasoning_content", "") for each in deltas) == "hm"
    assert "".join(each.get("content") or "" for each in deltas) == "Yes."
    assert [each["tool_calls"] for each in deltas if "tool_calls" in each] == [[{"index": 0, **call}]]
    scripted(written)
    (choice,) = answered(client, tools=tools, tool_choice="none", max_tokens=None)["choices"]
    assert choice["finish_reason"] == "stop" and "<tool_call>" in choice["message"]["content"]


def test_openais_client(client: Client, generator: Generator, scripted: Callable[[str], None]) -> None:
    """Unchanged: models, chats, texts, streams, tools and errors."""
    openai = pytest.importorskip("openai")
    api = openai.OpenAI(base_url=f"{client.address}/v1", api_key="none", max_retries=0)
    assert [each.id for each in api.models.list()] == ["lm"] and api.models.retrieve("lm").owned_by == "litecl"
    asked: Any = {"model": "lm", "messages": [USER], "temperature": 0, "max_completion_tokens": 6}
    expected = generator.chat([USER], max_tokens=6, temperature=0, log_probs=True)
    answer = api.chat.completions.create(**asked, logprobs=True, top_logprobs=2)
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == (expected.content, "length")
    assert [each.logprob for each in answer.choices[0].logprobs.content] == pytest.approx(expected.generation.log_probs)
    assert answer.usage.completion_tokens == 6
    stream = api.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True})
    *chunks, last = stream
    assert "".join(each.choices[0].delta.content or "" for each in chunks) == expected.content
    assert last.usage.total_tokens == answer.usage.total_tokens
    texts = api.completions.create(model="lm", prompt=["the cat", "dog"], temperature=0, max_tokens=5, logprobs=1)
    assert [each.text for each in texts.choices] == [
        generator.generate(prompt, max_tokens=5, temperature=0).text for prompt in ("the cat", "dog")
    ]
    with pytest.raises(openai.NotFoundError, match="does not exist"):
        api.chat.completions.create(**asked | {"model": "other"})
    with pytest.raises(openai.BadRequestError, match="has no such option") as caught:
        api.chat.completions.create(**asked, reasoning_effort="high")
    assert (caught.value.param, caught.value.code) == ("reasoning_effort", "unsupported_parameter")
    for call in (
        lambda: api.embeddings.create(model="lm", input="x"),
        lambda: api.responses.create(model="lm", input="x"),
    ):
        with pytest.raises(openai.NotFoundError, match="this server has /v1/models, /v1/chat/completions"):
            call()
    scripted('<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>')
    tools: Any = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    with api.chat.completions.stream(model="lm", messages=[USER], tools=tools) as streamed:
        choice = streamed.get_final_completion().choices[0]
    assert choice.finish_reason == "tool_calls" and choice.message.tool_calls[0].function.arguments == '{"x": 1}'


def test_openais_client_requires_a_call(client: Client) -> None:
    """By Pydantic models, and as a text: the model has random weights."""
    openai = pytest.importorskip("openai")
    pytest.importorskip("llguidance", reason="litecl[json] is not installed")
    api = openai.OpenAI(base_url=f"{client.address}/v1", api_key="none", max_retries=0)
    for tool_choice in ("required", NAMED):
        asked: Any = {"model": "lm", "messages": [USER], "tools": TOOLS[:1], "tool_choice": tool_choice}
        (choice,) = api.chat.completions.create(**asked).choices
        (call,) = choice.message.tool_calls
        assert (choice.finish_reason, call.function.name) == ("tool_calls", "f")
        assert type(json.loads(call.function.arguments)["é"]) is bool
    with pytest.raises(openai.BadRequestError, match="of one of"):
        api.chat.completions.create(**asked | {"tool_choice": {"type": "function", "function": {"name": "h"}}})


@pytest.mark.parametrize(
    ("route", "fields", "status", "param", "said"),
    [
        (CHAT, {"model": "x"}, 404, "model", "does not exist; expected 'lm'"),
        (CHAT, {"messages": []}, 400, "messages", "expected a length of at least 1, got 0"),
        (CHAT, {"messages": "x"}, 400, "messages", "expected a list"),
        (CHAT, {"messages": [{"content": "x"}]}, 400, None, "messages[0]: expected a mapping with the text 'role'"),
        (CHAT, {"messages": [{**USER, "content": [{"type": "image_url"}]}]}, 400, None, "parts of the type 'text'"),
        (CHAT, {"messages": [{**USER, "content": "cat " * 199}]}, 400, None, "the conversation has"),
        (CHAT, {"temperature": -1}, 400, "temperature", "at least 0"),
        (CHAT, {"temperature": "1"}, 400, "temperature", "expected a finite number, got '1'"),
        (CHAT, {"max_tokens": 0}, 400, "max_tokens", "at least 1"),
        (CHAT, {"n": 129}, 400, "n", "1 to 128"),
        (CHAT, {"top_p": 2}, 400, "top_p", "0 to 1"),
        (CHAT, {"stop": [""]}, 400, "stop", "at least one character"),
        (CHAT, {"stop": ["x"] * 17}, 400, "stop", "0 to 16"),
        (CHAT, {"seed": 1.5}, 400, "seed", "expected an integer"),
        (CHAT, {"top_logprobs": 3}, 400, "top_logprobs", "expected logprobs to be true"),
        (CHAT, {"presence_penalty": 2.1}, 400, "presence_penalty", "expected a number of -2 to 2, got 2.1"),
        (CHAT, {"frequency_penalty": "1"}, 400, "frequency_penalty", "expected a finite number, got '1'"),
        (CHAT, {"logit_bias": {"1": 101}}, 400, "logit_bias", "expected a number of -100 to 100, got 101"),
        (CHAT, {"logit_bias": {"-1": 5}}, 400, "logit_bias", "expected a token's number, got '-1'"),
        (CHAT, {"logit_bias": {"9" * 5000: 5}}, 400, "logit_bias", "expected a token's number"),
        (CHAT, {"logit_bias": {"300": 5}}, 400, None, "tokens [300] are out of range for a vocabulary of 300"),
        (CHAT, {"logit_bias": dict.fromkeys(map(str, range(1025)), 1)}, 400, "logit_bias", "length of 0 to 1024"),
        (CHAT, {"response_format": {"type": "xml"}}, 400, "response_format", 'expected the type "text", "json_object"'),
        (CHAT, {"response_format": {"type": "json_schema"}}, 400, "response_format", "expected the type"),
        (CHAT, {"response_format": {"type": "json_object"}, "tools": [{}]}, 400, "response_format", "without tools"),
        (CHAT, {"messages": [{**USER, "content": "\ud800"}]}, 400, None, r"a text of Unicode, got '\ud800' at 2"),
        (CHAT, {"\ud800": 1}, 400, "?", "?: this server has no such option"),
        (CHAT, {"tool_choice": "required"}, 400, "tool_choice", "of one of []"),
        (CHAT, {"tool_choice": "any", "tools": TOOLS}, 400, "tool_choice", 'expected "auto", "none", "required"'),
        (CHAT, {"tool_choice": NAMED, "tools": TOOLS[1:]}, 400, "tool_choice", "of one of ['g-2']"),
        (CHAT, {"tool_choice": NAMED, "tools": [{}]}, 400, "tools", "tools[0]: expected"),
        (CHAT, {"modalities": ["audio"]}, 400, "modalities", "has no such option"),
        (CHAT, {"nosuch": 1}, 400, "nosuch", "has no such option"),
        (TEXT, {}, 400, "prompt", "expected the key 'prompt'"),
        (CHAT, {"stream": "yes"}, 400, "stream", "expected true or false"),
        (TEXT, {"prompt": 3}, 400, "prompt", "expected a text, a list of texts, or tokens"),
        (TEXT, {"prompt": "\ud800"}, 400, None, "expected a text of Unicode"),
        (TEXT, {"prompt": []}, 400, "prompt", "expected a text"),
        (TEXT, {"prompt": [9999]}, 400, None, "tokens [9999] are out of range"),
        (TEXT, {"prompt": "cat " * 199}, 400, None, "do not fit into the context"),
        (TEXT, {"prompt": "x", "echo": True}, 400, "echo", "has no such option"),
        (TEXT, {"prompt": "x", "logprobs": 21}, 400, "logprobs", "0 to 20"),
    ],
)
def test_wrong_requests(client: Client, route: str, fields: Any, status: int, param: str | None, said: str) -> None:
    """Streams too, since nothing has been sent yet."""
    for stream in ({}, {} if "stream" in fields else {"stream": True}):
        body = (ASKED if route == CHAT else {"model": "lm"}) | fields | stream
        got, answer = client.post(body, route)
        error = answer["error"]
        assert (got, error["type"]) == (status, "invalid_request_error") and said in error["message"]
        assert error["param"] == param
    if "context" in error["message"]:
        assert error["code"] == "context_length_exceeded"


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff", b"[" * 100_000, b"1" * 5000])
def test_bodies_that_are_no_request(client: Client, body: bytes) -> None:
    status, answer = client.post(body, CHAT)
    assert status == 400 and "expected a JSON object" in answer["error"]["message"]


@pytest.mark.parametrize("route", ["/v1/embeddings", "/v1/responses", "/v1/images/generations", "/v1/audio/speech"])
def test_what_it_does_not_serve(client: Client, route: str) -> None:
    status, answer = client.post({}, route)
    assert (status, answer["error"]["code"]) == (404, "unknown_url")
    assert "this server has /v1/models, /v1/chat/completions and /v1/completions" in answer["error"]["message"]


def test_too_large_a_body(serving: Callable[..., Client]) -> None:
    status, answer = serving(most_bytes=1000).post({**ASKED, "user": "x" * 2000}, CHAT)
    assert status == 413 and "expected at most 1000 bytes" in answer["error"]["message"]


class _Gate:
    """Holds the model's steps until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open, self.steps, run = threading.Event(), 0, LanguageModel.run

        def held(model: LanguageModel, *given: Any) -> Any:
            self.steps += 1
            self.open.wait(20)
            return run(model, *given)

        monkeypatch.setattr(LanguageModel, "run", held)


def test_a_full_queue_and_a_deadline(serving: Callable[..., Client], monkeypatch: pytest.MonkeyPatch) -> None:
    """One request runs, one waits, the third is refused; those that take too long are given up."""
    gate = _Gate(monkeypatch)
    client = serving(sessions=1, most_waiting=1, answer_s=2.0)
    with ThreadPoolExecutor(2) as pool:
        late = [pool.submit(client.post, ASKED | stream, CHAT) for stream in ({}, {"stream": True})]
        while gate.steps == 0 or client.counted("litecl_waiting_requests") != 1:
            assert not any(each.done() for each in late), "the machine is too slow"
            time.sleep(0.01)
        status, answer = client.post(ASKED, CHAT)
        assert (status, answer["error"]["code"], answer["error"]["type"]) == (503, "overloaded", "server_error")
        for each in late:
            status, answer = each.result()
            assert status == 504 and "expected an answer within 2 s" in answer["error"]["message"]
    gate.open.set()
    deadline = time.monotonic() + 20
    while (status := client.post(ASKED, CHAT)[0]) != 200:
        assert time.monotonic() < deadline, status


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves(serving: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, stream: bool) -> None:
    """Its generation ends."""
    client = serving(sessions=1)
    steps, run = [0], LanguageModel.run

    def slow(model: LanguageModel, *given: Any) -> Any:
        steps[0] += 1
        time.sleep(0.1)
        return run(model, *given)

    monkeypatch.setattr(LanguageModel, "run", slow)
    with _left_open(client, {**ASKED, "max_tokens": 50, "stream": stream}):
        while steps[0] < 5:
            time.sleep(0.01)
    while client.counted("litecl_waiting_requests") or not _is_over(steps):
        assert steps[0] < 40
    assert steps[0] < 40
    monkeypatch.undo()
    assert answered(client)["usage"]["completion_tokens"] == 6


def test_a_client_that_leaves_while_its_prompt_is_read(
    serving: Callable[..., Client], generator: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which takes several steps: the rest is left out."""
    read, opened, run = list[int](), threading.Event(), LanguageModel.run

    def held(model: LanguageModel, tokens: list[int], *given: Any) -> Any:
        read.append(len(tokens))
        opened.wait(20)
        return run(model, tokens, *given)

    monkeypatch.setattr(LanguageModel, "run", held)
    client = serving(sessions=1)
    with _left_open(client, {**ASKED, "messages": [{**USER, "content": "cat " * 30}]}):
        _wait_for(lambda: bool(read))
    _wait_for(lambda: 'code="499"} 1' in client.get("/metrics"))
    opened.set()
    assert answered(client)["usage"]["completion_tokens"] == 6
    assert sum(read) <= read[0] + len(generator.encode(generator.chat_prompt([USER]).text)) + 6


def test_a_client_that_leaves_before_its_stream_begins(
    serving: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the model runs its first step, or other requests do: the generation ends, and the place is free."""
    gate = _Gate(monkeypatch)
    client = serving(sessions=1)
    with _left_open(client, {**ASKED, "max_tokens": 50, "stream": True}):
        _wait_for(lambda: gate.steps > 0)
        with _left_open(client, {**ASKED, "stream": True}):
            _wait_for(lambda: client.counted("litecl_waiting_requests") == 1)
        _wait_for(lambda: client.counted("litecl_waiting_requests") == 0)
    _wait_for(lambda: 'code="499"} 2' in client.get("/metrics"))
    gate.open.set()
    assert answered(client)["usage"]["completion_tokens"] == 6
    assert gate.steps < 20


def _wait_for(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 15
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextmanager
def _left_open(client: Client, asked: Any) -> Iterator[None]:
    """Send a request whose client leaves at the end of the context."""
    body = json.dumps(asked).encode()
    with socket.create_connection(("127.0.0.1", int(client.address.rpartition(":")[2]))) as connection:
        connection.sendall(f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        yield


def _is_over(steps: list[int]) -> bool:
    before = steps[0]
    time.sleep(0.5)
    return steps[0] == before


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (ModelError("no largest number"), 400, "ModelError: no largest number"),
        (DelegateError("lost"), 500, "DelegateError: lost"),
        (RuntimeError("secret"), 500, "RuntimeError; the server's log has its place"),
    ],
)
def test_a_generation_that_fails(
    serving: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, said: str
) -> None:
    """At its start it is a status, later in a stream an event. The session stays usable."""
    client, run, steps = serving(sessions=1), LanguageModel.run, [0]

    def failing(model: LanguageModel, *given: Any) -> Any:
        steps[0] += 1
        if steps[0] > 4:
            raise error
        return run(model, *given)

    monkeypatch.setattr(LanguageModel, "run", failing)
    got, answer = client.post(ASKED, CHAT)
    assert (got, answer["error"]["message"]) == (status, said)
    monkeypatch.undo()
    assert answered(client)["choices"][0]["finish_reason"] == "length"


def test_a_session_that_cannot_be_created(serving: Callable[..., Client], monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes no place for good: the only one here."""

    def failing(generator: Generator) -> Any:
        raise MemoryError

    client = serving(sessions=1)
    monkeypatch.setattr(Generator, "session", failing)
    assert client.post(ASKED, CHAT)[0] == 500
    monkeypatch.undo()
    assert client.post(ASKED, CHAT)[0] == 200


def test_at_the_same_time(client: Client, generator: Generator) -> None:
    """More requests than sessions: each as if it were alone."""
    words = ["the cat", "dog", "house", "rain", "mat", "side", "other", "the dog"]
    expected = [generator.generate(each, max_tokens=6, temperature=0).text for each in words]
    with ThreadPoolExecutor(8) as pool:
        got = [*pool.map(lambda word: text(client, prompt=word)["choices"][0]["text"], words * 3)]
    assert got == expected * 3
    assert client.counted('litecl_tokens_total{kind="generated"}') >= 24 * 6


def test_the_command(path: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with started(path, "--generate", "--cpu", "--name", "lm", "--sessions", "1") as server:
        assert json.loads(server.client.get("/v1/models"))["data"][0]["id"] == "lm"
        assert answered(server.client)["usage"]["completion_tokens"] == 6
        assert "1 requests" in server.ended()
    assert "--sessions says how many" in failure(capsys, "serve", path, "--generate", "--buffers", "2")
    said = failure(capsys, "serve", path, "--generate", "--batch", "3", "--wait-ms", "1")
    assert "--batch, --wait-ms: no effect with a language model" in said
    said = failure(capsys, "serve", path, "--sessions", "2", "--template", path)
    assert "--template, --sessions: no effect without --generate" in said
    with _listening("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        said = failure(capsys, "serve", path, "--generate", "--cpu", "--port", port)
    assert f"port {port} of 127.0.0.1 is in use: choose another with --port" in said


def test_a_language_model_served_by_its_tensors(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command says how to serve it for texts; of other models, or of a signature that was named, nothing."""
    monkeypatch.setattr(serve, "_served", lambda *_: Output(None, ()))
    other = small_model(tmp_path)
    for words, told in (((path,), 1), ((path, "--signature", "decode"), 0), ((other,), 0)):
        assert main(["serve", *map(str, words), "--cpu", "--batch", "1"]) == 0
        assert capsys.readouterr().err.count("by its signatures: --generate serves it for texts\n") == told


def test_the_command_serves_a_bundle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By its name alone; a bundle without a template serves completions only, and the command says so."""
    bundles = pytest.importorskip("support.bundles", reason="LiteRT-LM's builder is not installed")
    with started(bundles.bundle(tmp_path), "--cpu") as server:
        assert "no chat template (--template): /v1/completions only" in server.told[-1]
        status, answer = server.client.post(ASKED | {"model": "model"}, CHAT)
        assert status == 400 and "has no chat template" in answer["error"]["message"]
        assert server.client.post({"model": "model", "prompt": "the cat"}, TEXT)[0] == 200
    assert "expected a language model" in failure(capsys, "serve", small_model(tmp_path), "--generate", "--cpu")
