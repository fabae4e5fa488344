"""Chats: by a bundle's template, with caches that go on, tools and thinking; and the command."""

import io
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from litecl import Generator
from litecl.cli import main
from litecl.generate.session import Session
from litecl.interpreter.errors import ArgumentError, ModelError
from litecl.interpreter.graph import Array
from support.bundles import LM, bundle
from support.chat_models import chat_model
from support.chat_templates import QWEN, TEMPLATES, TOOL
from support.command import data, failure

TEMPLATE = (
    "{% for m in messages %}{{ m.role[0] }}:{{ m.content }}<eos>{% endfor %}{% if add_generation_prompt %}a:{% endif %}"
)
USER, NEXT = {"role": "user", "content": "cat"}, {"role": "user", "content": "dog"}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bundle(tmp_path_factory.mktemp("chat"), jinja_prompt_template=TEMPLATE)


@pytest.fixture(scope="module", params=[True, False], ids=["numpy", "delegate"])
def generator(path: Path, request: pytest.FixtureRequest) -> Generator:
    return Generator(path, cpu=request.param)


def test_sessions_encode_a_conversation_once(path: Path) -> None:
    """That a server's sessions compare it with what they hold costs nothing more."""
    texts = list[str]()
    generator = Generator(path, cpu=True)
    read = generator.tokenizer
    assert read is not None
    encode = read.encode
    read.encode = lambda text, first: texts.append(text) or encode(text, first)  # type: ignore[method-assign, func-returns-value]
    sessions = [generator.session() for _ in range(3)]
    for messages in ([USER], [NEXT], [USER]):
        prompt = generator.chat_prompt(messages)
        texts.clear()
        assert [session.shared(prompt) for session in sessions[1:]] == [0, 0]
        sessions[0].chat(prompt, max_tokens=1)
        assert texts.count(prompt.text) == 1
        fresh = Generator(path, cpu=True).session()
        fresh.chat(prompt, max_tokens=1)
        assert sessions[0].tokens == fresh.tokens


def encoded(generator: Generator, text: str) -> list[int]:
    assert generator.tokenizer is not None
    return generator.tokenizer.encode(text, False)


def writing(generator: Generator, text: str) -> Callable[[Sequence[int], Array], None]:
    """Return a mask that has a model write a text, and end."""
    wanted = [*encoded(generator, text), 1]

    def mask(tokens: Sequence[int], allowed: Array) -> None:
        allowed[:] = False
        allowed[wanted[len(tokens)]] = True

    return mask


def computed(session: Session) -> int:
    return session.timing.prefill_tokens + session.timing.decode_tokens


def test_a_reply(generator: Generator) -> None:
    """The model reads the start token, and the template's text."""
    prompt = [7, *encoded(generator, "u:cat<eos>a:")]
    session = generator.session()
    reply = session.chat([USER], max_tokens=6, stop_tokens=())
    assert [*reply.generation.tokens] == LM.greedy(prompt, 6)
    assert [*session.tokens] == [*prompt, *reply.generation.tokens]
    assert (reply.finish, reply.thinking, reply.tool_calls) == ("max_tokens", "", ())
    assert reply.message == {"role": "assistant", "content": str(reply)}
    assert reply.generation.timing.decode_tokens == 6
    assert generator.chat("cat", max_tokens=6, stop_tokens=()).generation.tokens == reply.generation.tokens


def test_its_pieces(generator: Generator) -> None:
    *pieces, last = generator.session().stream_chat([USER], max_tokens=9, log_probs=True, stop_tokens=())
    whole = generator.chat([USER], max_tokens=9, log_probs=True, stop_tokens=())
    assert "".join([*pieces, last]) == whole.content
    assert [piece.token for each in [*pieces, last] for piece in each.pieces] == [*whole.generation.tokens]
    assert not any(each.finish or each.reply for each in pieces)
    assert last.reply is not None and last.finish == "max_tokens"
    assert last.reply.generation.log_probs == whole.generation.log_probs
    assert last.reply.generation.timing.decode_tokens == whole.generation.timing.decode_tokens == 9
    assert last.reply.generation.timing.prefill_tokens == whole.generation.timing.prefill_tokens > 0


