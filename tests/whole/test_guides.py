"""The examples of guides and reference run, and print what the text around them says; so do the notebooks."""

import json
import re
import runpy
import shlex
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from litecl.cli import main
from litecl.interpreter.file.writer import write
from support import tokenizers
from support.causal_lm import CausalLM
from support.pattern_models import any_image, classifier

ROOT = Path(__file__).resolve().parents[2]
TENSORFLOW = pytest.mark.tensorflow
LLM = pytest.mark.skipif(find_spec("tokenizers") is None, reason="litecl[llm] is not installed")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with models."""
    models = {"model": classifier(), "any_image": any_image(), "language_model": CausalLM().model()}
    for name, made in models.items():
        (tmp_path / f"{name}.tflite").write_bytes(write(made))
    if find_spec("tokenizers") is not None:
        (tmp_path / "tokenizer.json").write_bytes(tokenizers.hugging_face())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(name: str, source: str, capsys: pytest.CaptureFixture[str]) -> str:
    path = Path(f"{Path(name).stem}_example.py")  # a file, as TensorFlow reads the source of functions
    path.write_text(source)
    runpy.run_path(str(path))
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("devices.md", r"^0 \S+(?s:.*) of \S+, fp32 16x32 by 4x4 family"),
        ("guides/custom_operators.md", r"\[0\. 2\. 4\. 6\.\]"),
        pytest.param(
            "guides/language_models.md", r"^20 max_tokens True\nTrue, (\d+) of \1 nodes(?s:.*)^True\nTrue", marks=LLM
        ),
        pytest.param("guides/recurrent.md", r"(\d+) of \1 nodes in 1 partition", marks=TENSORFLOW),
        pytest.param("guides/converting.md", r"WHILE(?s:.*)0\.25, 0\.25, 0\.25, 0\.25", marks=TENSORFLOW),
        pytest.param("guides/training.md", r"^\[\d\.\d+(?s:.*)\[\[0\.", marks=TENSORFLOW),
        pytest.param("control_flow.md", r"1\.4142(?s:.*)in the region's kernel.* 1$", marks=TENSORFLOW),
        *((f"api/{name}.md", said) for name, said in (("interpreter", r"\(1, 10\)"), ("delegate", "region|partition"))),
        *((f"api/{name}.md", said) for name, said in (("compiled_model", r"\[\["), ("predictor", r"\(20, 10\)"))),
        ("api/generator.md", r"max_tokens\nprompt: 100 tokens do not fit"),
        pytest.param("api/converter.md", r"FULLY_CONNECTED", marks=TENSORFLOW),
    ],
)
def test_the_examples_of_a_guide(document: str, said: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / document).read_text(), re.S)
    assert blocks
    printed = run(document, "\n".join(blocks), capsys)
    assert re.search(said, printed.strip(), re.M), printed


def test_getting_started_needs_only_the_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its commands and its code run from an empty folder, in order."""
    text = (ROOT / "docs" / "guides/getting_started.md").read_text()
    monkeypatch.chdir(tmp_path)
    commands = [shlex.split(line, comments=True) for line in re.findall(r"^    litecl (.+)$", text, re.M)]
    ours = [words for words in commands if "hf://OWNER/REPOSITORY/model.tflite" not in words]
    assert ["sample", "."] in ours and len(ours) >= 3
    for words in ours:
        assert main(words) == 0, words
    capsys.readouterr()
    printed = run("getting_started.md", "\n".join(re.findall(r"```python\n(.*?)```", text, re.S)), capsys)
    assert re.search(r"^probabilities \[\[(?s:.*)^4$", printed, re.M)
    digits = np.loadtxt("digits.txt", dtype=int)
    read = np.array(re.findall(r"\d+", printed[printed.rindex("[") :]), int)
    assert (read == digits).mean() > 0.95


def test_every_guide_is_tried() -> None:
    told = (ROOT / "tests/whole/test_guides.py").read_text()
    guides = [*(ROOT / "docs/guides").glob("*.md"), *(ROOT / "examples").glob("*.ipynb")]
    assert len(guides) > 5
    assert not [path.name for path in guides if path.name not in told]


@pytest.mark.parametrize("name", ["run_a_model.ipynb", pytest.param("convert_and_quantize.ipynb", marks=TENSORFLOW)])
def test_a_notebook(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its cells run one after another, and none of its outputs is kept in the file."""
    cells = json.loads((ROOT / "examples" / name).read_text())["cells"]
    assert not [cell for cell in cells if cell.get("outputs")]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    printed = run(name, "\n\n".join(code) + "\n\nprint(interpreter.delegation_report()._repr_html_())\n", capsys)
    assert "<table" in printed
    assert "off by" in printed or "largest difference" in printed
