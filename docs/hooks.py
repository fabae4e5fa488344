"""Brings the documents at the root of the repository into the site, with links kept, and draws results of devices."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from litecl.report.board import board
from litecl.verify.record import load

_ROOT = Path(__file__).resolve().parents[1]
_PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
_BOARD = "devices/board.html"
_BOOSTS = {"guides/": 3.0, "api/": 0.7, "operators.md": 0.5, "changelog.md": 0.3, "contributing.md": 0.3}
_LINK = re.compile(r"(?<=\]\()(?!https?:|#|mailto:)([^)#\s]+)")


def on_files(files: Files, config: Any) -> Files:
    """Add the documents of the root as pages, and a page of operators and devices."""
    for name, page in _PAGES.items():
        files.append(File.generated(config, page, content=(_ROOT / name).read_text()))
    results = [load(path) for path in sorted((_ROOT / "docs" / "devices").glob("*.json"))]
    files.append(File.generated(config, _BOARD, content=board(results)))
    return files


def _boost(uri: str) -> float:
    """Return the weight of a page in the search: guides come first, lists last."""
    return next((boost for start, boost in _BOOSTS.items() if uri.startswith(start)), 1.0)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Point every relative link to the page that its file is in the site, or to the file in the repository."""
    page.meta["search"] = {"boost": _boost(page.file.src_uri)}
    if page.file.src_uri == "measurements/devices.md":
        head, line, rest = markdown.partition("\n| file |")
        markdown = f"{head}\n**[Operators and devices](../{_BOARD})**, on a page of its own.\n{line}{rest}"
    origin = next((name for name, at in _PAGES.items() if at == page.file.src_uri), f"docs/{page.file.src_uri}")

    def target(found: re.Match[str]) -> str:
        path = (_ROOT / origin).parent.joinpath(found[1]).resolve()
        if not path.is_relative_to(_ROOT) or not path.exists():
            return found[1]  # made for the site, or a dead link, which mkdocs reports
        inside = path.relative_to(_ROOT).as_posix()
        uri = _PAGES.get(inside) or (inside.removeprefix("docs/") if inside.startswith("docs/") else None)
        if uri is None:
            return f"{config.repo_url}/blob/main/{inside}"
        return "../" * page.file.src_uri.count("/") + uri

    return _LINK.sub(target, markdown)
