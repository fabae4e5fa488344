"""The command ``litecl``: inputs and signatures, programs ahead of time, completion, quick help, narrow terminals."""

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from html import unescape
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import numpy as np
import pyopencl
import pytest
from rich.console import Console
from rich.text import Text

from litecl.bisection.runners import Runner
from litecl.cli import commands, parser, tables
from litecl.cli.pages import page
from litecl.delegate import CLDelegate, devices
from litecl.delegate.native import compiler
from litecl.interpreter import Interpreter
from litecl.interpreter.file.reader import read
from litecl.perf.summary import summarize
from support.build import randn
from support.command import RNG, data, failure, small_model, text
from support.skips import as_itself


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return small_model(tmp_path)


def test_run_of_a_signature_by_its_names(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "feeds.npz", x=randn(RNG, 2, 4))
    found = data(capsys, "run", path, "--cpu", "--signature", "serving_default", "--input", tmp_path / "feeds.npz")
    assert [(value["name"], value["shape"]) for value in found["outputs"]] == [("y", [2, 4])]
    assert "signature 'other' not found" in failure(capsys, "run", path, "--signature", "other")
    assert data(capsys, "run", path, "--cpu", "--shape", "main_in0=5,4")["outputs"][0]["shape"] == [5, 4]
    assert "--shape: there is no input 'z'" in failure(capsys, "run", path, "--shape", "z=1,4")


def test_compile_and_cache(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "programs"
    flags = "--device", "basic", "--cache", folder
    compiled = data(capsys, "compile", path, *flags, "--require-device")
    assert compiled["size_bytes"] > 0
    built = [file for row in compiled["models"] for file in row["built"]]
    assert sum(file["size_bytes"] for file in built) == compiled["size_bytes"]
    assert not any(path.stat().st_mode & 0o077 for path in folder.rglob("*"))  # this user alone reads it
    monkeypatch.setattr(devices, "_DEVICES", {})  # as in another process
    assert data(capsys, "run", path, *flags)["delegation"]["cache_hits"] >= 1
    (row,) = data(capsys, "cache", "--cache", folder)["folders"]
    assert (row["size_bytes"], row["limit_bytes"]) == (compiled["size_bytes"], 1 << 30)
    assert data(capsys, "cache", "--cache", folder, "--limit", "1K")["removed_bytes"] == compiled["size_bytes"]
    (row,) = data(capsys, "cache", "--cache", folder)["folders"]
    assert (row["size_bytes"], row["limit_bytes"]) == (0, 1024)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data(capsys, "compile", path, "--device", "basic")["folder"] == str(tmp_path / "litecl" / "litecl-cache")
    assert "removed 0 B" in text(capsys, "cache", "--cache", folder, "--clean")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_completion_has_every_command_and_its_flags(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    script = text(capsys, "completion", shell)
    assert all(info.name in script for info in iter_modules(commands.__path__))
    assert "require-device" in script
    if shell == "bash" and shutil.which("bash"):
        words = "cache --cl", "bench m.tflite --against l", f"run {__file__[:-1]}"
        asked = [
            f"COMP_WORDS=(litecl {word}) COMP_CWORD={len(word.split())}; _shtab_litecl; echo ${{COMPREPLY[@]}}"
            for word in words
        ]
        done = subprocess.run(["bash", "-c", "\n".join([script, *asked])], capture_output=True, text=True)
        assert done.stdout.splitlines() == ["--clean", "litert litert-reference", __file__]


@as_itself
def test_version_and_help_import_no_model(capsys: pytest.CaptureFixture[str]) -> None:
    """What takes a second to import, numpy and rich above all, is imported by the commands that need it."""
    script = "import sys\nfrom litecl.cli import main\ntry: main([sys.argv[1]])\nexcept SystemExit: pass\n"
    script += "print(sorted({'numpy', 'rich', 'litecl.interpreter'} & {*sys.modules}))"
    for flag in ("--version", "--help"):
        done = subprocess.run([sys.executable, "-c", script, flag], capture_output=True, text=True)
        assert done.stdout.endswith("[]\n"), done.stderr


@as_itself
def test_a_commands_help_imports_nothing_that_only_its_work_needs() -> None:
    script = "import sys\nfrom litecl.cli import main\nfor name in sys.argv[1:]:\n"
    script += "    try: main([name, '--help'])\n    except SystemExit: pass\n"
    script += "print(sorted({'litecl.converter.lower', 'litecl.random_graphs', 'pyopencl'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", script, *parser.helps()], capture_output=True, text=True)
    assert done.stdout.endswith("[]\n"), done