def test_the_time_of_each_reply_is_its_own(generator: Generator) -> None:
    session = generator.session()
    for tokens in (3, 5):
        *_, last = session.stream_chat([USER], max_tokens=tokens, stop_tokens=())
        assert last.reply is not None and last.reply.generation.timing.decode_tokens == tokens


@pytest.mark.parametrize("role", ["user", "system"])
def test_a_message_without_content(generator: Generator, role: str) -> None:
    with pytest.raises(ArgumentError, match=r"messages\[1\]: expected a text for 'content'"):
        generator.chat([USER, {"role": role}], max_tokens=1)


def test_a_longer_conversation_computes_its_new_tokens(generator: Generator) -> None:
    """Tokens are as those of a new session that is given all of them; those read before are not read again."""
    session = generator.session()
    first = session.chat([USER], mask=writing(generator, "the mat"))
    assert (first.content, first.finish) == ("the mat", "stop token")
    before, held = computed(session), len(session.tokens)
    messages = [USER, first.message, NEXT]
    second = session.chat(messages, max_tokens=5, stop_tokens=())
    prompt = [7, *encoded(generator, "u:cat<eos>a:the mat<eos>u:dog<eos>a:")]
    assert [*session.tokens] == [*prompt, *LM.greedy(prompt, 5)]
    assert (
        computed(session) - before == len(session.tokens) - held
    )  # the stop token had not been read, the last not yet
    assert second.generation.tokens == generator.chat(messages, max_tokens=5, stop_tokens=()).generation.tokens


def test_the_tokens_that_the_model_wrote_stay(generator: Generator) -> None:
    """Of a text that it wrote in other tokens than the tokenizer would."""
    letters = [token for letter in "the mat" for token in encoded(generator, letter)]
    assert letters != encoded(generator, "the mat")

    def mask(tokens: Sequence[int], allowed: Array) -> None:
        allowed[:] = False
        allowed[[*letters, 1][len(tokens)]] = True

    session = generator.session()
    reply = session.chat([USER], mask=mask)
    session.chat([USER, reply.message, NEXT], max_tokens=1)
    prompt = [*encoded(generator, "u:cat<eos>a:"), *letters, *encoded(generator, "<eos>u:dog<eos>a:")]
    assert [*session.tokens[:-1]] == [7, *prompt]


def test_a_conversation_that_is_rewritten(generator: Generator) -> None:
    """Another reply, fewer messages, the same ones again: each as in a new session, from the first difference on."""
    session = generator.session()
    reply = session.chat([USER], mask=writing(generator, "the mat"))
    for messages in (
        [USER, {**reply.message, "content": "the house"}, NEXT],
        [USER, reply.message, NEXT],
        [USER],
        [USER],
        [{**USER, "content": "cats"}],
        [NEXT, reply.message, USER],
    ):
        got = session.chat(messages, max_tokens=5, stop_tokens=()).generation.tokens
        assert got == generator.chat(messages, max_tokens=5, stop_tokens=()).generation.tokens
        assert session.tokens[-5:] == got


