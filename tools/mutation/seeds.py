"""Models to start from: files, or litecl's own, the cases of every operator and random graphs."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from litecl.cases.tables import TABLES
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.file.reader import read
from litecl.interpreter.file.writer import write
from litecl.random_graphs.graphs import numbered

_MOST_BYTES = 1 << 16
_FAMILIES = 5
Seeds = list[tuple[str, bytes]]


def of_cases(each: int = 2) -> Seeds:
    """Return the first cases of every operator."""
    seen: Counter[str] = Counter()
    found = []
    for case in (case for table in TABLES for case in table.CASES):
        seen[case.op.name] += 1
        if seen[case.op.name] <= each:
            found.append((repr(case), write(case.model())))
    return found


def of_graphs(count: int, seed: int = 0) -> Seeds:
    """Return random graphs of all themes: loops, branches, variables, signatures."""
    found = [(f"graph {number}", write(numbered(seed, number, _FAMILIES).model)) for number in range(count)]
    return [(name, content) for name, content in found if len(content) <= _MOST_BYTES]


def of_files(paths: Sequence[Path], most: int | None = None) -> Seeds:
    """Return the models among files and folders, of at most 64 KiB, that can be read as they are; ``most`` evenly
    chosen.
    """
    files = [file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob("*.tflite")))]
    found = []
    for file in files:
        content = file.read_bytes()
        if len(content) <= _MOST_BYTES:
            try:
                read(content)
            except LiteclError:
                continue
            found.append((file.name, content))
    if most is None or most >= len(found):
        return found
    return [found[i * len(found) // most] for i in range(most)]