@as_itself
@pytest.mark.parametrize("words", [["run", "x.tflite", "--input", "x.npy"], ["inspect", "x.tflite"], ["devices"]])
def test_commands_import_nothing_for_others(words: list[str], path: Path, tmp_path: Path) -> None:
    """Models are converted, and random inputs drawn, by other commands."""
    path.rename(tmp_path / "x.tflite")
    np.save(tmp_path / "x.npy", randn(RNG, 1, 4))
    script = "import sys\nfrom litecl.cli import main\ncode = main(sys.argv[1:])\n"
    script += "print(code, sorted({'litecl.converter', 'numpy.random', 'tensorflow'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.endswith("0 []\n"), done


_FEWER = {"compare": 3, "sample": 2}  # uses of commands that have few flags


def _commands(example: str) -> list[list[str]]:
    """Return the words of each ``litecl`` in a line for a shell."""
    lexer = shlex.shlex(example, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    parts: list[list[str]] = [[]]
    for word in lexer:
        parts = [*parts, []] if set(word) <= set("|&>;") else [*parts[:-1], [*parts[-1], word]]
    return [words[1:] for words in parts if words[:1] == ["litecl"]]


@pytest.mark.parametrize("name", [info.name for info in iter_modules(commands.__path__)])
def test_help_ends_with_examples_that_parse(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo").mkdir()  # that of `litecl sample demo`
    with pytest.raises(SystemExit):
        parser.main([name, "--help"])
    _, _, told = capsys.readouterr().out.partition("\nexamples:\n")
    examples = [line.strip() for line in told.splitlines() if "litecl " in line]
    asked = [words for line in examples for words in _commands(line)]
    own = {tuple(words) for words in asked if words[0] == name}
    assert len(asked) >= 4 and len(own) >= _FEWER.get(name, 4)
    known = parser.parser({words[0]: import_module(f"litecl.cli.commands.{words[0]}") for words in asked})
    for words in asked:
        if words[1:] != ["--for", "help"]:  # lists machines, and exits
            assert known.parse_args(words).run


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full")
@pytest.mark.parametrize(
    ("wrapped", "asked", "told"),
    [
        ("{} | head -1", ["coverage", "--json"], ""),  # more than a pipe holds
        ("{} | true", ["completion", "bash"], ""),
        ("{} > /dev/full", ["completion", "bash"], "OSError: stdout: No space left on device"),
        ("{} >&-", ["completion", "bash"], ""),
    ],
)
def test_a_stdout_that_takes_no_more_ends_without_a_traceback(wrapped: str, asked: list[str], told: str) -> None:
    script = "from litecl.cli import main; raise SystemExit(main())"
    command = shlex.join([sys.executable, "-c", script, *asked])
    done = subprocess.run(["bash", "-c", wrapped.format(command)], capture_output=True, text=True)
    assert done.stderr.strip() == told


@pytest.mark.parametrize("module", ["litecl.cli.parser", "argparse", "litecl.cli.commands.run", "litecl.perf.feeds"])
def test_an_interrupt_while_a_module_is_imported(module: str) -> None:
    script = f"""
import sys
class Interrupts:
    def find_spec(self, name, *_):
        if name == {module!r}: raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupts())
from litecl.cli import main
sys.exit(main(["run", "model.tflite"]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "")


def test_compile_without_a_device_warns(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_opencl() -> None:
        raise pyopencl.LogicError("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")

    monkeypatch.setattr(pyopencl, "get_platforms", no_opencl)
    monkeypatch.setattr(compiler, "found", lambda directory=None: None)
    assert f"WARNING: {path}: no region runs on a device: no OpenCL platform" in text(capsys, "compile", path)


def test_rows_are_lines_at_40_columns(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every column that has a value in a row has a line with its name; no name is broken."""
    monkeypatch.setenv("COLUMNS", "40")
    wanted = {
        ("devices",): ("index", "name", "type", "units", "memory"),
        ("inspect", path, "--nodes", "--delegate"): ("node", "operator", "tensors and options", "where"),
        ("run", path): ("name", "type", "shape", "min", "max", "mean", "first"),
        ("bench", path, "--cpu", "--runs", 3): ("threads", "prepare ms", "median ms", "p5-p95 ms", "min ms", "runs"),
    }
    for command, columns in wanted.items():
        lines = text(capsys, *command).splitlines()
        assert all(len(line) <= 40 for line in lines if set(line) & set("─━│┃")), command
        for column in columns:
            found = [line for line in lines if re.match(rf"{column} +\S", line)]
            assert found and all(len(line) <= 40 for line in found), (command, column)


def test_a_table_that_fits_keeps_its_columns_at_40() -> None:
    made = tables.table("a", "b")
    made.add_row("1", "2")
    console = Console(width=40, record=True, file=io.StringIO())
    console.print(made)
    assert "─" in console.export_text()


def test_a_table_folds_names_and_no_numbers() -> None:
    made = tables.table("model", "prepare ms", "p5-p95 ms", "runs")
    made.add_row("a_rather_long_name_of_a_model.tflite", "1025.8", "1.789-27.710", "10")
    for width, is_table in ((48, True), (32, False)):
        console = Console(width=width, record=True, file=io.StringIO())
        console.print(made)
        shown = console.export_text()
        assert {"1025.8", "1.789-27.710", "10"} <= {*shown.split()}
        assert ("─" in shown) == is_table and all(len(line.rstrip()) <= width for line in shown.splitlines())


def test_a_pipe_gets_no_bars_even_if_colours_are_forced(path: Path, tmp_path: Path) -> None:
    script = "from litecl.cli import main; raise SystemExit(main())"
    for words in (["run", path], ["convert", path, "-o", tmp_path / "q.tflite", "--quantize", "float16"]):
        done = subprocess.run(
            [sys.executable, "-c", script, *map(str, words)],
            capture_output=True,
            text=True,
            env={**os.environ, "FORCE_COLOR": "1"},
        )
        assert done.returncode == 0, done.stderr
        assert len(done.stderr.splitlines()) <= 1, done.stderr


def test_tables_hold_at_80_columns(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for command in (["devices"], ["inspect", path, "--nodes", "--delegate"], ["run", path], ["bench", path, "--cpu"]):
        shown = text(capsys, *command).splitlines()
        assert all(len(line) <= 80 for line in shown if "─" in line or "━" in line)  # none in lists, in a table's place
        assert any("default for" in line or "median" in line or "reason" in line for line in shown)


def test_a_shorter_name_of_the_reference_kernels() -> None:
    """Of bench, report and bisect alike."""
    for name in ("bench", "report"):
        made = parser.parser({name: import_module(f"litecl.cli.commands.{name}")})
        output = [] if name == "bench" else ["-o", "report.html"]
        args = made.parse_args([name, "model.tflite", "--against", "litert-ref", *output])
        assert args.against == (["litert-reference"] if name == "bench" else "litert-reference")
    assert not Runner("litert-ref").is_device


@pytest.mark.parametrize(
    "command", ["inspect --nodes --delegate", "where", "run", "bench --cpu --runs 2", "report --no-start"]
)
def test_a_page_has_what_the_terminal_shows(
    command: str, path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *flags = command.split()
    page = tmp_path / "page.html"
    assert parser.main([name, str(path), *flags, "--page", str(page), "--json"]) == 0
    json.loads(capsys.readouterr().out)
    words = unescape(re.sub("<[^>]*>", " ", page.read_text(encoding="utf-8")))
    assert {*summarize(read(path)).operators} <= {*words.split()} or name in ("run", "bench")
    assert path.name in words


def test_a_page_leads_with_results_and_names_the_report(path: Path) -> None:
    with Interpreter(path, delegates=[CLDelegate()]) as interpreter:
        interpreter.allocate_tensors()
        view = [Text("WARNING: busy"), Text("x1.3"), interpreter.delegation_report()]
    content = page("litecl bench", "small", view)
    assert content.index("x1.3") < content.index("WARNING: busy")
    assert "<h2>where nodes run</h2>" in content


@pytest.mark.parametrize("command", ["chat", "completion", "generate", "serve", "trace"])
def test_what_prints_as_it_goes_has_no_page(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser.main([command, "--help"])
    assert "--page" not in capsys.readouterr().out
