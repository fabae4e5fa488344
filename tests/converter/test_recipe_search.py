"""The search for the bits of each layer: sizes and errors that are asked for, and the recipe that says the same."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from litecl.converter import Quantization
from litecl.converter.quantization.data import samples
from litecl.converter.quantization.quantize import quantize
from litecl.converter.quantization.recipes.knapsack import Option, choices_of
from litecl.converter.quantization.recipes.priced import Priced
from litecl.converter.quantization.recipes.search import Search
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model
from litecl.interpreter.ops import unary
from support import oracle
from support.build import model, randn
from support.quantize_models import Net, run, samples_of
from support.recipes import by_peer, network, repeated, weights_of


def test_the_best_options() -> None:
    """Against every combination."""
    rng = np.random.default_rng(0)
    items = [[Option(int(rng.integers(1000)), float(rng.random())) for _ in range(4)] for _ in range(5)]
    found = choices_of(items)
    combinations = [(sum(o.size for o in picked), sum(o.harm for o in picked)) for picked in itertools.product(*items)]
    assert found.floor == min(size for size, _ in combinations)
    assert found.within(found.floor - 1) is None
    for budget in (*range(found.floor, 4000, 70), 10_000):
        picked = found.within(budget)
        assert picked is not None
        chosen = [options[o] for options, o in zip(items, picked, strict=True)]
        assert sum(o.size for o in chosen) <= budget
        rounded = max(found.floor, budget - 5 * found.unit)  # each size is rounded up to a bin
        assert sum(o.harm for o in chosen) <= min(harm for size, harm in combinations if size <= rounded) + 1e-12


def test_items_of_one_option() -> None:
    assert choices_of([[Option(5, 0.1)], [Option(7, 0.0)]]).within(12) == [0, 0]
    assert choices_of([]).within(0) == []


def _deep() -> Model:
    """A model of many layers of several sizes, of which some matter more."""
    g = Net()
    x = g.input((1, 64))
    for number in range(16):
        x = g.unary(unary.TANH, g.dense(x, 32 + number * 40 % 96, scale=2 if number % 3 else 0.5))
    return model(g.build(g.dense(x, 16)))


@pytest.mark.parametrize("widened", [False, True])
def test_budgets_are_met_within_a_percent(widened: bool) -> None:
    of = _deep()
    data, ratios = samples_of(of), []
    for budget in (60_000, "0.2MB"):
        after, report = quantize(of, Quantization(budget=budget, data=data, weight_only=widened))
        asked = budget if isinstance(budget, int) else 200_000
        size = len(write(after))
        assert 0.99 * asked <= size <= asked
        assert report.frontier.chosen.size_bytes == size
        assert report.frontier.chosen.sqnr_db == pytest.approx(report.outputs[0].sqnr_db)
        ratios.append(report.outputs[0].sqnr_db)
    assert ratios == sorted(ratios) and ratios[-1] > ratios[0] + 5


def test_the_sizes_next_to_another() -> None:
    """Against every combination."""
    rng = np.random.default_rng(1)
    items = [[Option(int(rng.integers(1000)), float(rng.random())) for _ in range(3)] for _ in range(4)]
    found, sums = choices_of(items), sorted({sum(o.size for o in p) for p in itertools.product(*items)})
    for size in range(sums[0] + 1, sums[-1], 97):
        near = [sum(o[p].size for o, p in zip(items, picked, strict=True)) for picked in found.next_to(size)]
        below, above = max(s for s in sums if s <= size), min(s for s in sums if s > size)
        off = len(items) * found.unit  # each size is rounded up to a bin
        assert any(below - off <= s <= below for s in near) and any(above <= s <= above + off for s in near)


def test_a_search_does_better_than_the_same_bits_everywhere() -> None:
    of = _deep()
    data = samples_of(of)
    plain, before = quantize(of, Quantization(recipe="dynamic_wi4_afp32", data=data))
    _, found = quantize(of, Quantization(budget=len(write(plain)), data=data))
    assert found.outputs[0].sqnr_db > before.outputs[0].sqnr_db + 1


@pytest.mark.parametrize("ratio_db", [10, 25, 38, 200 - 1e-9])
def test_errors_are_met(ratio_db: float) -> None:
    """The smallest file that the frontier has: no point with the ratio is smaller."""
    of = network()
    after, report = quantize(of, Quantization(min_sqnr_db=ratio_db, data=samples_of(of), weight_only=True))
    found = report.frontier
    assert found.chosen.sqnr_db >= ratio_db and len(write(after)) == found.chosen.size_bytes
    assert not [p for p in found.points if p.size_bytes < found.chosen.size_bytes and p.sqnr_db >= ratio_db]
    assert (found.chosen.size_bytes == found.float_bytes) == (ratio_db > 100)


def test_no_file_with_the_ratio_is_smaller() -> None:
    """Of all that store the layers whole."""
    g = Net()
    g.rng = np.random.default_rng(2)
    x = g.input((1, 48))
    for columns in (40, 36, 28):
        x = g.unary(unary.TANH, g.dense(x, columns))
    of = model(g.build(g.dense(x, 24)))
    given = samples(Quantization(min_sqnr_db=1, data=samples_of(of)), of)
    search = Search(Priced(of, given, 4, widened=False))
    ways = itertools.product(*(range(len(layer.ways)) for layer in search.of.layers))
    points = [search._point(picked) for picked in ways]
    assert len(points) > 600
    for ratio_db in (10.5, 13.0, 28.0, 45.0, 70.5):
        fresh = Search(Priced(of, given, 4, widened=False))
        least = min(point.size_bytes for point in points if point.sqnr_db >= ratio_db)
        found = fresh.for_ratio(ratio_db).chosen
        assert found.sqnr_db >= ratio_db and found.size_bytes <= least
        assert len(fresh._measured) < len(points) / 4


def test_the_report() -> None:
    of = network()
    _, report = quantize(of, Quantization(budget=12_000, data=samples_of(of)))
    found = report.frontier
    names = {row.layer for row in found.sensitivity}
    assert len(names) == 5 == len(found.ways) and "CONV_2D first/conv" in names
    alone = {row.way: row for row in found.sensitivity if row.layer == "FULLY_CONNECTED second/dense"}
    assert math.isinf(alone["float"].sqnr_db)
    assert alone["float16"].sqnr_db > alone["int8"].sqnr_db > alone["int4"].sqnr_db > alone["int2"].sqnr_db
    assert alone["float16"].size_bytes > alone["int8"].size_bytes > alone["int4"].size_bytes
    sizes = [point.size_bytes for point in found.points]
    assert sizes == sorted(sizes) and found.chosen in found.points
    best = [point for point in found.points if point is not found.chosen]
    assert all(small.sqnr_db < large.sqnr_db for small, large in itertools.pairwise(best))
    assert "(chosen)" in str(report) and report.to_dict()["frontier"]["chosen"]["size_bytes"] == found.chosen.size_bytes


def _plain(recipe: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The recipe without algorithms that the peer needs data for."""
    return [e | {"algorithm_key": "min_max_uniform_quantize"} if e["algorithm_key"] == "GPTQ" else e for e in recipe]


