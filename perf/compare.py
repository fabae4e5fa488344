"""Compares two benchmarks of a model: is the new one slower, or is it chance?"""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from litecl.delegate.naming import counted
from litecl.interpreter.errors import ModelError
from litecl.perf.environment import read_results

_CHANCE = 0.01  # significance level: a less probable difference isn't chance
_PARTS, _LEAST_IN_A_PART = 12, 4
_SAME = ("device", "machine", "numbers")

Bench = Mapping[str, Any]


@dataclass(frozen=True)
class Change:
    """A runtime's medians before and after. chance: the probability of such a difference by chance alone.

    verdict: "slower" or "faster" if the difference is significant and beyond the tolerance, else "same".
    """

    name: str
    old_ms: float
    new_ms: float
    chance: float
    verdict: str

    @property
    def ratio(self) -> float:
        """The new time over the old."""
        return self.new_ms / self.old_ms


def load(path: Path) -> Bench:
    """Read the output of ``litecl bench --json``. Raises ModelError for anything else."""
    bench = read_results(path, "litecl bench")
    if "subjects" not in bench:
        raise ModelError(f"{path}: expected a benchmark of one model on one device, got one of {len(bench['cases'])}")
    return bench


def changes(old: Bench, new: Bench, tolerance: float) -> list[Change]:
    """Return the change of each runtime measured in both. tolerance: relative to the old time."""
    before, after = (_by_name(bench, (old, new)) for bench in (old, new))
    return [
        compared(name, before[name]["times_ms"], subject["times_ms"], tolerance)
        for name, subject in after.items()
        if name in before
    ]


def unpaired(old: Bench, new: Bench) -> list[str]:
    """Describe the runtimes that only one benchmark measured."""
    before, after = (_by_name(bench, (old, new)) for bench in (old, new))
    return [
        f"{name}: measured in the {side} benchmark only"
        for side, own, other in (("old", before, after), ("new", after, before))
        for name in own
        if name not in other
    ]


def _by_name(bench: Bench, both: tuple[Bench, Bench]) -> dict[str, Mapping[str, Any]]:
    """Return runtimes by name, with threads if a benchmark has several numbers of them, and with streams."""
    several = {
        name
        for name in {subject["name"] for each in both for subject in each["subjects"]}
        if any(len({s.get("num_threads") for s in each["subjects"] if s["name"] == name}) > 1 for each in both)
    }
    return {_name(subject, several): subject for subject in bench["subjects"]}


def _name(subject: Mapping[str, Any], several: Collection[str]) -> str:
    streams = subject.get("streams", 1)
    threads = f", {counted(subject['num_threads'], 'thread')}" if subject["name"] in several else ""
    return f"{subject['name']}{threads}" + (f", {streams} streams" if streams > 1 else "")


def compared(name: str, old: Sequence[float], new: Sequence[float], tolerance: float) -> Change:
    """Compare a runtime's times."""
    old_ms, new_ms = float(np.median(old)), float(np.median(new))
    chance = rank_test(_medians(old), _medians(new))
    ratio = new_ms / old_ms
    beyond = "slower" if ratio > 1 + tolerance else "faster" if ratio < 1 / (1 + tolerance) else "same"
    return Change(name, old_ms, new_ms, chance, beyond if chance < _CHANCE else "same")


def _medians(times: Sequence[float]) -> Sequence[float]:
    """Return the medians of consecutive parts of a run, or the times themselves if there are few.

    Disturbances of the machine last for many invokes, so single times aren't independent.
    """
    if len(times) < _PARTS * _LEAST_IN_A_PART:
        return times
    return [float(np.median(part)) for part in np.array_split(np.asarray(times), _PARTS)]


def rank_test(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the two-sided probability of the Mann-Whitney U test, by its normal approximation with ties."""
    times = np.concatenate([a, b])
    _, inverse, counts = np.unique(times, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks = (last - (counts - 1) / 2)[inverse]
    n, m, total = len(a), len(b), len(times)
    u = float(ranks[:n].sum()) - n * (n + 1) / 2
    ties = float((counts**3 - counts).sum()) / (total * (total - 1))
    deviation = math.sqrt(n * m / 12 * (total + 1 - ties))
    if not deviation:
        return 1.0
    z = max(0.0, abs(u - n * m / 2) - 0.5) / deviation
    return math.erfc(z / math.sqrt(2))


def operators(old: Bench, new: Bench) -> list[tuple[str, float, float]]:
    """Return operators' device times before and after in ms, if both have profiles; largest difference first."""
    if not (old["profile"] and new["profile"]):
        return []
    before, after = _by_operator(old), _by_operator(new)
    rows = [(op, before.get(op, 0.0), after.get(op, 0.0)) for op in before | after]
    return sorted(rows, key=lambda row: -abs(row[2] - row[1]))


def _by_operator(bench: Bench) -> dict[str, float]:
    totals: dict[str, float] = defaultdict(float)
    for kernel in bench["profile"]["kernels"]:
        totals[kernel["op"]] += kernel["duration_ms"]
    return totals


def differences(old: Bench, new: Bench) -> list[str]:
    """Describe differences of model, device, machine and numbers, which may explain changed times."""
    files = [f"{bench.get('model', '')} (SHA-256 {bench['sha256'][:12]}...)" for bench in (old, new)]
    pairs = {"model": files} if old["sha256"] != new["sha256"] else {}
    pairs |= {key: [_words(bench.get(key)) for bench in (old, new)] for key in _SAME}
    return [f"{key}: {before} before, {now} now" for key, (before, now) in pairs.items() if before != now]


def _words(value: Any) -> str:
    """Format a value in a line, without keys that vary from run to run."""
    if not isinstance(value, Mapping):
        return str(value)
    return ", ".join(f"{key} {item}" for key, item in value.items() if key not in ("load", "variables"))
