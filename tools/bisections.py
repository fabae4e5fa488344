"""A table of the operators that a runtime computes wrong, in many models: those of files and folders.

    PYTHONPATH=tests python -m tools.bisections MODELS [--suspect litert] [--reference litert-reference] [--json FILE]

Every model runs once on random inputs, in a process that may die. A row is an operator with the types of its first two
inputs: in how many models it is the first wrong one, the largest error, and a model that shows it.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

import litecl
from litecl.bisection.search import Fault
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.graph import ABSENT
from litecl.perf.isolated import isolated

DIED, REFUSED, FAULT = "died", "refused", "fault"


@dataclass(frozen=True)
class Found:
    """What came of a model. wrong: the operator with its types; error: relative, or steps of integers."""

    file: str
    verdict: str
    wrong: str = ""
    error: float = 0.0
    said: str = ""


def bisected(file: Path, suspect: str, reference: str) -> Found:
    """Bisect a model."""
    try:
        found = litecl.bisect(file, suspect, reference)
    except LiteclError as error:
        return Found(file.name, REFUSED, said=str(error).partition("\n")[0])
    if found.fault is None:
        return Found(file.name, found.verdict)
    return Found(file.name, found.verdict, _named(found.fault), found.fault.error.size, found.fault.error.text)


def _named(fault: Fault) -> str:
    """Return the operators, with the types of the first one's first two inputs."""
    graph = fault.model.subgraphs[0]
    given = [graph.tensors[t].type.name for t in graph.nodes[0].inputs[:2] if t != ABSENT]
    return f"{', '.join(fault.ops)} ({', '.join(given)})"


def search(files: Sequence[Path], suspect: str, reference: str) -> Iterator[Found]:
    """Bisect models one after another."""
    found = isolated(partial(bisected, file, suspect, reference) for file in files)
    for file, each in zip(files, found, strict=True):
        yield Found(file.name, DIED) if each is None else each


def table(found: Sequence[Found]) -> Table:
    """Return the operators that are wrong, the most frequent first."""
    verdicts = Counter(each.verdict for each in found)
    title = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    shown = Table("operator (types)", "models", "largest error", "in", title=f"{len(found)} models: {title}")
    for name, count in Counter(each.wrong for each in found if each.verdict == FAULT).most_common():
        worst = max((each for each in found if each.wrong == name), key=lambda each: each.error)
        shown.add_row(name, str(count), f"{worst.error:.3g}", worst.file)
    for each in found:
        if each.verdict in (DIED, REFUSED):
            shown.add_row(each.verdict, "1", each.said[:60], each.file)
    return shown


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if some model is not right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path, metavar="MODELS", help="files, or folders of them")
    parser.add_argument("--suspect", default="litert", metavar="RUNTIME", help="default: litert")
    parser.add_argument("--reference", default="litert-reference", metavar="RUNTIME", help="default: litert-reference")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there too")
    args = parser.parse_args(arguments)
    files = [file for path in args.paths for file in ([path] if path.is_file() else sorted(path.rglob("*.tflite")))]
    found = []
    for each in search(files, args.suspect, args.reference):
        found.append(each)
        if args.json is not None:
            args.json.write_text(json.dumps([*map(asdict, found)], indent=1))
    Console(width=150).print(table(found))
    return int(any(each.verdict != "right" for each in found))


if __name__ == "__main__":
    sys.exit(main())
