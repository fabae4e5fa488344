"""Pages and notebooks work as a reader follows them: in a fresh folder, in order, with what they say to install.

Files that a page takes to be the reader's own (a photo, a Keras model) are made first; those of ``litecl sample`` only
where the page names that command.
"""

import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import litecl
from litecl.cli import main
from litecl.perf import peak
from support import devices
from support.own_files import FILES
from support.pages import ROOT, Step, installed, needed, steps, text_of

TENSORFLOW = pytest.mark.tensorflow
LONG = pytest.mark.long
LLM = pytest.mark.skipif(find_spec("tokenizers") is None, reason="litecl[llm] is not installed")

_ELSEWHERE = {
    "pip install": "tools/packages.sh installs what is built",
    "make ": "the Makefile of a checkout, which the continuous integration calls",
    "PYTHONPATH=tests python -m tools.": "a tool of a checkout, which takes minutes to hours",
    "litecl run hf://": "fetches from the network; tests/perf/test_hub.py",
    "litecl verify": "takes minutes; tests/perf/test_verify.py",
    "litecl coverage --results": "draws files of a checkout; tests/perf/test_board.py",
    "litecl convert model.pt2": "needs litert-torch; tests/converter/test_convert_torch.py",
    "litecl convert model.onnx": "needs onnx2tf; tests/converter/test_onnx.py",
    "litecl tune": "needs a GPU; tests/perf/test_tune.py",
    "litecl bench FOLDER": "tests/perf/test_bench_folder.py",
    "litecl run model.tflite --inputs rows.npy --rows --part 50 --batch 50": "Ray; tests/perf/test_many.py",
}
"""Commands of pages that are not run here, by how they begin, and why."""

_ENDS_WITH_1 = ("litecl diff",)  # where it finds a difference


@dataclass(frozen=True)
class Page:
    """A page, and what is in the folder before its reader begins.

    said: a pattern of what it prints. own: the reader's files. within: what surrounds it, such as to undo what it does.
    """

    name: str
    said: str = ""
    own: tuple[str, ...] = ()
    marks: tuple[Any, ...] = ()
    within: Callable[[], Any] = nullcontext


