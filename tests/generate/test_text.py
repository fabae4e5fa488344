"""Tokens to text as they come, stop sequences, and the libraries of tokenizers."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl import Generator
from litecl.generate import tokenizers
from litecl.generate.text import TextStream
from litecl.interpreter.errors import ArgumentError, MissingExtra, ModelError, ModelFileNotFound
from support import tokenizers as small
from support.causal_lm import CausalLM

LM = CausalLM()


def told(text: str, stop: tuple[str, ...] = (), before: str = "") -> list[str]:
    """What a stream of the bytes of a text gives, byte by byte."""
    data = [*text.encode()]
    stream, pieces = TextStream(small.Bytes().decode, [*before.encode()], stop), []
    for i, byte in enumerate(data):
        pieces.append(stream.push(byte, i == len(data) - 1))
        if stream.stopped:
            break
    return pieces


def test_characters_come_whole() -> None:
    assert told("aé€🙂b") == ["a", "", "é", "", "", "€", "", "", "", "🙂", "b"]
    assert told("né", before="a text before, é") == ["n", "", "é"]
    assert "".join(told("\N{REPLACEMENT CHARACTER}x")) == "\N{REPLACEMENT CHARACTER}x"


def test_bytes_that_are_no_text() -> None:
    """They come at the end, as the tokenizer writes them."""
    stream = TextStream(small.Bytes().decode, [], ())
    assert [stream.push(97), stream.push(0xF0), stream.push(0x9F, last=True)] == ["a", "", "\N{REPLACEMENT CHARACTER}"]


@pytest.mark.parametrize(
    ("text", "stop", "expected"),
    [
        ("one two three", ("two",), "one "),
        ("one two three", ("three", "two"), "one "),
        ("one twtwo", ("two",), "one tw"),
        ("one twelve tw", ("two",), "one twelve tw"),
        ("aaab", ("aab",), "a"),
        ("abcabd", ("abd", "zzz"), "abc"),
        ("x\n\ny", ("\n\n",), "x"),
        ("stop", ("s",), ""),
        ("näher", ("ähe",), "n"),
    ],
)
def test_stop_sequences(text: str, stop: tuple[str, ...], expected: str) -> None:
    """The text ends before the first; what may begin one is held back until it is certain."""
    pieces = told(text, stop)
    assert "".join(pieces) == expected
    shown = ""
    for piece in pieces:
        shown += piece
        assert expected.startswith(shown)


def test_a_text_of_a_model(tmp_path: Path) -> None:
    """The pieces are the text of the tokens, with a tokenizer of one's own."""
    generator = Generator(LM.write(tmp_path), cpu=True, tokenizer=small.Bytes())
    got = generator.generate("a prompt", max_tokens=25, stop_tokens=())
    assert [*got.tokens] == LM.greedy([*b"a prompt"], 25)
    assert got.text == str(got) == small.Bytes().decode(got.tokens)
    text = generator.generate("a prompt", max_tokens=25, stop_tokens=(), temperature=1.0, seed=4, top_k=60).text
    stop = text[5:7]
    cut = generator.generate("a prompt", max_tokens=25, stop_tokens=(), temperature=1.0, seed=4, top_k=60, stop=stop)
    assert (cut.text, cut.finish) == (text[: text.index(stop)], "stop sequence")


def test_the_end_of_a_text(tmp_path: Path) -> None:
    """What ends a text by the tokenizer ends it, and is none of the text."""
    generator = Generator(LM.write(tmp_path), cpu=True, tokenizer=small.Bytes())
    drawn = generator.generate("a prompt", temperature=100.0, seed=2, max_tokens=50)
    seed = next(s for s in range(100) if 256 in generator.generate("a", temperature=9.0, seed=s, max_tokens=9).tokens)
    got = generator.generate("a", temperature=9.0, seed=seed, max_tokens=9)
    assert got.tokens[-1] == 256 and got.finish == "stop token"
    assert got.text == small.Bytes().decode(got.tokens)
    assert drawn.timing.decode_tokens == len(drawn.tokens)


class Odd(small.Bytes):
    """A tokenizer of one's own whose methods return what they shouldn't."""

    def __init__(self, **returned: Any) -> None:
        self._returned = returned
        self.stop_tokens = returned.get("stop_tokens", (256,))

    def encode(self, text: str, first: bool) -> list[int]:
        return self._returned.get("encode", super().encode(text, first))  # type: ignore[no-any-return]

    def decode(self, tokens: Sequence[int]) -> str:
        return self._returned.get("decode", super().decode(tokens))  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("returned", "match"),
    [
        *(
            ({"encode": each}, r"numbers of tokens from encode\(\), got ")
            for each in (None, "ab", b"ab", [1.5], {"ids": 1})
        ),
        *(({"decode": each}, r"a text from decode\(\), got ") for each in (None, b"ab", 5, ["a"])),
        *(({"stop_tokens": each}, "numbers of tokens from stop_tokens, got ") for each in (None, 5, ["a"], "a")),
    ],
)
def test_a_tokenizer_that_returns_another_thing(returned: dict[str, Any], match: str, tmp_path: Path) -> None:
    """A typed error says so, in chats too."""
    (tmp_path / "chat_template.jinja").write_text("{{ bos_token }}{{ messages[0].content }}")
    generator = Generator(LM.write(tmp_path), cpu=True, tokenizer=Odd(**returned))
    for call in (generator.generate, generator.chat):
        with pytest.raises(ArgumentError, match=f"^tokenizer: expected {match}"):
            call("a prompt", max_tokens=3)


