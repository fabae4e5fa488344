"""Writes the graph to a file after each pass, to find a faulty pass."""

from pathlib import Path

from litecl.converter.graph import Module
from litecl.converter.text import describe
from litecl.interpreter.whole_files import put_text


class Dump:
    """An ``observe`` for ``Converter.convert`` that writes ``NNN_name.txt`` after every pass that changed something."""

    def __init__(self, directory: str | Path) -> None:
        self._directory = Path(directory)
        self._directory.mkdir(parents=True, exist_ok=True)
        self._last = ""
        self._count = 0

    def __call__(self, name: str, module: Module) -> None:
        text = describe(module)
        if text != self._last:
            put_text(self._directory / f"{self._count:03}_{name}.txt", text)
            self._count += 1
        self._last = text
