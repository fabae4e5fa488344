"""The counts of a search for crashes, kept as a line of JSON for every round of mutants."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.table import Table


@dataclass(frozen=True)
class Round:
    """Mutants of one seed, from first up to end, every so manieth of them, on one runtime; and how they ended.

    failures: names of the mutants that crashed, hung, or were refused without a typed error, where none may.
    """

    runtime: str
    seed: int
    first: int
    end: int
    every: int
    counts: Mapping[str, int] = field(default_factory=dict)
    failures: Sequence[str] = ()
    seconds: float = 0.0

    @property
    def key(self) -> tuple[str, int, int, int, int]:
        """Return what tells a round from others."""
        return self.runtime, self.seed, self.first, self.end, self.every


class Record:
    """The rounds so far, in a file if there is one. A line that was not written whole counts as none."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.rounds: list[Round] = []
        if path is not None and path.exists():
            lines = path.read_text().splitlines(keepends=True)
            self.rounds = [Round(**json.loads(line)) for line in lines if line.endswith("\n")]

    def __contains__(self, wanted: Round) -> bool:
        return any(found.key == wanted.key for found in self.rounds)

    def add(self, done: Round) -> None:
        """Keep a round."""
        self.rounds.append(done)
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(asdict(done)) + "\n")


def table(rounds: Sequence[Round]) -> Table:
    """Return how often every outcome was seen, by runtimes."""
    names = list(dict.fromkeys(found.runtime for found in rounds))
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    for found in rounds:
        counts[found.runtime].update(found.counts)
    failures = sum(len(found.failures) for found in rounds)
    seconds = sum(found.seconds for found in rounds)
    shown = Table("outcome", *names, title=f"{failures} failures, {seconds:.0f} s")
    shown.add_row("mutants", *(str(counts[name].total()) for name in names))
    for outcome in sorted({key for count in counts.values() for key in count}):
        shown.add_row(outcome, *(str(counts[name][outcome]) for name in names))
    return shown
