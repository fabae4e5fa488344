"""What a search for bits measures: layers by themselves, each constant stored once, and choices near the best."""

import itertools
from typing import Any

import keras
import numpy as np
import pytest

from litecl.converter import Converter, Quantization
from litecl.converter.quantization.data import samples
from litecl.converter.quantization.quantize import quantize
from litecl.converter.quantization.recipes import alone, kept
from litecl.converter.quantization.recipes.knapsack import Option, neighbours
from litecl.converter.quantization.recipes.priced import Priced
from litecl.converter.quantization.recipes.search import Search
from litecl.interpreter.file.reader import read
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model
from litecl.interpreter.ops import unary
from litecl.interpreter.ops.binary import ADD
from support.build import model, randn
from support.quantize_models import SHAPE, Net, samples_of
from support.recipes import network, repeated

L = keras.layers
_PADDING = 64


def _priced(of: Model, data: Any, **options: Any) -> Priced:
    how = Quantization(budget=1, data=data, **options)
    return Priced(of, samples(how, of), how.measured, how.weight_only)


def _recurrent(units: int = 6, inputs: tuple[int, int] = (6, 4)) -> Model:
    """A model whose states are filled before each layer."""
    keras.utils.set_random_seed(0)
    layers = [L.Bidirectional(L.LSTM(units, return_sequences=True)), L.LSTM(units), L.Dense(5)]
    made = keras.Sequential([keras.Input(inputs, 1), *layers])
    for weight in made.weights:
        weight.assign(keras.random.normal(weight.shape, stddev=0.4))
    return read(Converter.from_keras_model(made).convert())


def _shared() -> Model:
    """A model with weights that several layers read, and with one that an addition reads too."""
    g = Net()
    shared, other = g.const(randn(g.rng, 32, 32, scale=0.2)), g.const(randn(g.rng, 32, 32, scale=0.2))
    x = g.dense(repeated(g, g.input((32, 32)), shared, 2), 32)
    y = g.unary(unary.TANH, repeated(g, x, other, 1))
    return model(g.build(g.dense(g.op(ADD, [y, other], ADD.options()), 7)))


def _branches() -> Model:
    """A model whose layers read values from long before."""
    g = Net()
    first = g.conv(g.input(SHAPE), 8)
    second = g.unary(unary.TANH, g.conv(first, 8))
    return model(g.build(g.op(ADD, [g.conv(second, 8), first], ADD.options()), second))


@pytest.mark.parametrize("make", [network, _recurrent, _shared, _branches])
@pytest.mark.parametrize("weight_only", [False, True])
def test_prices_are_those_of_the_whole_model(make: Any, weight_only: bool) -> None:
    of = make()
    found = _priced(of, samples_of(of), weight_only=weight_only)
    count = 0
    for layer, options in zip(found.layers, found.options, strict=True):
        for way, option in zip(layer.ways, options, strict=True):
            if way.mixed or not way.chosen:
                continue
            whole = found.made(way.chosen)
            assert option.harm == sum(found.errors(whole)), (layer.name, way.name)
            assert abs(option.size - len(write(whole)) + found.float_bytes) <= _PADDING, (layer.name, way.name)
            count += 1
    assert count >= 6


def test_layers_are_measured_by_the_nodes_from_them_on(monkeypatch: pytest.MonkeyPatch) -> None:
    of, lengths = network(), list[int]()
    find = alone.Tails.of

    def counted(tails: alone.Tails, first: int) -> alone.Tail | None:
        tail = find(tails, first)
        assert tail is not None
        lengths.append(len(tail.part.model.subgraphs[0].nodes))
        return tail

    monkeypatch.setattr(alone.Tails, "of", counted)
    quantize(of, Quantization(budget=12_000, data=samples_of(of)))
    assert len(lengths) == 5 and lengths == sorted(lengths, reverse=True) and lengths[-1] < len(of.subgraphs[0].nodes)


