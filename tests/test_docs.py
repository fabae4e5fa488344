"""The documents say what is so: lists, commands, files and examples that they name."""

import re
from pathlib import Path

import pytest

from litecl.delegate.ops import CL_OPS
from litecl.perf.cli import main

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/architecture.md")


def _text(document: str) -> str:
    return (ROOT / document).read_text()


def test_readme_lists_the_operators_that_have_device_kernels() -> None:
    found = re.search(r"<!-- device operators -->\n(.*?)\n<!-- end of device operators -->", _text("README.md"), re.S)
    assert found is not None
    listed = found[1].replace("\n", " ")
    expected = ", ".join(f"`{name}`" for name in sorted({op.name for op in CL_OPS}))
    assert listed == expected, f"write this there, in lines of 120: {expected}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_files_that_are_named_exist(document: str) -> None:
    text = _text(document)
    links = [target for target in re.findall(r"\]\(([^)]+)\)", text) if not target.startswith("http")]
    assert not [link for link in links if not (ROOT / document).parent.joinpath(link).exists()]
    folders = "interpreter|delegate|kernels_cl|converter|perf|tests|docs|src"
    named = re.findall(rf"`((?:{folders})/[\w./]*)`", text)
    assert not [name for name in named if not (ROOT / name).exists()]


def test_commands_that_are_named_exist(capsys: pytest.CaptureFixture[str]) -> None:
    for line in re.findall(r"^    litecl (.+)$", _text("README.md"), re.M):
        command, *rest = line.partition("#")[0].split()
        with pytest.raises(SystemExit) as caught:
            main([command, "--help"])
        assert caught.value.code == 0
        options = re.findall(r"--[a-z-]+", " ".join(rest))
        help_ = capsys.readouterr().out
        assert not [option for option in options if option not in help_]


def test_the_readme_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", _text("README.md"), re.S)
    exec(compile(example, "README.md", "exec"), {})
    assert re.search(r"^(\d+) of \1 nodes in", capsys.readouterr().out, re.M), "the device did not take the whole model"