def test_the_recipe_says_the_same_here_and_to_the_peer() -> None:
    of = network()
    data = samples_of(of)
    after, report = quantize(of, Quantization(budget=9_000, data=data))
    recipe = [dict(entry) for entry in report.frontier.recipe]
    assert write(quantize(of, Quantization(recipe=recipe, data=data))[0]) == write(after)
    ours, theirs = weights_of(after), weights_of(by_peer(of, _plain(recipe)))
    assert [spec.type for spec in ours.values()] == [spec.type for spec in theirs.values()]


def test_a_file_of_mixed_bits_runs_in_litert() -> None:
    of = network()
    after, report = quantize(of, Quantization(budget=8_000, data=samples_of(of)))
    assert len({way for _, way in report.frontier.ways}) > 2
    ((feed,),) = samples_of(of, 1, seed=3)
    (wanted,) = oracle.run(write(after), [feed], oracle.WITH_OPTIMISED_KERNELS)
    np.testing.assert_allclose(run(Interpreter(write(after)), [feed])[0], wanted, atol=1e-5 * np.abs(wanted).max())


def test_layers_that_share_weights_are_stored_alike() -> None:
    g = Net()
    shared = g.const(randn(g.rng, 64, 64, scale=0.1))
    of = model(g.build(g.dense(repeated(g, g.input((1, 64)), shared, 3), 16)))
    _, report = quantize(of, Quantization(budget=4_500, data=samples_of(of)))
    assert len(report.frontier.ways) == 2 and len({e["regex"] for e in report.frontier.recipe}) == 4


def test_what_cannot_be_searched_for() -> None:
    of, g = network(), Net()
    without = model(g.build(g.unary(unary.TANH, g.input((1, 4)))))
    for options, message in (
        ({"budget": 100}, "budget of 100 bytes: the smallest file has"),
        ({"budget": 0}, "expected budget as bytes or like '40MB'"),
        ({"budget": "many"}, "expected budget as bytes or like '40MB'"),
        ({"budget": "40 parsecs"}, "expected budget as bytes or like '40MB'"),
        ({"min_sqnr_db": math.nan}, "expected min_sqnr_db from -100 to 200, got nan"),
        ({"budget": 100, "recipe": "dynamic_wi8_afp32"}, "expected one of recipe, budget and min_sqnr_db"),
        ({"budget": 100, "weights": "int4"}, "weights: no effect with a recipe"),
        ({"weight_only": True}, "weight_only needs a budget or min_sqnr_db"),
    ):
        with pytest.raises(ConversionError, match=message):
            quantize(of, Quantization(data=samples_of(of), **options))  # type: ignore[arg-type]
    with pytest.raises(ConversionError, match="need representative data"):
        Quantization(budget="40MB")
    with pytest.raises(ConversionError, match="no weights in float"):
        quantize(without, Quantization(budget=10_000, data=samples_of(without)))