def test_ring_buffers_are_read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have lost what later tokens replaced."""
    generator = Generator(path, cpu=True)
    monkeypatch.setattr(generator._model, "may_drop", False)
    session = generator.session()
    session.chat([USER], max_tokens=5, stop_tokens=())
    before = computed(session)
    session.chat([USER], max_tokens=1, stop_tokens=())
    assert computed(session) - before == len(session.tokens) - 1


def test_after_other_uses(generator: Generator) -> None:
    """A session that held another text, and one that is left early."""
    expected = generator.chat([USER], max_tokens=5, stop_tokens=()).generation.tokens
    session = generator.session()
    session.generate("the dog", max_tokens=7)
    assert session.chat([USER], max_tokens=5, stop_tokens=()).generation.tokens == expected
    stream = session.stream_chat([NEXT], max_tokens=20, stop_tokens=())
    next(stream)
    del stream
    assert session.chat([USER], max_tokens=5, stop_tokens=()).generation.tokens == expected
    with pytest.raises(ZeroDivisionError):
        session.chat([NEXT], mask=lambda tokens, allowed: 1 / 0)
    assert session.fork().chat([USER], max_tokens=5, stop_tokens=()).generation.tokens == expected


def test_thinking_and_tools(tmp_path: Path) -> None:
    """Parts of a reply, and the messages that answer it, as the template of Qwen writes them."""
    template = QWEN.replace("For each call, return JSON within", "")  # for a short context
    generator = Generator(chat_model(tmp_path, template, 1500), cpu=True)
    text = '{"name": "weather", "arguments": {"town": "Oslo"}}'
    text = f"<think>\nhm\n</think>\n\nLet me see.\n<tool_call>\n{text}\n</tool_call>"
    session = generator.session()
    reply = session.chat([USER], tools=[TOOL], mask=writing(generator, text))
    assert (reply.thinking, reply.content) == ("hm", "Let me see.")
    (call,) = reply.tool_calls
    assert (call.name, call.arguments) == ("weather", {"town": "Oslo"})
    results = [{"role": "tool", "tool_call_id": call.id, "content": "cold"}]
    again = session.chat([USER, reply.message, *results], tools=[TOOL], mask=writing(generator, text))
    assert again.tool_calls[0].id != call.id
    assert generator.tokenizer is not None
    read = generator.tokenizer.decode(session.tokens)
    assert "<tool_call>\n" in read and "<tool_response>\ncold\n</tool_response>" in read and read.count("hm") == 1
    plain = generator.chat([USER], mask=writing(generator, text), variables={"enable_thinking": False})
    assert plain.content.startswith("Let me see.\n<tool_call>")  # without tools these are no calls
    pieces = [*generator.session().stream_chat([USER], tools=[TOOL], mask=writing(generator, text))]
    assert {each.part for each in pieces} == {"thinking", "content", "tool calls"}


def test_where_templates_come_from(path: Path, tmp_path: Path) -> None:
    """A given file comes before the bundle's, or the one beside a model."""
    generator = Generator(chat_model(tmp_path, "{{ bos_token }}jinja"), cpu=True)
    assert generator.session()._lexicon.template.render([]) == "<bos>jinja"
    session = generator.session()
    session.chat("x", max_tokens=1)
    assert session.tokens[:-1] == (2, *encoded(generator, "jinja"))  # no second <bos>
    (tmp_path / "chat_template.jinja").unlink()
    config = {"eos_token": "<eos>", "chat_template": [{"name": "default", "template": "config{{ eos_token }}"}]}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    generator = Generator(tmp_path / "model.tflite", cpu=True)
    assert generator.session()._lexicon.template.render([]) == "config<eos>"
    given = tmp_path / "mine.jinja"
    given.write_text("mine")
    for model in (path, tmp_path / "model.tflite"):
        assert Generator(model, cpu=True, template=given).session()._lexicon.template.render([]) == "mine"


def test_texts_around_messages(tmp_path: Path) -> None:
    """Older bundles declare these in place of a template."""
    affixes = {"user": {"prefix": "[u]", "suffix": "[/u]"}, "model": {"prefix": "[m]", "suffix": "[/m]"}}
    generator = Generator(bundle(tmp_path, prompt_templates=affixes), cpu=True)
    template = generator.session()._lexicon.template
    reply = {"role": "assistant", "content": "a"}
    assert template.render([USER, reply, NEXT], add_generation_prompt=True) == "[u]cat[/u][m]a[/m][u]dog[/u][m]"
    with pytest.raises(ModelError, match="no role tool in this model's prompts"):
        generator.chat([{"role": "tool", "content": "x"}])


def test_content_in_parts(path: Path, tmp_path: Path) -> None:
    """Parts of text are joined; a template that takes parts only is given them."""
    parts = [{"role": "user", "content": [{"type": "text", "text": "c"}, {"type": "text", "text": "at"}]}]
    generator = Generator(path, cpu=True)
    expected = generator.chat([USER], max_tokens=4).generation.tokens
    assert generator.chat(parts, max_tokens=4).generation.tokens == expected
    (tmp_path / "parts.jinja").write_text(
        TEMPLATE.replace("{{ m.content }}", "{% for part in m.content %}{{ part.text }}{% endfor %}")
    )
    other = Generator(path, cpu=True, template=tmp_path / "parts.jinja")
    assert other.chat([USER], max_tokens=4).generation.tokens == expected