def test_tokenizers_that_are_none(tmp_path: Path) -> None:
    path = LM.write(tmp_path)
    with pytest.raises(ArgumentError, match=r"tokenizer: expected .*, which has no \['decode', 'stop_tokens'\]"):
        Generator(path, cpu=True, tokenizer=type("Half", (), {"encode": None})())
    with pytest.raises(ModelFileNotFound, match="nosuch"):
        Generator(path, cpu=True, tokenizer=tmp_path / "nosuch").generate("a prompt")
    for text in (5, None, b"a"):
        with pytest.raises(ArgumentError, match="expected a text, got"):
            Generator(path, cpu=True, tokenizer=small.Bytes()).encode(text)  # type: ignore[arg-type]


LIBRARIES = [
    ("tokenizers", small.hugging_face, "tokenizer.json"),
    ("sentencepiece", small.sentencepiece, "tokenizer.model"),
]


@pytest.mark.parametrize(("library", "made", "name"), LIBRARIES)
def test_libraries(library: str, made: Callable[[], bytes], name: str, tmp_path: Path) -> None:
    """A tokenizer beside the file is found; a text begins as it says, and one that goes on does not."""
    pytest.importorskip(library)
    (tmp_path / name).write_bytes(made())
    small.write_config(tmp_path, {"content": "<eos>"})
    generator = Generator(LM.write(tmp_path), cpu=True)
    tokenizer = generator.tokenizer
    assert tokenizer is not None
    (end,) = tokenizer.stop_tokens
    first, later = (tokenizer.encode("the cat é", first) for first in (True, False))
    assert first[1:] == later and first[0] == (2 if library == "tokenizers" else 1)
    assert tokenizer.decode(later) == "the cat é"
    tokens = LM.greedy(first, 12)
    got = generator.generate("the cat é", max_tokens=12, stop_tokens=())
    assert [*got.tokens] == tokens
    whole, prompt = (tokenizer.decode(each) for each in ([*first, *tokens], first))
    assert prompt + got.text == whole
    assert end in (1, 2)


@pytest.mark.parametrize(("library", "made", "name"), LIBRARIES)
def test_without_the_library(
    library: str, made: Callable[[], bytes], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens go in and out; a text is refused, and told what to install."""
    pytest.importorskip(library)
    (tmp_path / name).write_bytes(made())
    monkeypatch.setitem(sys.modules, library, None)
    generator = Generator(LM.write(tmp_path), cpu=True)
    for asked in (lambda: generator.stream("text"), lambda: generator.stream([1], stop="x")):
        with pytest.raises(MissingExtra, match=r"pip install 'litecl\[llm\]'"):
            asked()
    got = generator.generate([3, 4, 5], max_tokens=4)
    assert ([*got.tokens], got.text) == (LM.greedy([3, 4, 5], 4), "")


@pytest.mark.parametrize(
    "content", [b"", b"{}", b'{"model": 3}', b"no tokenizer", np.arange(99, dtype=np.uint8).tobytes()]
)
def test_files_that_are_no_tokenizer(content: bytes) -> None:
    pytest.importorskip("tokenizers")
    pytest.importorskip("sentencepiece")
    with pytest.raises(ModelError, match="the tokenizer cannot be read"):
        tokenizers.load(content)


def test_a_prompt_stays_whole() -> None:
    """Whatever length the tokenizer's file sets."""
    library = pytest.importorskip("tokenizers").Tokenizer.from_str(small.hugging_face().decode())
    library.enable_truncation(2)
    library.enable_padding(length=99)
    expected = tokenizers.load(small.hugging_face()).encode("the cat sat", True)
    assert tokenizers.load(library.to_str().encode()).encode("the cat sat", True) == expected


def test_texts_that_a_tokenizer_lacks() -> None:
    library = pytest.importorskip("tokenizers")
    made = library.Tokenizer(library.models.WordLevel({"cat": 0}, "<unk>"))
    with pytest.raises(ModelError, match=r"the tokenizer cannot encode the text: WordLevel error: Missing \[UNK\]"):
        tokenizers.load(made.to_str().encode()).encode("dog", True)


def test_the_file_of_a_tokenizer_is_named(tmp_path: Path) -> None:
    pytest.importorskip("sentencepiece")
    (tmp_path / "model.tflite").write_bytes(b"no tokenizer")
    with pytest.raises(ModelError, match=r"model\.tflite: expected a tokenizer\.json or a SentencePiece model"):
        tokenizers.from_file(tmp_path / "model.tflite")


def test_a_config_that_says_nothing(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    (tmp_path / "tokenizer.json").write_bytes(small.hugging_face())
    for eos in (None, 7, {"content": None}, "<none>"):
        small.write_config(tmp_path, eos)
        assert tokenizers.from_file(tmp_path / "tokenizer.json").stop_tokens == ()
    (tmp_path / "tokenizer_config.json").write_text("[" * 100_000)
    assert tokenizers.from_file(tmp_path / "tokenizer.json").stop_tokens == ()
    (tmp_path / "tokenizer_config.json").write_text("[]")
    assert tokenizers.from_file(tmp_path / "tokenizer.json").stop_tokens == ()
