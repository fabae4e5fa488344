"""Tries a function with Python's global interpreter lock (GIL) held, and with it released.

Releasing the lock lets other threads run. But taking it back takes longer than a very short function: threads that
release it every time get less done than one thread alone.
"""

import math
import time
from collections.abc import Callable
from typing import Any

from litecl.delegate.plan.plan import Plan

_TRIALS = 8
_SHORT_FLOPS = 1e7  # more operations are never short, on any core
_SHARED_FLOPS = 1e8  # more operations always use helpers: timing one thread would take long
_TRIED_S = 1e-3  # hold the lock only if the last call was shorter


def may_be_short(plan: Plan) -> bool:
    """Return whether a plan's kernels may end before another thread could take over, whatever their inputs.

    Never for loops and users' kernels, whose duration is unknown.
    """
    return not plan.has_kernels_of_users and not plan.loops and plan.flops < _SHORT_FLOPS


def may_not_pay(plan: Plan) -> bool:
    """Return whether launches may be so short that synchronizing helpers after each costs more than they save."""
    return not plan.has_kernels_of_users and not plan.loops and plan.flops < _SHARED_FLOPS


class Trials:
    """Calls a function with the lock held or released. The first calls decide which is better: they hold it, unless
    that would take long. short_s: longer functions get more done by releasing it.

    short: whether to hold the lock; None during the trials.
    """

    def __init__(self, short_s: float) -> None:
        self.short: bool | None = None
        self._short_s, self._left = short_s, _TRIALS
        self._last_s = self._best_s = math.inf

    def call(self, free: Callable[..., Any], locked: Callable[..., Any], *arguments: Any) -> Any:
        """Call ``locked`` or ``free``, which hold or release the lock, and return the result."""
        holds = self._last_s < _TRIED_S
        start_s = time.perf_counter()
        result = (locked if holds else free)(*arguments)
        self._last_s = time.perf_counter() - start_s
        if holds:
            self._best_s = min(self._best_s, self._last_s)
        self._left -= 1
        if not self._left:
            self.short = self._best_s < self._short_s
        return result
