"""The house keeps its order: files short, imports in one direction, and every room says what lives there."""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("interpreter", "delegate", "converter", "perf", "kernels_cl")
MOST_LINES = 300


def sources(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


@cache
def modules() -> dict[str, Path]:
    """Every module of the package by its name."""
    names = {}
    for path in sources(*PARTS):
        parts = path.relative_to(ROOT).with_suffix("").parts
        names[".".join(("litecl", *parts)).removesuffix(".__init__")] = path
    return names


def imported(path: Path) -> Iterator[str]:
    """The modules of the package that a file imports, those for types and within functions included."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in modules() else node.module for name in names]
        else:
            continue
        yield from (name for name in names if name in modules())


@pytest.mark.parametrize("folder", [*PARTS, "tests", "docs", "examples"])
def test_no_file_is_long(folder: str) -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in sources(folder)}
    assert not {str(path.relative_to(ROOT)): count for path, count in lengths.items() if count > MOST_LINES}


def test_no_imports_in_a_circle() -> None:
    graph = {name: set(imported(path)) - {name} for name, path in modules().items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_every_room_says_what_lives_there() -> None:
    """In a sentence at least, which a package's own modules do not need to repeat."""
    rooms = [path for path in sources(*PARTS, "tests") if path.name == "__init__.py"]
    said = {path: ast.get_docstring(ast.parse(path.read_text())) or "" for path in rooms}
    assert len(said) > 30
    assert not [str(path.relative_to(ROOT)) for path, text in said.items() if not text.rstrip().endswith(".")]
    assert not [path for path in modules().values() if not (path.parent / "__init__.py").is_file()]