_PAGES = (
    Page("docs/devices.md", r"^0 \S+(?s:.*)^native$"),
    Page("docs/performance.md", marks=(LONG,)),
    Page("docs/guides/custom_operators.md", r"\[0\. 2\. 4\. 6\.\]"),
    Page(
        "docs/guides/language_models.md",
        r"^20 max_tokens True\nTrue, (\d+) of \1 nodes(?s:.*)^max_tokens, \d+ tokens in all$(?s:.*)^True\nTrue",
        marks=(LLM,),
    ),
    Page("docs/guides/getting_started.md", r"^probabilities \[\[(?s:.*)^4$"),
    Page("docs/guides/export.md", r"^0 \d$", marks=(pytest.mark.skipif(shutil.which("cc") is None, reason="no cc"),)),
    Page("docs/guides/recurrent.md", r"(\d+) of \1 nodes in 1 partition", marks=(TENSORFLOW,)),
    Page(
        "docs/guides/converting.md",
        r"WHILE(?s:.*)0\.25, 0\.25, 0\.25, 0\.25",
        ("model.keras", "saved_model_folder", "graph.pb", "functions.py"),
        (TENSORFLOW,),
    ),
    Page("docs/guides/training.md", r"^\[\d\.\d+(?s:.*)\[\[0\.", marks=(TENSORFLOW,)),
    Page("docs/control_flow.md", r"1\.4142(?s:.*)in the region's kernel.* 1$", marks=(TENSORFLOW,)),
    Page("docs/api/interpreter.md", r"\(1, 10\)"),
    Page("docs/api/delegate.md", r"4 nodes in 1 partition(?s:.*)no such device"),
    Page("docs/api/compiled_model.md", r"\[\["),
    Page("docs/api/predictor.md", r"\(20, 10\)"),
    Page("docs/api/generator.md", r"max_tokens\nprompt: 300 tokens do not fit"),
    Page("docs/api/converter.md", r"FULLY_CONNECTED", marks=(TENSORFLOW,)),
    Page("docs/native.md", r"one kernel \(from model\.pack, for "),
    Page("docs/scaling.md", r"^\(200, 10\)$(?s:.*)^200$", ("images",), (LONG,)),
    Page("docs/verify.md", r"\{'pass': \d+\}$", marks=(LONG,)),
    Page("docs/bisect.md", r"^right$", marks=(LONG,)),
    Page("docs/half_precision.md", r"^SUM: a result of 94,080 passes 65,504: (?s:.*)^inf$(?s:.*)^(30|29\.9|30\.0)"),
    Page(
        "docs/diff.md",
        r"^False \{'SIN': \(1, 2\)\}$",
        ("float.tflite", "int8.tflite", "before.tflite", "after.tflite"),
        (LONG,),
    ),
    Page(
        "docs/reports.md",
        r"^4 of 5 nodes in 1 partition(?s:.*)^0 4 SOFTMAX denied by deny_ops$(?s:.*)^All 5 nodes run on the device\.",
        marks=(LONG,),
    ),
    Page("docs/runtimes.md"),
    Page("docs/promises.md"),
    Page("docs/backends.md", r"^\d of 3 nodes in \d partitions on numpy"),
    Page(
        "docs/drop_in.md",
        "5 nodes on the device",
        within=lambda: litecl.install_as("ai_edge_litert"),  # which undoes the page's, too
    ),
    Page(
        "docs/quantization.md",
        "3 of 3 results in float became integers, from 32 samples",
        ("model.keras", "data.npz", "recipe.json"),
        (TENSORFLOW,),
    ),
    Page("README.md", r"^(\d+) of \1 nodes in", ("photo.jpg", "model.keras"), (TENSORFLOW, LONG)),
    Page("examples/run_a_model.ipynb", "largest difference"),
    Page("examples/convert_and_quantize.ipynb", "off by", marks=(TENSORFLOW,)),
)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``litecl sample`` writes."""
    folder = tmp_path_factory.mktemp("sample")
    assert main(["sample", str(folder)]) == 0
    return folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh folder, to work in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(peak, "_RUNS", 1)
    monkeypatch.setattr(sys, "stdin", io.StringIO("the cat sat on the mat"))
    devices.tested()  # which PoCL may need help to compile for
    return tmp_path


@pytest.mark.parametrize("page", [pytest.param(page, id=Path(page.name).name, marks=page.marks) for page in _PAGES])
def test_a_page(page: Page, sample: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = text_of(page.name)
    if "`litecl sample .`" in " ".join(text.split()):
        shutil.copytree(sample, folder, dirs_exist_ok=True)
    for name in page.own:
        FILES[name](folder / name)
    capsys.readouterr()
    names: dict[str, Any] = {"__name__": "page"}
    with page.within(), ExitStack() as ends:
        names["ends"] = ends
        printed = "".join(_follow(step, number, names, capsys) for number, step in enumerate(steps(text)))
    assert re.search(page.said, printed, re.M), printed
    _AFTER.get(page.name, lambda *_: None)(printed, folder, names)


def _follow(step: Step, number: int, names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> str:
    """Do one step. Return what code prints, nothing of a command."""
    if _missing(step) or (_SERVED in step.text and "server" not in names):
        return ""
    if step.is_code:
        file = Path(f"step_{number}.py").absolute()  # TensorFlow reads the source of functions
        source = step.text.replace(_SERVED, names["server"].address) if _SERVED in step.text else step.text
        file.write_text(source)
        exec(compile(source, str(file), "exec"), names)
        return capsys.readouterr().out
    if step.text.startswith("litecl serve") and not _elsewhere(step.text):
        names["server"] = _Server(shlex.split(step.text))
        names["ends"].callback(names["server"].stop)
    elif not _elsewhere(step.text):
        words = shlex.split(step.text.replace("MODEL", "model.tflite").replace("SRC", "model.keras"))
        assert main(words[1:]) in ((0, 1) if step.text.startswith(_ENDS_WITH_1) else (0,)), step.text
        capsys.readouterr()
    return ""


def _missing(step: Step) -> bool:
    """Return whether a step needs Ray or torch, which the tests do without, or a server where packages are missing."""
    optional = {"ray", "fastapi", "torch", "llguidance", "openai"}
    return any(find_spec(package) is None for package in needed(step) & optional)


_SERVED = "http://127.0.0.1:8000"  # in pages; in tests at another port


class _Server:
    """A server that a reader starts in another terminal."""

    def __init__(self, words: list[str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", *words, "--port", "0"], stderr=subprocess.PIPE, text=True
        )
        assert self.process.stderr is not None
        found = (re.search(r"http://127\.0\.0\.1:\d+", line) for line in self.process.stderr)
        self.address = next(each[0] for each in found if each)

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()


def _elsewhere(command: str) -> list[str]:
    return [start for start in _ELSEWHERE if command.startswith(start)]


def _digits_are_read(printed: str, folder: Path, names: dict[str, Any]) -> None:
    digits = np.loadtxt("digits.txt", dtype=int)
    read = np.array(re.findall(r"\d+", printed[printed.rindex("[") :]), int)
    assert (read == digits).mean() > 0.95


def _probabilities_are_those_told(printed: str, folder: Path, names: dict[str, Any]) -> None:
    told, found = (
        np.array(row.split(), float)
        for row in re.findall(r"^ *\[\[(.*)\]\]$", text_of("README.md") + printed, re.M)[:2]
    )
    assert told.argmax() == 4 and np.abs(told - found).max() < 0.1


def _report_and_trace_are_written(printed: str, folder: Path, names: dict[str, Any]) -> None:
    assert json.loads((folder / "trace.json").read_text())["traceEvents"]
    assert (folder / "report.html").stat().st_size > 10_000


def _numpy_runs_what_it_knows(printed: str, folder: Path, names: dict[str, Any]) -> None:
    """Where the back end of the example knows a kernel regions run on it, else on the CPU."""
    assert re.findall(r"^(\d) of 3 nodes in (\d) partitions on numpy", printed, re.M) == [("0", "0"), ("2", "2")]
    assert printed.startswith("WARNING: 1 region fell back to the CPU: not known in numpy: unary.cl: unary")
    x = np.arange(10.0).reshape(2, 5)
    shares = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    wanted = np.exp(shares) - np.log(np.exp(np.exp(shares)).sum(-1, keepdims=True))
    interpreter = names["interpreter"]
    got = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_allclose(got, wanted, rtol=1e-5)


def _interpreters_are_shown(printed: str, folder: Path, names: dict[str, Any]) -> None:
    assert "<table" in names["interpreter"].delegation_report()._repr_html_()


def _the_model_writes_json(printed: str, folder: Path, names: dict[str, Any]) -> None:
    assert "client" in names or find_spec("openai") is None or find_spec("fastapi") is None
    if find_spec("llguidance") is not None:
        assert re.search(r'^\{"cat":(true|false)\}$', printed, re.M), printed


_AFTER: Mapping[str, Callable[[str, Path, dict[str, Any]], None]] = {
    "docs/guides/language_models.md": _the_model_writes_json,
    "README.md": _probabilities_are_those_told,
    "docs/backends.md": _numpy_runs_what_it_knows,
    "docs/guides/getting_started.md": _digits_are_read,
    "docs/reports.md": _report_and_trace_are_written,
    "examples/run_a_model.ipynb": _interpreters_are_shown,
    "examples/convert_and_quantize.ipynb": _interpreters_are_shown,
}


def _documents() -> Iterator[str]:
    folders = (ROOT.glob("*.md"), (ROOT / "docs").rglob("*.md"), (ROOT / "examples").glob("*.ipynb"))
    for path in sorted(path for each in folders for path in each):
        yield path.relative_to(ROOT).as_posix()


_SYNOPSIS = {"docs/command.md"}  # of flags, which test_docs.py compares with the command
_COMMANDS_ALONE = {  # tools that take long, or draw files of a checkout; Intel's runtime; a published release
    *("SECURITY.md", "docs/faults.md", "docs/measurements/devices.md", "docs/measurements/speed.md", "docs/install.md"),
}


def test_every_page_is_followed() -> None:
    with_steps = {name for name in _documents() if [*steps(text_of(name))]}
    assert with_steps - _SYNOPSIS - _COMMANDS_ALONE == {page.name for page in _PAGES}


@pytest.mark.parametrize("name", [name for name in _documents() if [*steps(text_of(name))]])
def test_a_page_says_what_to_install(name: str) -> None:
    """Packages of its imports and its commands. A name that ``install_as`` answers for is no package."""
    text = text_of(name)
    has = installed(text) | {each.replace("_", "-") for each in re.findall(r'install_as\("(\w+)"\)', text)}
    assert not [(step.text, missing) for step in steps(text) if (missing := needed(step) - has)]


def test_what_is_not_run_here_is_in_a_page() -> None:
    commands = [step.text for name in _documents() for step in steps(text_of(name)) if not step.is_code]
    assert not [start for start in _ELSEWHERE if not any(command.startswith(start) for command in commands)]


@pytest.mark.parametrize("name", ["run_a_model.ipynb", "convert_and_quantize.ipynb"])
def test_a_notebook_keeps_no_outputs(name: str) -> None:
    cells = json.loads((ROOT / "examples" / name).read_text())["cells"]
    assert not [cell for cell in cells if cell.get("outputs")]
