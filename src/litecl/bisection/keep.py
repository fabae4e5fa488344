"""Searches for few nodes that must stay in float32 for a model to be right in halves."""

from collections.abc import Callable, Sequence
from typing import TypeVar

_Node = TypeVar("_Node")
_MOST_RUNS = 24  # limit for model runs that try to drop nodes

IsRight = Callable[[Sequence[_Node]], bool]


def fewest(needed: Sequence[_Node], others: Sequence[_Node], is_right: IsRight[_Node]) -> list[_Node]:
    """Return nodes to keep for the model to be right: ``needed``, and as few ``others`` as a bounded search finds.

    others: likeliest first. is_right: whether the model is right with these nodes kept; assumed true for all of them.
    """
    count = 0
    while count < len(others) and not is_right([*needed, *others[:count]]):
        count = min(len(others), max(1, 2 * count))
    return [*needed, *_without_some(list(others[:count]), lambda kept: is_right([*needed, *kept]))]


def _without_some(kept: list[_Node], is_right: IsRight[_Node]) -> list[_Node]:
    """Drop halves, quarters and so on, down to single nodes, while the model stays right."""
    size, runs = len(kept), 0
    while size > 0 and kept:
        start = 0
        while start < len(kept):
            fewer = kept[:start] + kept[start + size :]
            runs += 1
            if runs > _MOST_RUNS:
                return kept
            if is_right(fewer):
                kept = fewer
            else:
                start += size
        size //= 2
    return kept