@pytest.mark.parametrize(
    ("messages", "error", "said"),
    [
        ([], ModelError, "messages: expected at least one"),
        (None, ArgumentError, "messages: expected a list, or a text, got None"),
        ([{"content": "x"}], ArgumentError, r"messages\[0\]: expected a mapping with the text 'role'"),
        ([USER, "x"], ArgumentError, r"messages\[1\]: expected a mapping"),
        ([{"role": "user", "content": 3}], ArgumentError, r"messages\[0\]: expected a text for 'content'"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], ModelError, "expected parts of the type 'text'"),
        ([{"role": "user", "content": object()}], ArgumentError, "messages: expected what JSON can hold"),
        ([{"role": "user", "content": "cat " * 99}], ModelError, r"the conversation has \d+ tokens, and the context"),
        ([{"role": "assistant", "tool_calls": "x"}], ArgumentError, "expected a list of mappings for 'tool_calls'"),
        (
            [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}],
            ArgumentError,
            "expected JSON for the arguments of a call",
        ),
    ],
)
def test_wrong_messages(path: Path, messages: Any, error: type[Exception], said: str) -> None:
    session = Generator(path, cpu=True).session()
    session.generate("the", max_tokens=2)
    before = session.tokens
    with pytest.raises(error, match=said):
        session.chat(messages)
    assert session.tokens == before


