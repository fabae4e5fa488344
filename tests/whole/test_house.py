"""Every room says what lives there. Which rooms may import which: `pyproject.toml`."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("interpreter", "delegate", "converter", "perf", "kernels_cl", "src/litecl")


def sources(*folders: str) -> list[Path]:
    """Every file, once: links from ``src/litecl`` to other parts are not followed."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def test_every_room_says_what_lives_there() -> None:
    """In a sentence at least, which a package's own modules do not need to repeat."""
    rooms = [path for path in sources(*PARTS, "tests") if path.name == "__init__.py"]
    said = {path: ast.get_docstring(ast.parse(path.read_text())) or "" for path in rooms}
    assert len(said) > 30
    assert not [str(path.relative_to(ROOT)) for path, text in said.items() if not text.rstrip().endswith(".")]
    assert not [path for path in sources(*PARTS) if not (path.parent / "__init__.py").is_file()]
