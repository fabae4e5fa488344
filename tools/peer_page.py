"""The figures of ``tools.peers`` by processor: a file of all runs, their table, and their picture."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from string import ascii_uppercase
from textwrap import wrap
from typing import Any

from tools.chart import Bar, chart

_HEAD = "| model | threads |"
_ABSENT = ("", "", "")
_WIDTH, _INDENT = 120, "  "  # of the list of processors


@dataclass(frozen=True)
class Result:
    """Medians and minima of turns in milliseconds per invoke, and what follows from them."""

    name: str
    threads: int
    litecl_ms: float
    litert_ms: float
    ratio: float
    low: float
    high: float
    best_ratio: float
    share_of_peak: float
    difference: float
    claimed: str
    goal: float
    aim: float


@dataclass(frozen=True)
class Run:
    """All rows of one processor. load: of the machine as the run began; date: its day."""

    processor: str
    peak: str
    peer: str
    load: float
    date: str
    results: tuple[Result, ...]

    @property
    def title(self) -> str:
        """Where, how and when it was measured."""
        return f"{self.processor}; {self.peak}; {self.peer}; load {self.load:.1f}; {self.date}"


def keep(file: Path, run: Run) -> list[Run]:
    """Put a run in the place of the same processor's earlier one, and return all runs of the file."""
    stored = json.loads(file.read_text()) if file.exists() else {"runs": []}
    runs = [_run(each) for each in stored["runs"] if each["processor"] != run.processor]
    runs = sorted([*runs, run], key=lambda each: each.processor)
    file.write_text(json.dumps({"runs": [asdict(each) for each in runs]}, indent=1) + "\n")
    return runs


def _run(stored: dict[str, Any]) -> Run:
    return Run(**stored | {"results": tuple(Result(**each) for each in stored["results"])})


def table(runs: Sequence[Run]) -> str:
    """Return all runs as one table in Markdown, with a column of ratios for each processor."""
    letters = ascii_uppercase[: len(runs)]
    head = _HEAD + "".join(f" {letter}: litecl ms | ratio | of minima |" for letter in letters)
    found = [{(r.name, r.threads): r for r in run.results} for run in runs]
    rows = dict.fromkeys(key for each in found for key in each)
    lines = [_line(key, [each.get(key) for each in found]) for key in rows]
    titles = [_item(f"- **{letter}**: {run.title}") for letter, run in zip(letters, runs, strict=True)]
    return "\n".join([*titles, "", head, "|---" * (2 + 3 * len(runs)) + "|", *lines]) + "\n"


def _item(text: str) -> str:
    return "\n".join(wrap(text, _WIDTH, subsequent_indent=_INDENT))


def _line(key: tuple[str, int], results: Sequence[Result | None]) -> str:
    name, threads = key
    cells = [
        (f"{r.litecl_ms:.3f}", f"{r.ratio:.2f} ({r.low:.2f}-{r.high:.2f})", f"{r.best_ratio:.2f}") if r else _ABSENT
        for r in results
    ]
    return f"| {name} | {threads} | " + " | ".join(cell for each in cells for cell in each) + " |"


def write(page: Path, runs: Sequence[Run]) -> None:
    """Write the table into a page, in place of the one there and of the processors above it.

    Raises ValueError if the page has none.
    """
    before, head, after = page.read_text().partition(_HEAD)
    above = before.rstrip("\n").split("\n")
    while above and above[-1].startswith(("- **", _INDENT)):
        above.pop()
    if not head:
        raise ValueError(f"{page} has no table that begins with {_HEAD!r}")
    _, blank, rest = after.partition("\n\n")
    page.write_text("\n".join(above).rstrip("\n") + "\n\n" + table(runs) + blank[1:] + rest)


def draw(picture: Path, runs: Sequence[Run]) -> None:
    """Draw all runs' ratios, those of one model below each other."""
    bars = [
        (r.name, r.threads, Bar(f"{r.name}, {r.threads}T, {letter}", r.ratio, r.low, r.high, r.goal))
        for letter, run in zip(ascii_uppercase, runs, strict=False)
        for r in run.results
    ]
    order = list(dict.fromkeys((name, threads) for name, threads, _ in bars))
    bars.sort(key=lambda each: order.index(each[:2]))
    subtitle = "; ".join(f"{letter}: {run.processor}" for letter, run in zip(ascii_uppercase, runs, strict=False))
    picture.write_text(chart("LiteRT's time / litecl's", subtitle, [bar for *_, bar in bars]))
