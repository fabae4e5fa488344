"""Trials of a function, with Python's global interpreter lock (GIL) held or without it.

Whoever releases the lock lets other threads run meanwhile. But to get it back takes longer than a very short function:
threads that release it every time get less done than one thread alone.
"""

import math
import time
from collections.abc import Callable
from typing import Any

from litecl.delegate.plan.plan import Plan

_TRIALS = 8
_SHORT_FLOPS = 1e7  # more arithmetic than this takes longer on any core
_SHARED_FLOPS = 1e8  # more arithmetic than this is shared: to measure runs of one thread would take long
_TRIED_S = 1e-3  # what a call must have taken before it is tried with the lock held


def may_be_short(plan: Plan) -> bool:
    """Return whether a plan's kernels may end before another thread could take over, whatever their inputs.

    For loops and a user's own kernels that is never known.
    """
    return not plan.has_kernels_of_users and not plan.loops and plan.flops < _SHORT_FLOPS


def may_not_pay(plan: Plan) -> bool:
    """Return whether a plan's launches may be so short that to meet after each takes helpers longer than they save."""
    return not plan.has_kernels_of_users and not plan.loops and plan.flops < _SHARED_FLOPS


class Trials:
    """Calls a function that either holds the lock or releases it. The first calls find out which is better: they hold
    it, unless that would take long. short_s: from here on threads that release it get more done than one.

    short: whether to hold the lock; None while that is being tried.
    """

    def __init__(self, short_s: float) -> None:
        self.short: bool | None = None
        self._short_s, self._left = short_s, _TRIALS
        self._last_s = self._best_s = math.inf

    def call(self, free: Callable[..., Any], locked: Callable[..., Any], *arguments: Any) -> Any:
        """Return what the function returns, as one that releases the lock or as one that holds it."""
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
