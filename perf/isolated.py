"""Calls one after another in a process of their own, whose death costs one of them."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

T = TypeVar("T")


def isolated(calls: Iterable[Callable[[], T]]) -> Iterator[T | None]:
    """Yield the result of each call; None where the process died, whose place another takes. Calls are pickled."""
    pool = _pool()
    try:
        for call in calls:
            try:
                yield pool.submit(call).result()
            except BrokenExecutor:
                pool.shutdown()
                pool = _pool()
                yield None
    finally:
        pool.shutdown()


def _pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, get_context("spawn"))  # a fork would copy locks that other threads hold
