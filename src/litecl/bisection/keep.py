"""The fewest nodes that must stay in float32 for a model to be right in halves."""

from collections.abc import Callable, Sequence
from typing import TypeVar

_Node = TypeVar("_Node")
_MOST_RUNS = 24  # of the model, to leave out what need not be kept

IsRight = Callable[[Sequence[_Node]], bool]


def fewest(needed: Sequence[_Node], others: Sequence[_Node], is_right: IsRight[_Node]) -> list[_Node]:
    """Return nodes with which a model is right: ``needed`` ones, and as few ``others`` as a bounded search finds.

    others: the likeliest first. is_right: whether a model is, with some nodes kept; it is with all of them.
    """
    count = 0
    while count < len(others) and not is_right([*needed, *others[:count]]):
        count = min(len(others), max(1, 2 * count))
    return [*needed, *_without_some(list(others[:count]), lambda kept: is_right([*needed, *kept]))]


def _without_some(kept: list[_Node], is_right: IsRight[_Node]) -> list[_Node]:
    """Leave out halves, quarters and so on, down to single nodes, as long as the model is right."""
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
