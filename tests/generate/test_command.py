"""The command ``litecl generate``: what it streams, its JSON, its errors."""

import io
import json
import math
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from litecl.cli import main
from litecl.cli.tables import to_json
from support import tokenizers as small
from support.causal_lm import CausalLM
from support.command import data, failure

LM = CausalLM()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return LM.write(tmp_path)


@pytest.mark.parametrize("place", [(), ("--cpu",)])
def test_tokens_as_they_come(path: Path, place: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """Tokens to stdout, figures to stderr."""
    assert main(["generate", str(path), "--tokens", "5, 6,7", "--max-tokens", "6", *place]) == 0
    printed = capsys.readouterr()
    assert printed.out == " ".join(map(str, LM.greedy([5, 6, 7], 6))) + " \n"
    assert "prompt: 2 tokens at " in printed.err
    assert "generated: 6 tokens at " in printed.err
    assert "ended by: max_tokens" in printed.err
    assert ("all nodes on numpy" if place else "nodes in") in printed.err
    assert "of caches" in printed.err


def test_texts(path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """From the command line, and from stdin."""
    pytest.importorskip("tokenizers")
    (path.parent / "tokenizer.json").write_bytes(small.hugging_face())
    found = data(capsys, "generate", path, "--prompt", "the cat", "--max-tokens", "20", "--cpu")
    assert found["tokens"] == LM.greedy(found["prompt_tokens"], 20)
    monkeypatch.setattr(sys, "stdin", io.StringIO("the cat"))
    assert main(["generate", str(path), "--prompt", "-", "--max-tokens", "20", "--cpu"]) == 0
    assert capsys.readouterr().out == found["text"] + "\n"
    cut = data(capsys, "generate", path, "--prompt", "the cat", "--stop", found["text"][3:6], "--stop", "zzzz", "--cpu")
    assert (cut["text"], cut["finish"]) == (found["text"][: found["text"].index(found["text"][3:6])], "stop sequence")


def test_json(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = data(capsys, "generate", path, "--tokens", "5,6,7,8,9,10", "--max-tokens", "4", "--log-probs")
    assert found["prompt_tokens"] == [5, 6, 7, 8, 9, 10]
    assert (found["tokens"], found["text"], found["finish"]) == (LM.greedy([5, 6, 7, 8, 9, 10], 4), "", "max_tokens")
    assert len(found["log_probs"]) == 4 and max(found["log_probs"]) < 0
    for name, count in (("prefill", 5), ("decode", 4)):
        assert found[name]["tokens"] == count
        assert found[name]["tokens_per_s"] == pytest.approx(count / found[name]["seconds"])
    assert found["memory"]["cache_bytes"] == 2 * LM.slots * LM.width * 4
    assert found["memory"]["device_bytes"] > 0
    assert re.match(r"(\d+) of \1 nodes in", found["delegation"]["summary"]) and "nodes" not in found["delegation"]


def test_json_is_short(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line for a list of numbers, however long, and none for each node."""
    assert main(["generate", str(path), "--tokens", "5,6,7", "--max-tokens", "60", "--json"]) == 0
    printed = capsys.readouterr().out
    assert len(json.loads(printed)["tokens"]) == 60 and len(printed.splitlines()) < 60
    assert max(len(line) for line in printed.splitlines() if '"tokens": [' not in line) <= 120


@pytest.mark.parametrize(
    "value", [{}, [], "é", None, [[]], {"a": [{}] * 99, 3: {"b": ["x" * 99, [*range(99)]] * 3}}, [math.inf]]
)
def test_json_in_lines(value: Any) -> None:
    expected = json.loads(json.dumps(value).replace("Infinity", "null"))
    assert json.loads(to_json(value)) == expected


def test_json_in_lines_after_long_keys() -> None:
    written = to_json({"key" * 20: {"values": [1, 2, 3], "text": "x" * 40}})
    assert len(written.splitlines()) == 6 and max(map(len, written.splitlines())) <= 120


def test_whole(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("generate", path, "--tokens", "5,6", "--max-tokens", "12", "--whole")
    assert data(capsys, *asked)["tokens"] == LM.greedy([5, 6], 12)
    assert "whole: expected a temperature of 0" in failure(capsys, *asked, "--temperature", "1")


def test_the_same_seed(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("generate", path, "--tokens", "5", "--cpu", "--temperature", "2", "--top-k", "50", "--top-p", "0.9")
    one, same, other = (data(capsys, *asked, "--seed", seed)["tokens"] for seed in (1, 1, 2))
    assert one == same != other
    calm = data(capsys, *asked, "--seed", 1, "--repetition-penalty", "1e9")["tokens"]
    assert calm != one


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--tokens", "999"), "ModelError: prompt: tokens [999] are out of range for a vocabulary of 300"),
        (("--prompt", "text"), "ModelError: a text needs a tokenizer"),
        (("--prompt", ""), "expected a text, got an empty one"),
        (("--tokens", "1", "--cpu", "--require-device"), "DelegateError: --require-device"),
        (("--tokens", "1", "--device", "no such thing"), "DeviceNotFound"),
        (("--tokens", "1", "--tokenizer", "absent.json", "--stop", "x"), "absent.json: No such file"),
        (("--tokens", "1", "--context-length", "65"), "context_length: the caches of this file hold 64 tokens, got 65"),
    ],
)
def test_errors(path: Path, flags: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert said in failure(capsys, "generate", path, *flags)


@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("--tokens", "1", "--prompt", "x"),
        ("--tokens", "1,x"),
        ("--tokens", ""),
        ("--tokens", "1", "--temperature", "-1"),
    ],
)
def test_wrong_usage(path: Path, flags: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["generate", str(path), *flags])
    assert caught.value.code == 2
    assert "usage: litecl generate" in capsys.readouterr().err


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["generate", "--help"])
    assert 'litecl generate model.litertlm --prompt "Once upon a time"' in capsys.readouterr().out


def test_a_reader_that_has_enough(path: Path) -> None:
    script = "from litecl.cli import main; raise SystemExit(main())"
    asked = ["generate", str(path), "--tokens", "1", "--cpu", "--max-tokens", "60"]
    command = f"{shlex.join([sys.executable, '-c', script, *asked])} | head -c 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env={**os.environ})
    assert "Traceback" not in done.stderr and "Error" not in done.stderr
