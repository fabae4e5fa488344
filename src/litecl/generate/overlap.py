"""Texts that may go on: whether a text ends with the beginning of another."""


def overlap(text: str, mark: str) -> int:
    """Return how many of the last characters of a text may begin a mark."""
    return next((n for n in range(min(len(mark) - 1, len(text)), 0, -1) if text.endswith(mark[:n])), 0)
