"""Chooses the next token from logits."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ArgumentError, ModelError
from litecl.interpreter.graph import Array

_BLOCK = 512  # chances that are added up at once

BOUNDS: Mapping[str, tuple[str, Callable[[float], bool]]] = {
    "temperature": ("0 or more", lambda value: 0 <= value < math.inf),
    "top_p": ("more than 0, and at most 1", lambda value: 0 < value <= 1),
    "repetition_penalty": ("more than 0", lambda value: 0 < value < math.inf),
    "presence_penalty": ("a finite number", math.isfinite),
    "frequency_penalty": ("a finite number", math.isfinite),
}
"""What numbers an option may have, in words and as a condition."""


@dataclass(frozen=True)
class Sampling:
    """How to turn logits into a distribution over tokens. Applied in this order:

    repetition_penalty: divides positive logits of earlier tokens, and multiplies negative ones
        (https://arxiv.org/abs/1909.05858).
    presence_penalty, frequency_penalty: subtracted from the logits of generated tokens, once, and once for each time.
    logit_bias: added to the logits of these tokens.
    temperature: divides the logits; 0 takes the most likely token.
    top_k: keeps this many of the most likely tokens; None: all. Ties go to lower token numbers.
    top_p: keeps the fewest of these, most likely first, whose probabilities add up to it
        (https://arxiv.org/abs/1904.09751).
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ModelError for values out of range."""
        for name, (expected, fits) in BOUNDS.items():
            _require(name, getattr(self, name), fits(getattr(self, name)), expected)
        _require("top_k", self.top_k, self.top_k is None or self.top_k >= 1, "at least 1, or None")
        fit = all(token >= 0 and math.isfinite(bias) for token, bias in self.logit_bias.items())
        _require("logit_bias", self.logit_bias, fit, "numbers of tokens, at least 0, and finite numbers")

    @property
    def adjusts(self) -> bool:
        """Whether it changes logits by more than a temperature."""
        return self.repetition_penalty != 1 or self.counts or bool(self.logit_bias)

    @property
    def counts(self) -> bool:
        """Whether tokens that have been generated become less likely, or more."""
        return self.presence_penalty != 0 or self.frequency_penalty != 0


def log_softmax(logits: Array) -> Array:
    """Return log probabilities in float64. Raises ModelError if the largest logit isn't finite."""
    x = np.asarray(logits, np.float64)
    shifted = x - _largest(x)
    return np.asarray(shifted - np.log(np.exp(shifted).sum()))


def probabilities(
    logits: Array, sampling: Sampling, before: Collection[int] = (), generated: Collection[int] = ()
) -> Array:
    """Return the probability of every token, of shape [vocabulary], in float64.

    before: the earlier tokens. generated: those of them that were chosen. Raises ModelError if the largest logit isn't
    finite, or a token of ``logit_bias`` is out of range.
    """
    tokens, chances = _distribution(logits, sampling, before, generated)
    whole = np.zeros(len(logits))
    whole[np.asarray(tokens)] = chances
    return whole


def masked(logits: Array, mask: Callable[[Sequence[int], Array], object], tokens: Sequence[int]) -> Array:
    """Return logits with -inf for the tokens that a mask takes out; see ``GenerationOptions``.

    Raises ModelError if it leaves none, ArgumentError if it returns an array of its own, which does nothing.
    """
    allowed = np.ones(len(logits), np.bool_)
    returned = mask(tokens, allowed)
    is_list = hasattr(returned, "__len__") and len(returned) == len(allowed)
    if returned is not allowed and (is_list or isinstance(returned, np.ndarray)):
        raise ArgumentError(
            f"mask: expected a function that changes its second argument, got one that returns {returned!r:.60}"
        )
    if not allowed.any():
        raise ModelError(f"mask: it allows no token after {len(tokens)}")
    return np.where(allowed, logits, -np.inf)


def choose(
    logits: Array,
    sampling: Sampling,
    before: Collection[int],
    random: np.random.Generator,
    generated: Collection[int] = (),
) -> int:
    """Return a token, drawn with one number from ``random``, or none if the temperature is 0; see ``probabilities``."""
    tokens, chances = _distribution(logits, sampling, before, generated)
    return int(tokens[0 if sampling.temperature == 0 else _drawn(chances, random.random())])


def _drawn(chances: Array, uniform: float) -> int:
    """Return the index at which the sum of chances passes a number: of a block first, since few sums are quick."""
    starts = np.arange(0, len(chances), _BLOCK)
    ends = np.cumsum(np.add.reduceat(chances, starts))
    last = int(np.searchsorted(ends, ends[-1]))  # with any chance: the sum may be slightly less than 1
    block = min(int(np.searchsorted(ends, uniform, side="right")), last)
    within = chances[starts[block] : starts[block] + _BLOCK]
    rest = uniform - (ends[block - 1] if block else 0.0)
    index = np.searchsorted(np.cumsum(within), rest, side="right")
    return int(starts[block] + min(index, np.flatnonzero(within)[-1]))


def _distribution(
    logits: Array, sampling: Sampling, before: Collection[int], generated: Collection[int]
) -> tuple[Sequence[int] | Array, Array]:
    """Return the candidate tokens and their probabilities: with a top_k most likely first, else by number."""
    x = np.array(logits, np.float64)
    if sampling.adjusts:
        with np.errstate(over="ignore"):
            _adjust(x, sampling, before, generated)
    most = _largest(x)
    if sampling.temperature == 0:
        return [int(x.argmax())], np.ones(1)
    tokens: Sequence[int] | Array = range(len(x))
    if sampling.top_k is not None:
        tokens = _most_likely(x, sampling.top_k)
        x = x[tokens]
    x -= most  # in place: with a large vocabulary, to get memory takes longer than to compute
    with np.errstate(over="ignore"):  # by a tiny temperature: the chance is 0
        x /= sampling.temperature
    chances = np.exp(x, out=x)
    if sampling.top_p < 1:
        kept = _nucleus(chances, sampling.top_p)
        tokens, chances = kept if sampling.top_k is None else np.asarray(tokens)[kept], chances[kept]
    chances /= chances.sum()
    return tokens, chances


def _most_likely(x: Array, count: int) -> Array:
    """Return the tokens of the largest logits in descending order, lower numbers first for ties."""
    least = np.partition(x, -count)[-count] if count < len(x) else -math.inf
    tokens = _largest_of(x, count, least)
    return tokens[np.lexsort((tokens, -x[tokens]))]


def _nucleus(chances: Array, top_p: float) -> Array:
    """Return the indices of the fewest chances that add up to ``top_p`` of all: without the many least ones."""
    ascending = np.sort(chances)
    sums = np.cumsum(ascending)
    rest = (1 - top_p) * sums[-1] * (1 + 1e-12)  # of equal chances, rounding must not keep one more
    without = min(int(np.searchsorted(sums, rest, side="right")), len(chances) - 1)
    return _largest_of(chances, len(chances) - without, ascending[without])


def _largest_of(x: Array, count: int, least: float) -> Array:
    """Return the indices of the ``count`` largest elements, lower ones first for ties with ``least``, the last."""
    kept = x >= least
    ties = np.flatnonzero(x == least)
    kept[ties[len(ties) - max(0, int(np.count_nonzero(kept)) - count) :]] = False
    return np.flatnonzero(kept)


def _largest(x: Array) -> float:
    most = float(x.max())
    if not math.isfinite(most):  # NaN too
        raise ModelError(f"the logits, with penalties and biases, have no largest number, but {most}")
    return most


def _adjust(x: Array, sampling: Sampling, before: Collection[int], generated: Collection[int]) -> None:
    """Apply the penalties and the bias, in place."""
    penalty, bias = sampling.repetition_penalty, sampling.logit_bias
    if penalty != 1 and before:
        seen = np.unique(np.fromiter(before, np.int64))
        x[seen] = np.where(x[seen] > 0, x[seen] / penalty, x[seen] * penalty)
    if sampling.counts and generated:
        seen, times = np.unique(np.fromiter(generated, np.int64), return_counts=True)
        x[seen] -= times * sampling.frequency_penalty + sampling.presence_penalty
    if bias:
        if outside := [token for token in bias if token >= len(x)]:
            raise ModelError(f"logit_bias: tokens {outside[:5]} are out of range for a vocabulary of {len(x)}")
        x[[*bias]] += [*bias.values()]


def _require(name: str, value: object, fits: bool, expected: str) -> None:
    if not fits:
        raise ModelError(f"{name}: expected {expected}, got {value!r}")