def test_wrong_files_and_options(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no chat template: give one with Generator\(template=FILE\)"):
        Generator(LM.write(tmp_path), cpu=True).chat([USER])
    with pytest.raises(ModelError, match="the chat template of this model takes none"):
        Generator(path, cpu=True).chat([USER], tools=[TOOL])
    for wrong in ({"messages": []}, [1], "x"):
        with pytest.raises(ArgumentError, match="variables: expected a mapping without 'messages'"):
            Generator(path, cpu=True).chat([USER], variables=wrong)
    assert Generator(path, cpu=True).chat_prompt([USER], variables={"self": 1}).text
    with pytest.raises(ArgumentError, match="expected options of"):
        Generator(path, cpu=True).chat([USER], nosuch=1)
    with pytest.raises(ModelError, match=r"absent\.jinja cannot be read"):
        Generator(path, cpu=True, template=tmp_path / "absent.jinja")
    (tmp_path / "x.json").write_text("[]")
    with pytest.raises(ModelError, match=r"x\.json cannot be read"):
        Generator(path, cpu=True, template=tmp_path / "x.json")
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(ModelError, match=r"x\.json has no chat template"):
        Generator(path, cpu=True, template=tmp_path / "x.json")


# The command


def test_one_message(path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """From the command line, and all of stdin."""
    found = data(capsys, "chat", path, "--prompt", "cat", "--max-tokens", "6", "--cpu")
    expected = Generator(path, cpu=True).chat("cat", max_tokens=6)
    assert found["message"] == expected.message
    assert (found["tokens"], found["finish"]) == ([*expected.generation.tokens], expected.finish)
    monkeypatch.setattr(sys, "stdin", io.StringIO("cat\n"))
    assert main(["chat", str(path), "--max-tokens", "6", "--cpu"]) == 0
    printed = capsys.readouterr()
    assert printed.out == expected.content + "\n"
    assert "generated: " in printed.err


def test_files(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    messages = [USER, {"role": "assistant", "content": "the mat"}, NEXT]
    (tmp_path / "messages.json").write_text(json.dumps(messages))
    asked = ("chat", path, "--messages", tmp_path / "messages.json", "--cpu", "--max-tokens", "4")
    found = data(capsys, *asked, "--system", "mat")
    expected = Generator(path, cpu=True).chat([{"role": "system", "content": "mat"}, *messages], max_tokens=4)
    assert found["message"] == expected.message
    (tmp_path / "own.jinja").write_text("{{ tools[0].function.name }} {{ x }}")
    (tmp_path / "tools.json").write_text(json.dumps([TOOL]))
    flags = ("--template", tmp_path / "own.jinja", "--tools", tmp_path / "tools.json", "--variable", "x=[3]")
    found = data(capsys, *asked, *flags)
    assert found["prompt_tokens"] == [7, *encoded(Generator(path, cpu=True), "weather [3]")]


def test_a_conversation(path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What a terminal's user writes, line by line; one that doesn't fit is taken back."""
    lines = iter(["cat", "", "/help", "cat " * 99, "dog", "/reset", "dog", "/exit", "cat"])
    monkeypatch.setattr("builtins.input", lambda prompt: _next(lines))
    monkeypatch.setattr(sys, "stdin", _Terminal())
    assert main(["chat", str(path), "--max-tokens", "3", "--cpu", "--stop", "zz"]) == 0
    generator = Generator(path, cpu=True)
    session = generator.session()
    first = session.chat([USER], max_tokens=3, stop=("zz",))
    second = session.chat([USER, first.message, NEXT], max_tokens=3, stop=("zz",))
    alone = generator.chat([NEXT], max_tokens=3, stop=("zz",))
    printed = capsys.readouterr()
    assert printed.out == f"{first}\n{second}\n{alone}\n"
    assert "error: the conversation has" in printed.err
    assert printed.err.count("/reset begins a new conversation") == 3  # at first, for /help and for what doesn't fit
    assert printed.err.count("(ended by: max_tokens)") == 3


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _next(lines: Any) -> str:
    try:
        return str(next(lines))
    except StopIteration:
        raise EOFError from None


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--prompt", " "), "expected a message, got an empty one"),
        (("--prompt", "x", "--tools", "absent.json"), "--tools: absent.json cannot be read"),
        (("--prompt", "x", "--template", "absent.jinja"), "absent.jinja cannot be read"),
    ],
)
def test_errors(path: Path, flags: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert said in failure(capsys, "chat", path, *flags)


def test_a_model_without_a_template(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = failure(capsys, "chat", LM.write(tmp_path), "--prompt", "x", "--cpu")
    assert "it has no chat template: give one with --template, or use litecl generate" in said


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_message_as_clients_of_openai_send_it(name: str, tmp_path: Path) -> None:
    """Fields without a value are as good as absent, as in transformers 5; "tool_calls" even empty would be calls."""
    generator = Generator(bundle(tmp_path, jinja_prompt_template=TEMPLATES[name]), cpu=True)
    reply = {"role": "assistant", "content": "Hello"}
    absent = dict.fromkeys(("tool_calls", "refusal", "audio", "function_call", "annotations", "reasoning_content"))
    assert generator.chat_prompt([USER, reply | absent, NEXT]).text == generator.chat_prompt([USER, reply, NEXT]).text


@pytest.mark.parametrize("given", ["reasoning_content", "thinking", "reasoning"])
def test_names_of_thinking(given: str, tmp_path: Path) -> None:
    """Whatever name a message has for it, templates find it by theirs."""
    read = "{{ messages[0].reasoning_content }}|{{ messages[0].thinking }}"
    generator = Generator(bundle(tmp_path, jinja_prompt_template=read), cpu=True)
    reply = {"role": "assistant", "content": "Hello", "reasoning_content": None, given: "hm"}
    assert generator.chat_prompt([reply]).text == "hm|hm"


@pytest.mark.parametrize("name", TEMPLATES)
def test_developers_messages(name: str, tmp_path: Path) -> None:
    """They are the system's where the template has no such role: many write nothing for a role they don't know."""
    generator = Generator(bundle(tmp_path, jinja_prompt_template=TEMPLATES[name]), cpu=True)
    system, developer = ({"role": role, "content": "Be brief."} for role in ("system", "developer"))
    assert generator.chat_prompt([developer, USER]).text == generator.chat_prompt([system, USER]).text
    own = "{% for m in messages %}{% if m.role == 'developer' %}d{% else %}{{ m.role }}{% endif %}{% endfor %}"
    generator = Generator(bundle(tmp_path, jinja_prompt_template=own), cpu=True)
    assert generator.chat_prompt([developer, USER]).text == "duser"
