"""Layers that Keras has unrolled, rolled up into operators and loops."""

import pytest

from litecl.converter.unrolled.roll_up import roll_up
from litecl.interpreter.graph import Subgraph
from litecl.interpreter.steps.links import Links
from support.unrolled import Sizes
from support.unrolled_checks import assert_altered_models_compute_the_same, assert_same, assert_stays, counts
from support.unrolled_keras import unrolled_keras

_FORMS: dict[str, tuple[str, dict[str, int], str]] = {
    "LSTM": ("LSTM", {}, "UNIDIRECTIONAL_SEQUENCE_LSTM"),
    "GRU": ("GRU", {}, "WHILE"),
    "GRU, reset early": ("GRU", {"early": 1}, "WHILE"),
    "RNN": ("RNN", {}, "UNIDIRECTIONAL_SEQUENCE_RNN"),
    "RNN of RELU": ("RNN", {"relu": 1}, "UNIDIRECTIONAL_SEQUENCE_RNN"),
    "RNN, products first": ("RNN", {"ahead": 1}, "UNIDIRECTIONAL_SEQUENCE_RNN"),
    "RNN of fused RELU, products first": ("RNN", {"ahead": 1, "relu": 2}, "UNIDIRECTIONAL_SEQUENCE_RNN"),
}
FORMS = pytest.mark.parametrize("form", _FORMS)


@pytest.fixture(autouse=True)
def _short_and_narrow_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("litecl.converter.unrolled.gru.LEAST", 0)


@FORMS
@pytest.mark.parametrize(("sizes", "layers"), [(Sizes(), 1), (Sizes(1, 7, 3, 7), 2), (Sizes(3, 11, 4, 4), 2)])
def test_layers(form: str, sizes: Sizes, layers: int) -> None:
    kind, early, operator = _FORMS[form]
    before = unrolled_keras(kind, sizes, layers=layers, read=("sequence", "h", "h1"), **early)
    after, records = roll_up(before)
    assert [record.name for record in records] == [f"unrolled {kind}"] * layers
    assert counts(after)[operator] == layers
    assert not {"LOGISTIC", "TANH", "RELU"} & counts(after).keys()
    assert_same(before, after, 2)


@FORMS
@pytest.mark.parametrize("seed", range(2))
def test_altered_anywhere_the_results_stay(form: str, seed: int) -> None:
    kind, early, _ = _FORMS[form]
    more = 4 if "ahead" in early else 0  # of whose steps each has few nodes
    sizes = [Sizes(2, 3 + more, 5, 5), Sizes(3, 4 + more, 3, 3)][seed]
    assert_altered_models_compute_the_same(unrolled_keras(kind, sizes, read=("sequence", "h"), **early), seed)


@FORMS
@pytest.mark.parametrize("change", ["weights", "activation", "clip", "order", "skip"])
@pytest.mark.parametrize("step", [2, 3])
def test_a_layer_altered_at_one_step_stays(form: str, change: str, step: int) -> None:
    kind, early, _ = _FORMS[form]
    assert_stays(unrolled_keras(kind, Sizes(2, 5), read=("sequence", "h"), **early, **{change: step}))


@pytest.mark.parametrize("early", [0, 1])
def test_a_constant_row_altered_at_one_step_stays(early: int) -> None:
    assert_stays(unrolled_keras("GRU", Sizes(2, 5), early=early, row=3))


@FORMS
def test_dense_layers_are_no_steps(form: str) -> None:
    kind, early, _ = _FORMS[form]
    before = unrolled_keras(kind, Sizes(steps=1), read=("sequence", "h"), **early)
    assert_stays(before)


def test_every_count_of_steps() -> None:
    """A loop does up to eight steps of a GRU at once."""
    for steps in (2, 3, 8, 9, 16, 17, 35):
        before = unrolled_keras("GRU", Sizes(2, steps, 3, 4), read=("sequence", "h"))
        after, records = roll_up(before)
        assert len(records) == 1
        assert_same(before, after, 1)


def test_a_file_is_searched_once_for_its_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Subgraph] = []

    def counted(graph: Subgraph) -> Links:
        made.append(graph)
        return Links(graph)

    monkeypatch.setattr("litecl.converter.unrolled.roll_up.Links", counted)
    before = unrolled_keras("RNN", Sizes(2, 5), layers=4)
    assert len(roll_up(before)[1]) == 4
    assert len(made) == 2  # once more, for what rolled up layers may be the sequence of
