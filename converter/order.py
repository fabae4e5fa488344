"""Sorts nodes topologically."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

_T = TypeVar("_T", bound=Hashable)


def in_order(items: Iterable[_T], needs: Callable[[_T], Sequence[_T]]) -> list[_T]:
    """Return items and all their dependencies, dependencies first, else in the order given.

    Expects no cycles.
    """
    done: dict[_T, None] = {}
    for root in items:
        stack = [root]
        while stack:
            missing = [] if stack[-1] in done else [item for item in needs(stack[-1]) if item not in done]
            if missing:
                stack += reversed(missing)
            else:
                done.setdefault(stack.pop())
    return list(done)
