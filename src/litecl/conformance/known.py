"""A runtime's known fault, with its versions; it doesn't count as a failure.

Recognized by the minimized model of a failure, or by the check's name.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from litecl.interpreter.graph import Model
from litecl.verify.record import CRASHED, Row
from litecl.verify.waivers import Waiver

Numbers = tuple[int, ...]
LITERT_PACKAGE = "ai_edge_litert"
_TITLES = {LITERT_PACKAGE: "LiteRT"}


@dataclass(frozen=True)
class Known:
    """A fault. runtimes: that have it; first, last: package versions in which it was seen; earlier: whether the package
    tflite_runtime, LiteRT's predecessor, has it too.

    checks: patterns of check names. shows: whether a minimized model shows the fault. most: the largest error that it
    explains, relative to the largest magnitude. ends: whether it may kill the process.
    """

    reason: str
    runtimes: tuple[str, ...]
    first: str
    last: str
    earlier: bool = False
    checks: tuple[str, ...] = ()
    shows: Callable[[Model], bool] = lambda model: False
    most: float = math.inf
    ends: bool = False
    package: str = LITERT_PACKAGE

    def explains(self, row: Row, model: Model) -> bool:
        """Return whether this fault explains a failure."""
        named = any(Waiver(pattern, "").covers(row.check) for pattern in self.checks)
        possible = (row.relative or 0.0) <= self.most and (self.ends or row.status != CRASHED)
        return possible and (named or self.shows(model))

    def is_in(self, version: str, newest: str) -> bool:
        """Return whether a version has the fault: from first to last, or later if the newest tried version has it."""
        ours, first, last = numbers(version), numbers(self.first), numbers(self.last)
        return first <= ours <= last or (ours > last and self.last == newest)

    @property
    def text(self) -> str:
        """The fault's description, with versions."""
        versions = self.first if self.first == self.last else f"{self.first} to {self.last}"
        return f"{self.reason} ({_TITLES.get(self.package, self.package)} {versions})"


def numbers(version: str) -> Numbers:
    """Return a version's first three numbers, for comparison."""
    return tuple(map(int, re.findall(r"\d+", version)[:3]))
