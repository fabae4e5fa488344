"""Places at which something fails, and the command that tries all of them (fault_injection.py, native_faults.py)."""

import argparse
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from litecl.interpreter.graph import Array
from tools.fault_models import Subject, subjects

HOW = ("fallback", "strict", "interrupt")


@dataclass(frozen=True)
class Place:
    """One call of one subject in one mode, and how it fails (one of ``HOW``).

    kept: what the report says where nothing fails, and may say without a warning where nothing is lost.
    """

    subject: Subject
    mode: str
    number: int
    name: str
    how: str
    kept: Any = field(repr=False)

    def __str__(self) -> str:
        return f"{self.subject.name}, {self.mode}, {self.how}, call {self.number} ({self.name})"


class Wrong(Exception):
    """What is wrong at a place."""


def compare(got: Sequence[Array], wanted: Sequence[Array], when: str) -> None:
    """Raise Wrong where results are not those that are wanted."""
    for a, b in zip(got, wanted, strict=True):
        close = np.allclose(a, b, rtol=1e-4, atol=1e-5) if b.dtype.kind == "f" else np.array_equal(a, b)
        if not close or a.dtype != b.dtype:
            raise Wrong(f"{when}: differs by {np.abs(np.subtract(a, b, dtype=np.float64)).max()}")


def run(
    description: str | None,
    modes: Collection[str],
    places: Callable[[Subject, str, str], Sequence[Place]],
    judge: Callable[[Place], str],
    arguments: Sequence[str] | None = None,
) -> int:
    """Judge the places of all subjects in all modes and print those that are not right; return 1 if any is not.

    judge: says what is wrong at a place; nothing where all is right.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--models", nargs="*", help="only those whose names hold one of these")
    parser.add_argument("--modes", nargs="*", default=list(modes), choices=modes)
    parser.add_argument("--how", nargs="*", default=HOW, choices=HOW)
    parser.add_argument("--each", type=int, default=1, metavar="N", help="only every Nth place")
    parser.add_argument("--first", type=int, default=0, metavar="K", help="from the Kth place on: others than before")
    chosen = parser.parse_args(arguments)
    logging.getLogger("litecl").setLevel(logging.ERROR)
    named = [s for s in subjects() if not chosen.models or any(part in s.name for part in chosen.models)]
    right = total = 0
    for subject, mode, how in ((s, mode, how) for s in named for mode in chosen.modes for how in chosen.how):
        found = places(subject, mode, how)[chosen.first :: chosen.each]
        wrong = [(place, text) for place in found if (text := judge(place))]
        total, right = total + len(found), right + len(found) - len(wrong)
        print(f"{subject.name}, {mode}, {how}: {len(found)} places, {len(wrong)} wrong", flush=True)
        for place, text in wrong:
            print(f"  {place}: {text}", flush=True)
    print(f"{total} places, {right} right")
    return int(right != total)
