"""Texts and tokens that may go on: whether they end with the beginning of others."""

from typing import TypeVar

_Sequence = TypeVar("_Sequence", str, tuple[int, ...])


def overlap(sequence: _Sequence, mark: _Sequence) -> int:
    """Return how many of the last elements of a text, or of tokens, may begin a mark."""
    size = len(sequence)
    return next((n for n in range(min(len(mark) - 1, size), 0, -1) if sequence[size - n :] == mark[:n]), 0)
