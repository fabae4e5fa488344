"""The search for the bits of each layer: sizes and errors that are asked for, and the recipe that says the same."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from litecl.converter import Quantization
from litecl.converter.quantization.data import samples
from litecl.converter.quantization.quantize import quantize
from litecl.converter.quantization.recipes.knapsack import Option, choices_of, divided
from litecl.converter.quantization.recipes.names import entry
from litecl.converter.quantization.recipes.priced import Priced
from litecl.converter.quantization.recipes.search import Search
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import unary
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.schema import TensorType
from support import oracle
from support.build import model, randn
from support.quantize_models import SHAPE, Net, run, samples_of
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


@pytest.mark.parametrize("seed", range(5))
def test_the_best_options_with_one_item_divided(seed: int) -> None:
    """Against every combination of the others, and every pair of options of the divided one."""
    rng = np.random.default_rng(seed)
    items = [[Option(int(rng.integers(1000)), float(rng.random())) for _ in range(4)] for _ in range(4)]
    for item in range(4):
        rest = [*items[:item], *items[item + 1 :]]
        others = choices_of(rest)
        for budget in range(400, 4000, 230):
            found = divided(items, item, others, budget)
            lefts = [(budget - sum(o.size for o in p), sum(o.harm for o in p)) for p in itertools.product(*rest)]
            best, worst = (
                min((harm + _divided_harm(items[item], left - less) for left, harm in lefts), default=math.inf)
                for less in (0, 3 * others.unit)  # each size is rounded up to a bin
            )
            if found is None:
                assert math.isinf(worst)
                continue
            own = items[item]
            a, b = own[found.picked[item]], own[found.option]
            size = sum(options[o].size for options, o in zip(items, found.picked, strict=True))
            harm = sum(options[o].harm for options, o in zip(items, found.picked, strict=True))
            assert 0 <= found.share <= 1 and size + found.share * (b.size - a.size) <= budget + 1e-6
            assert best - 1e-9 <= harm + found.share * (b.harm - a.harm) <= worst + 1e-9


def _divided_harm(options: list[Option], size: float) -> float:
    """The least harm of two options in parts within a size."""
    harms = [o.harm for o in options if o.size <= size]
    for a, b in itertools.permutations(options, 2):
        if a.size <= size < b.size:
            harms.append(a.harm + (size - a.size) / (b.size - a.size) * (b.harm - a.harm))
    return min(harms, default=math.inf)


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


def _dominated(kind: str) -> Model:
    """A model of which one layer has nearly all weights."""
    g = Net()
    if kind == "table":
        ids = g.input((1, 5), TensorType.INT32)
        flat = g.op(RESHAPE, [ids, g.const(np.int32([5]))], ReshapeOptions())
        x = g.op(EMBEDDING_LOOKUP, [flat, g.const(randn(g.rng, 400, 128))], NoOptions())
        return model(g.build(g.dense(x, 8)))
    if kind == "dense":
        return model(g.build(g.dense(g.unary(unary.TANH, g.dense(g.input((1, 128)), 301)), 8)))
    return model(g.build(g.conv(g.conv(g.input(SHAPE), 4), 301)))


@pytest.mark.parametrize("kind", ["dense", "conv", "table"])
@pytest.mark.parametrize("share", [0.22, 0.4, 0.7])
def test_a_layer_is_divided_where_budgets_are_missed_otherwise(kind: str, share: float) -> None:
    of = _dominated(kind)
    data = samples_of(of)
    if kind == "table":
        data = [[np.random.default_rng(i).integers(0, 400, (1, 5), np.int32)] for i in range(8)]
    budget = int(share * len(write(of)))
    after, report = quantize(of, Quantization(budget=budget, data=data))
    found, content = report.frontier, write(after)
    assert 0.99 * budget <= len(content) <= budget, found.note
    assert found.chosen.cut is not None and found.note == ""
    assert found.chosen.sqnr_db == pytest.approx(report.outputs[0].sqnr_db)
    assert any(" channels, " in way for _, way in found.ways)
    recipe = [dict(entry) for entry in found.recipe]
    again, second = quantize(of, Quantization(recipe=recipe, data=data, strict=True))
    assert write(again) == content and second.notes == ()
    (wanted,) = oracle.run(content, data[0], oracle.WITH_OPTIMISED_KERNELS)
    np.testing.assert_allclose(run(Interpreter(content), data[0])[0], wanted, atol=1e-5 * np.abs(wanted).max())
    if kind != "conv":  # the peer has no convolutions of two bits
        assert by_peer(of, _plain(recipe)).subgraphs


def test_a_ratio_is_met_within_a_percent_by_a_divided_layer() -> None:
    of = _dominated("dense")
    _, before = quantize(of, Quantization(recipe="weight_only_wi8_afp32", data=samples_of(of)))
    for ratio in (before.outputs[0].sqnr_db - 8, before.outputs[0].sqnr_db + 10):
        after, report = quantize(of, Quantization(min_sqnr_db=ratio, data=samples_of(of), weight_only=True))
        assert ratio <= report.outputs[0].sqnr_db <= 1.01 * ratio
        assert report.frontier.chosen.size_bytes == len(write(after))


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


@pytest.mark.parametrize("split", [3, 298, 400])
def test_a_recipe_that_divides_too_far_is_refused(split: int) -> None:
    of = _dominated("dense")
    entries = [entry(8, operation="FULLY_CONNECTED")]
    entries[0]["op_config"]["weight_tensor_config"]["algorithm_params"] = {"split": split}
    with pytest.raises(
        ConversionError, match="entry 0: split: expected at least 4 output channels on either side, got"
    ):
        quantize(of, Quantization(recipe=entries, data=samples_of(of)))


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
