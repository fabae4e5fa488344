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
_WIDTH, _INDENT = 120, "  "  # of the list of processors


@dataclass(frozen=True)
class Result:
    """Medians and minima of turns in milliseconds per invoke, and what follows from them.

    fastest: the fastest runtime other than litecl whose outputs agree, and the ratio of medians; empty and None if only
    LiteRT was measured.
    """

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
    fastest: str = ""
    fastest_ratio: float | None = None


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
    columns = [("litecl ms", "ratio", "of minima", *(("fastest",) if _has_fastest(run) else ())) for run in runs]
    head = _HEAD + "".join(f" {letter}: {' | '.join(each)} |" for letter, each in zip(letters, columns, strict=True))
    found = [{(r.name, r.threads): r for r in run.results} for run in runs]
    rows = dict.fromkeys(key for each in found for key in each)
    widths = [len(each) for each in columns]
    lines = [_line(key, [each.get(key) for each in found], widths) for key in rows]
    titles = [_item(f"- **{letter}**: {run.title}") for letter, run in zip(letters, runs, strict=True)]
    return "\n".join([*titles, "", head, "|---" * (2 + sum(widths)) + "|", *lines]) + "\n"


def _item(text: str) -> str:
    return "\n".join(wrap(text, _WIDTH, subsequent_indent=_INDENT))


def _has_fastest(run: Run) -> bool:
    return any(result.fastest for result in run.results)


def _line(key: tuple[str, int], results: Sequence[Result | None], widths: Sequence[int]) -> str:
    cells = [str(part) for part in key]
    for r, width in zip(results, widths, strict=True):
        shown = [f"{r.litecl_ms:.3f}", _ratio(r), f"{r.best_ratio:.2f}", fastest_of(r)] if r else [""] * width
        cells += shown[:width]
    return f"| {' | '.join(cells)} |"


def _ratio(result: Result) -> str:
    return f"{result.ratio:.2f} ({result.low:.2f}-{result.high:.2f})"


def fastest_of(result: Result) -> str:
    """Return the fastest other runtime with its ratio; empty if only LiteRT was measured."""
    return "" if result.fastest_ratio is None else f"{result.fastest} {result.fastest_ratio:.2f}"


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
