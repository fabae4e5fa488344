"""How tokens are drawn from logits, against the formulas written another way."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from litecl.generate.sampling import Sampling, choose, log_softmax, probabilities
from litecl.interpreter.errors import ModelError

LOGITS = np.random.default_rng(2).normal(0, 2, 40).astype(np.float32)


def expected(logits: np.ndarray, sampling: Sampling, before: set[int], generated: Sequence[int] = ()) -> list[float]:
    """The distribution, token by token."""
    scores = [float(x) for x in logits]
    for token in before:
        penalty = sampling.repetition_penalty
        scores[token] = scores[token] / penalty if scores[token] > 0 else scores[token] * penalty
    for token in range(len(scores)):  # OpenAI's formula
        count = generated.count(token)
        scores[token] -= count * sampling.frequency_penalty + (count > 0) * sampling.presence_penalty
        scores[token] += sampling.logit_bias.get(token, 0)
    ranked = sorted(range(len(scores)), key=lambda token: (-scores[token], token))
    if sampling.temperature == 0:
        return [1.0 if token == ranked[0] else 0.0 for token in range(len(scores))]
    if sampling.top_k is not None:
        ranked = ranked[: sampling.top_k]
    weights = {token: math.exp((scores[token] - scores[ranked[0]]) / sampling.temperature) for token in ranked}
    total, kept, sum_ = sum(weights.values()), {}, 0.0
    for token in ranked:
        if sum_ >= sampling.top_p and kept:
            break
        kept[token] = weights[token]
        sum_ += weights[token] / total
    return [kept.get(token, 0.0) / sum(kept.values()) for token in range(len(scores))]


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(),
        Sampling(1.0),
        Sampling(0.3),
        Sampling(2.5, top_k=7),
        Sampling(1.0, top_k=1),
        Sampling(1.0, top_k=1000),
        Sampling(1.0, top_p=0.5),
        Sampling(1.0, top_p=1e-9),
        Sampling(0.7, top_k=12, top_p=0.8),
        Sampling(1.0, repetition_penalty=1.4),
        Sampling(0.0, repetition_penalty=100.0),
        Sampling(0.9, top_k=9, top_p=0.9, repetition_penalty=0.6),
        Sampling(1.0, presence_penalty=1.5),
        Sampling(1.0, frequency_penalty=-0.7),
        Sampling(0.0, frequency_penalty=2.0),
        Sampling(1.0, logit_bias={3: 10.0, 39: -5.0, 5: 0.5}),
        Sampling(0.6, 9, 0.9, 1.3, presence_penalty=-2.0, frequency_penalty=0.4, logit_bias={6: 1.0, 0: 3.0}),
    ],
    ids=str,
)
def test_distribution(sampling: Sampling) -> None:
    before = {int(LOGITS.argmax()), int(LOGITS.argmin()), 5, 6}
    generated = [int(LOGITS.argmax()), 6, 6, 6]
    made = probabilities(LOGITS, sampling, [*before, 5, *generated], generated)
    np.testing.assert_allclose(made, expected(LOGITS, sampling, before, generated), rtol=1e-9, atol=1e-300)
    assert made.sum() == pytest.approx(1, abs=1e-12)


def test_equal_logits() -> None:
    """Of equally likely tokens those of the lowest numbers are kept."""
    logits = np.array([1, 3, 2, 3, 2, 2, 3, 0], np.float32)
    assert np.flatnonzero(probabilities(logits, Sampling(1.0, top_k=2))).tolist() == [1, 3]
    assert np.flatnonzero(probabilities(logits, Sampling(1.0, top_k=4))).tolist() == [1, 2, 3, 6]
    assert choose(logits, Sampling(), (), np.random.default_rng()) == 1


@pytest.mark.parametrize("sampling", [Sampling(1.5), Sampling(1.0, top_k=6), Sampling(1.2, top_p=0.7)], ids=str)
def test_draws_follow_the_distribution(sampling: Sampling) -> None:
    """Chi-square of 20,000 draws; tokens that are expected fewer than ten times are counted together."""
    random, count = np.random.default_rng(7), 20_000
    drawn = np.bincount([choose(LOGITS, sampling, (), random) for _ in range(count)], minlength=len(LOGITS))
    hoped = np.array(expected(LOGITS, sampling, set())) * count
    assert not drawn[hoped == 0].any()
    often = hoped >= 10
    observed = np.append(drawn[often], drawn[~often].sum())
    wanted = np.append(hoped[often], hoped[~often].sum())
    square = float((((observed - wanted) ** 2)[wanted > 0] / wanted[wanted > 0]).sum())
    freedom = int((wanted > 0).sum()) - 1
    assert square < freedom + 5 * math.sqrt(2 * freedom)  # five standard deviations of chi-square


def test_one_random_number_for_each_draw() -> None:
    """The same numbers draw the same tokens whatever the distribution was before, and none are drawn without chance."""
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    for sampling in (Sampling(1.0), Sampling(0.5, top_k=3), Sampling(1.0, top_p=0.4)):
        chances = probabilities(LOGITS, sampling)
        choose(LOGITS, sampling, (), one)
        assert other.random() < 1
        assert np.count_nonzero(chances) > 1
    choose(LOGITS, Sampling(1.0, top_k=1), (), one)
    other.random()
    choose(LOGITS, Sampling(), (), one)
    assert one.random() == other.random()


@pytest.mark.parametrize("sampling", [Sampling(1.0), Sampling(0.7, top_p=0.8)], ids=str)
def test_a_large_vocabulary(sampling: Sampling) -> None:
    """Draws fall on either side of a token as often as its probabilities say, and never on one without chance."""
    random = np.random.default_rng(5)
    logits = random.standard_normal(50_000).astype(np.float32)
    logits[::7] = -math.inf
    chances, count = probabilities(logits, sampling), 4_000
    assert not chances[::7].any()
    drawn = np.array([choose(logits, sampling, (), random) for _ in range(count)])
    assert chances[drawn].all()
    for token in (2_000, 25_000, 49_000):
        below = chances[:token].sum()
        assert abs((drawn < token).mean() - below) < 5 * math.sqrt(below * (1 - below) / count)


def test_equal_chances() -> None:
    """The fewest tokens that add up to top_p, those of the lowest numbers."""
    for count, top_p, kept in ((50, 0.9, 45), (10, 0.3, 3), (3, 1e-9, 1)):
        assert np.flatnonzero(probabilities(np.zeros(count), Sampling(1.0, top_p=top_p))).tolist() == [*range(kept)]


def test_log_softmax() -> None:
    logits = np.array([1000.0, 999.0, -1000.0])
    with np.errstate(over="raise"):
        made = log_softmax(logits)
    np.testing.assert_allclose(made[:2], [-math.log1p(math.exp(-1)), -1 - math.log1p(math.exp(-1))], rtol=1e-12)
    assert made[2] == pytest.approx(-2000 - math.log1p(math.exp(-1)))


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(1.0)], ids=str)
def test_logits_that_are_no_numbers(wrong: float, sampling: Sampling) -> None:
    logits = LOGITS.copy()
    logits[9] = wrong
    with pytest.raises(ModelError, match="no largest number"):
        choose(logits, sampling, (), np.random.default_rng(0))


def test_extreme_temperatures() -> None:
    """A temperature near 0 is greedy, one without end uniform; nothing overflows."""
    assert probabilities(LOGITS, Sampling(1e-300))[LOGITS.argmax()] == 1
    np.testing.assert_allclose(probabilities(LOGITS, Sampling(1e300)), 1 / len(LOGITS))
    hidden = LOGITS.copy()
    hidden[:30] = -math.inf
    assert not probabilities(hidden, Sampling(1.0))[:30].any()


@pytest.mark.parametrize(
    "wrong",
    [{"temperature": -1.0}, {"temperature": math.nan}, {"top_k": 0}, {"top_p": 0.0}, {"top_p": 1.5},
     {"repetition_penalty": 0.0}, {"repetition_penalty": math.inf}, {"presence_penalty": math.nan},
     {"frequency_penalty": math.inf}, {"logit_bias": {-1: 1.0}}, {"logit_bias": {1: math.nan}}],
    ids=str,
)  # fmt: skip
def test_numbers_that_make_no_distribution(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(ModelError, match=rf"^{name}: expected"):
        Sampling(**wrong)


@pytest.mark.filterwarnings("error")
def test_numbers_beyond_floats() -> None:
    """Tiny temperatures and huge penalties warn of nothing; what leaves no largest number is an error."""
    logits, random = np.array([1.0, -2.0, 3.0]), np.random.default_rng(0)
    assert choose(logits, Sampling(temperature=1e-320), (), random) == 2
    assert choose(logits, Sampling(repetition_penalty=1e308), (0, 1, 2), random) == 2
    assert choose(logits, Sampling(frequency_penalty=1e308), (), random, (2, 2)) == 0
    with pytest.raises(ModelError, match="the logits, with penalties and biases, have no largest number"):
        choose(logits * 9, Sampling(repetition_penalty=1e-308), (2,), random)
