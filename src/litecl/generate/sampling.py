"""Chooses the next token from logits."""

import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array


@dataclass(frozen=True)
class Sampling:
    """How to turn logits into a distribution over tokens. Applied in this order:

    repetition_penalty: divides positive logits of earlier tokens, and multiplies negative ones
        (https://arxiv.org/abs/1909.05858).
    temperature: divides the logits; 0 takes the most likely token.
    top_k: keeps this many of the most likely tokens; None: all. Ties go to lower token numbers.
    top_p: keeps the fewest of these, most likely first, whose probabilities add up to it
        (https://arxiv.org/abs/1904.09751).
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float = 1.0
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        """Raise ModelError for values out of range."""
        _require("temperature", self.temperature, 0 <= self.temperature < math.inf, "0 or more")
        _require("top_k", self.top_k, self.top_k is None or self.top_k >= 1, "at least 1, or None")
        _require("top_p", self.top_p, 0 < self.top_p <= 1, "more than 0, and at most 1")
        _require("repetition_penalty", self.repetition_penalty, 0 < self.repetition_penalty < math.inf, "more than 0")


def log_softmax(logits: Array) -> Array:
    """Return log probabilities in float64. Raises ModelError if the largest logit isn't finite."""
    x = np.asarray(logits, np.float64)
    shifted = x - _largest(x)
    return np.asarray(shifted - np.log(np.exp(shifted).sum()))


def probabilities(logits: Array, sampling: Sampling, before: Collection[int] = ()) -> Array:
    """Return the probability of every token, of shape [vocabulary], in float64.

    before: the earlier tokens. Raises ModelError if the largest logit isn't finite.
    """
    tokens, chances = _distribution(logits, sampling, before)
    whole = np.zeros(len(logits))
    whole[tokens] = chances
    return whole


def choose(logits: Array, sampling: Sampling, before: Collection[int], random: np.random.Generator) -> int:
    """Return a token, drawn with one number from ``random``, or none if the temperature is 0."""
    tokens, chances = _distribution(logits, sampling, before)
    if sampling.temperature == 0:
        return int(tokens[0])
    drawn = np.searchsorted(np.cumsum(chances), random.random(), side="right")
    return int(tokens[min(int(drawn), len(tokens) - 1)])  # probabilities may sum to slightly less than 1


def _distribution(logits: Array, sampling: Sampling, before: Collection[int]) -> tuple[Array, Array]:
    """Return the candidate tokens, most likely first, and their probabilities."""
    x = _penalized(np.array(logits, np.float64), before, sampling.repetition_penalty)
    most = _largest(x)
    if sampling.temperature == 0:
        return np.array([x.argmax()]), np.ones(1)
    tokens = _most_likely(x, sampling.top_k)
    weights = np.exp((x[tokens] - most) / sampling.temperature)
    chances = weights / weights.sum()
    if sampling.top_p < 1:
        count = int(np.searchsorted(np.cumsum(chances), sampling.top_p)) + 1
        tokens, chances = tokens[:count], chances[:count] / chances[:count].sum()
    return tokens, chances


def _most_likely(x: Array, count: int | None) -> Array:
    """Return the tokens of the largest logits in descending order, lower numbers first for ties."""
    tokens = np.arange(len(x))
    if count is not None and count < len(x):
        least = np.partition(x, -count)[-count]
        above = np.flatnonzero(x > least)
        tokens = np.concatenate([above, np.flatnonzero(x == least)[: count - len(above)]])
    return tokens[np.lexsort((tokens, -x[tokens]))]


def _largest(x: Array) -> float:
    most = float(x.max())
    if not math.isfinite(most):  # NaN too
        raise ModelError(f"the model's logits have no largest number, but {most}")
    return most


def _penalized(x: Array, before: Collection[int], penalty: float) -> Array:
    if penalty != 1 and before:
        seen = np.unique(np.fromiter(before, np.int64))
        x[seen] = np.where(x[seen] > 0, x[seen] / penalty, x[seen] * penalty)
    return x


def _require(name: str, value: object, fits: bool, expected: str) -> None:
    if not fits:
        raise ModelError(f"{name}: expected {expected}, got {value!r}")
