"""Pages of the documentation as a reader follows them: code, commands, and packages to install."""

import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterator, Set
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_STEP = re.compile(
    r"^```python\n(?P<code>.*?)^```$|^    (?P<command>(?:litecl|pip|make|python|PYTHONPATH=) ?.*?)$", re.M | re.S
)
_EXTRAS = re.compile(r"'(?:litecl|\.)\[([\w,-]+)\]'")
_BARE = re.compile(r"pip install (?!litecl)([\w-]+)")
_MODULES = {"tensorflow": ("tensorflow", "keras"), "pillow": ("PIL",), "jax": ("jax", "jaxlib")}
_NEEDS = {
    r"\blitert\b": "ai-edge-litert",
    r"\.(jpg|png)\b": "pillow",
    r"\.wav\b": "numpy",
    r"--engine ray": "ray",
    r"--engine dask": "distributed",
    r"hf://": "huggingface_hub",
    r"convert (?!\S+\.(tflite|litertlm|pt2))": "tensorflow",
    r"convert \S+\.pt2": "torch",
    r"generate .*--prompt|\blitecl chat\b": "tokenizers",
    r"\blitecl serve\b": "fastapi",
}
"""The packages beyond litecl's own that a command needs, by a pattern of the command."""


@dataclass(frozen=True)
class Step:
    """One action of a reader: running code, or a command."""

    text: str
    is_code: bool


def text_of(name: str) -> str:
    """Return a page. Of a notebook, its texts and cells as a page would have them."""
    text = (ROOT / name).read_text()
    if not name.endswith(".ipynb"):
        return text
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(text)["cells"]]
    return "\n\n".join(f"```python\n{source}\n```" if kind == "code" else source for kind, source in cells)


def steps(text: str) -> Iterator[Step]:
    """Yield a page's steps in order; commands without their comments."""
    for match in _STEP.finditer(text):
        code, command = match["code"], match["command"]
        yield Step(re.sub(r" +# .*", "", command) if code is None else code, code is not None)


def installed(text: str) -> Set[str]:
    """Return the distributions that a page installs, with litecl's requirements."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = " ".join(text.split())  # commands within sentences may be in two lines
    extras = {name for names in _EXTRAS.findall(text) for name in names.split(",")}
    wanted = [*project["dependencies"], *(each for name in extras for each in project["optional-dependencies"][name])]
    return {_name(requirement) for requirement in wanted} | {*_BARE.findall(text)}


def needed(step: Step) -> Set[str]:
    """Return the distributions that a step needs beyond the standard library and litecl itself."""
    if not step.is_code:
        return {package for pattern, package in _NEEDS.items() if re.search(pattern, step.text)}
    imported = set[str]()
    for node in ast.walk(ast.parse(step.text)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(str(node.module).partition(".")[0])
    given_by = {module: package for package, modules in _MODULES.items() for module in modules}
    return {given_by.get(name, name.replace("_", "-")) for name in imported - sys.stdlib_module_names - {"litecl"}}


def _name(requirement: str) -> str:
    found = re.match(r"[\w-]+", requirement)
    assert found
    return "tensorflow" if found[0] == "tensorflow-cpu" else found[0]