def test_an_open_dimension_is_measured_by_the_whole_model() -> None:
    g = Net()
    x = g.input((1, 16), signature=(-1, 16))
    of = model(g.build(g.dense(g.unary(unary.TANH, g.dense(x, 16)), 4)))
    data = samples_of(of)
    found = _priced(of, data)
    for layer, options in zip(found.layers, found.options, strict=True):
        for way, option in zip(layer.ways, options, strict=True):
            assert not way.chosen or option.harm == sum(found.errors(found.made(way.chosen)))
    _, report = quantize(of, Quantization(budget=1_900, data=data))
    assert report.frontier.chosen.size_bytes <= 1_900


def test_a_constant_is_stored_once_in_each_form(monkeypatch: pytest.MonkeyPatch) -> None:
    of, seen = network(), list[Any]()
    store = kept.stored

    def counted(spec: Any, form: Any, moments: Any) -> Any:
        seen.append((id(spec.data), form))
        return store(spec, form, moments)

    monkeypatch.setattr(kept, "stored", counted)
    search = Search(_priced(of, samples_of(of)))
    search.for_size(len(write(of)) // 2)
    constants = {id(spec.data) for spec in of.subgraphs[0].tensors if spec.data is not None}
    own = [key for key in seen if key[0] in constants]
    assert len(own) == len({*own}) > 10


def test_progress_is_told() -> None:
    of, told = network(), list[tuple[int, int]]()
    Converter.from_tflite(of, Quantization(budget=12_000, data=samples_of(of))).convert(
        progress=lambda done, total: told.append((done, total))
    )
    assert told == [(n, 5) for n in range(6)]


def test_the_neighbours_of_a_choice() -> None:
    """Against every choice of which one or two items differ."""
    rng = np.random.default_rng(0)
    items = [[Option(int(rng.integers(1000)), float(rng.random())) for _ in range(4)] for _ in range(5)]
    picked = [int(rng.integers(4)) for _ in items]
    size, harm = (sum(getattr(o[p], name) for o, p in zip(items, picked, strict=True)) for name in ("size", "harm"))
    near = [p for p in itertools.product(range(4), repeat=5) if 1 <= sum(np.not_equal(p, picked)) <= 2]
    for left in (-600, 0, 250):
        sums = [
            tuple(sum(getattr(o[i], n) for o, i in zip(items, p, strict=True)) for n in ("size", "harm")) for p in near
        ]
        wanted = sorted(h - harm for s, h in sums if s - size <= left)[:9]
        found = neighbours(items, picked, left, 9)
        got = [sum(o[i].harm for o, i in zip(items, p, strict=True)) - harm for p in found]
        np.testing.assert_allclose(got, wanted, atol=1e-12)
        assert all(sum(o[i].size for o, i in zip(items, p, strict=True)) - size <= left for p in found)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [0, 1])
def test_no_file_within_a_budget_is_more_accurate(seed: int) -> None:
    """Against the file of every combination of ways to store the layers of a small LSTM whole."""
    keras.utils.set_random_seed(seed)
    made = keras.Sequential([keras.Input((8, 4), 1), L.LSTM(32), L.Dense(8)])
    of = read(Converter.from_keras_model(made).convert())
    data = samples_of(of)
    search = Search(_priced(of, data))
    every = [
        search._point(picked) for picked in itertools.product(*(range(len(options)) for options in search.of.options))
    ]
    smaller = 0
    for share in np.linspace(0.4, 0.97, 10):
        budget = int(share * search.of.float_bytes)
        _, report = quantize(of, Quantization(budget=budget, data=data))
        chosen = report.frontier.chosen
        assert chosen.size_bytes <= budget
        assert chosen.sqnr_db >= max(p.sqnr_db for p in every if p.size_bytes <= budget) - 1e-9, budget
        smaller += chosen.size_bytes < 0.99 * budget
        assert (report.frontier.note != "") == (chosen.size_bytes < 0.99 * budget)
    assert 0 < smaller < 10  # being smaller is no fault if what is larger is less accurate
