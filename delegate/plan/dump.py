"""Writes a region's graph to a file after each pass, to find a faulty pass."""

from os import PathLike
from pathlib import Path

from litecl.delegate.plan.graph import RegionGraph
from litecl.delegate.plan.text import describe
from litecl.interpreter.whole_files import put_text


class Dump:
    """Writes ``NNN_subgraphN_name.txt`` after every pass that changed something, as the ``observe`` of ``plan``."""

    def __init__(self, directory: str | PathLike[str]) -> None:
        self._directory = Path(directory)
        self._directory.mkdir(parents=True, exist_ok=True)
        self._last = ""
        self._count = 0

    def __call__(self, name: str, graph: RegionGraph) -> None:
        text = describe(graph)
        if text != self._last:
            path = self._directory / f"{self._count:03}_subgraph{graph.subgraph}_{name}.txt"
            put_text(path, text)
            self._count += 1
        self._last = text


def dump_of(directory: str | PathLike[str] | None, region: int) -> Dump | None:
    """Return a ``Dump`` into a subfolder for one region; None if no folder is given."""
    return None if directory is None else Dump(Path(directory) / f"region{region}")
