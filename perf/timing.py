"""Times functions side by side, in turns, in one process."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# XNNPACK's and OpenBLAS's threads spin for a while after a call and slow down the next measurement.
PAUSE_S = 0.02
# A system may wake a thread on the processor of the one that wakes it, and needs some milliseconds to part them. (An
# idle processor of KVM's looks taken.) Two threads then take as long as one.
SETTLE_S = 0.01
_KEPT = 2000

Tick = Callable[[], None]


def no_tick() -> None:
    """Ignore progress."""


@dataclass(frozen=True)
class Stats:
    """Times of repeated runs in milliseconds, in measured order."""

    times_ms: tuple[float, ...]

    @property
    def min_ms(self) -> float:
        """The shortest time: without disturbances."""
        return min(self.times_ms)

    @property
    def median_ms(self) -> float:
        """The median."""
        return self.percentile_ms(50)

    @property
    def p10_ms(self) -> float:
        """The 10th percentile."""
        return self.percentile_ms(10)

    @property
    def p90_ms(self) -> float:
        """The 90th percentile."""
        return self.percentile_ms(90)

    def percentile_ms(self, percent: float) -> float:
        """Return a percentile of the times, interpolated."""
        return float(np.percentile(self.times_ms, percent))

    def to_dict(self) -> dict[str, Any]:
        """Return the figures by name. Of many times only every n-th is included, at most 2000."""
        return {
            "runs": len(self.times_ms),
            "median_ms": self.median_ms,
            "min_ms": self.min_ms,
            "p10_ms": self.p10_ms,
            "p90_ms": self.p90_ms,
            **{f"p{percent}_ms": self.percentile_ms(percent) for percent in (1, 5, 25, 75, 95, 99)},
            "mean_ms": sum(self.times_ms) / len(self.times_ms),
            "times_ms": list(self.times_ms[:: -(-len(self.times_ms) // _KEPT)]),
        }


def elapsed_ms(run: Callable[[], object]) -> float:
    """Return the milliseconds that one call takes."""
    start_s = time.perf_counter()
    run()
    return (time.perf_counter() - start_s) * 1e3


def in_turns(
    runs: Sequence[Callable[[], object]],
    rounds: int,
    *,
    least_s: float = 0.0,
    pause_s: float | None = None,
    tick: Tick = no_tick,
) -> list[Stats]:
    """Time each of ``runs`` once per round, so that disturbances of the machine affect all alike.

    least_s: continue beyond ``rounds`` until this many seconds have passed. pause_s: rest before every timed call; None
    rests for ``PAUSE_S`` if there are several runs. After a rest come untimed calls for ``SETTLE_S``, because the other
    runs have filled the caches, and threads that slept are not yet on processors of their own.
    """
    end_s = time.perf_counter() + least_s
    rest_s = (PAUSE_S if len(runs) > 1 else 0.0) if pause_s is None else pause_s
    times: list[list[float]] = [[] for _ in runs]
    while len(times[0]) < rounds or time.perf_counter() < end_s:
        for run, taken in zip(runs, times, strict=True):
            if rest_s:
                time.sleep(rest_s)
                settled_s = time.perf_counter() + SETTLE_S
                run()
                while time.perf_counter() < settled_s:
                    run()
            taken.append(elapsed_ms(run))
        tick()
    return [Stats(tuple(taken)) for taken in times]
