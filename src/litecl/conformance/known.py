"""A known fault of a runtime, with the versions in which it was seen: it does not count as a failure.

It is recognised by the smallest model that a failure was reduced to, or by the name of the check.
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
    """A fault. runtimes: on which it was seen; first, last: the versions of their package in which it was; earlier:
    whether LiteRT's predecessor, the package tflite_runtime, has it too.

    checks: patterns of names. shows: of a smallest model, whether it shows the fault. most: the largest error, relative
    to the largest magnitude, that it explains. ends: whether the process may die of it.
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
        """Return whether a failure of a model is this fault."""
        named = any(Waiver(pattern, "").covers(row.check) for pattern in self.checks)
        possible = (row.relative or 0.0) <= self.most and (self.ends or row.status != CRASHED)
        return possible and (named or self.shows(model))

    def is_in(self, version: str, newest: str) -> bool:
        """Return whether a version has it: one in which it was seen, one between these, and one that is newer than all
        that were tried if it was in the newest of them.
        """
        found, first, last = numbers(version), numbers(self.first), numbers(self.last)
        return first <= found <= last or (found > last and self.last == newest)

    @property
    def told(self) -> str:
        """The fault in words, with the versions."""
        versions = self.first if self.first == self.last else f"{self.first} to {self.last}"
        return f"{self.reason} ({_TITLES.get(self.package, self.package)} {versions})"


def numbers(version: str) -> Numbers:
    """Return the numbers of a version, which compare as versions do."""
    return tuple(map(int, re.findall(r"\d+", version)[:3]))
