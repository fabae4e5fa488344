"""Unrolled recurrent layers of ``.tflite`` files, rolled up into operators and loops."""

from collections.abc import Sequence
from typing import Any

import pytest

from litecl.converter.unrolled.roll_up import roll_up
from litecl.interpreter.graph import Model
from support.unrolled import Sizes, unrolled, unrolled_cells
from support.unrolled_checks import assert_altered_models_compute_the_same, assert_same, assert_stays, counts

_OPERATORS = {"LSTM": "UNIDIRECTIONAL_SEQUENCE_LSTM", "GRU": "WHILE"}
KINDS = pytest.mark.parametrize("kind", _OPERATORS)


@pytest.fixture(autouse=True)
def _short_and_narrow_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("litecl.converter.unrolled.gru.LEAST", 0)


def assert_rolled_up(kind: str, before: Model, layers: int = 1) -> Model:
    after, records = roll_up(before)
    assert [record.name for record in records] == [f"unrolled {kind}"] * layers
    assert counts(after)[_OPERATORS[kind]] == layers
    assert not {"LOGISTIC", "TANH"} & counts(after).keys()
    assert_same(before, after)
    return after


@KINDS
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("states", [True, False])
def test_a_layer(kind: str, batch: int, batch_first: bool, states: bool) -> None:
    read = ("sequence", "h", "c")
    assert_rolled_up(kind, unrolled(kind, Sizes(batch), batch_first=batch_first, states=states, read=read))


@KINDS
@pytest.mark.parametrize("steps", [2, 40])
@pytest.mark.parametrize("units", [1, 7])
def test_other_lengths_and_widths(kind: str, steps: int, units: int) -> None:
    assert_rolled_up(kind, unrolled(kind, Sizes(2, steps, 3, units)))


@KINDS
def test_equal_sizes_everywhere(kind: str) -> None:
    assert_rolled_up(kind, unrolled(kind, Sizes(4, 4, 4, 4), read=("sequence", "h")))


@KINDS
def test_without_biases(kind: str) -> None:
    assert_rolled_up(kind, unrolled(kind, bias=False))


@KINDS
def test_only_the_last_state(kind: str) -> None:
    after = assert_rolled_up(kind, unrolled(kind, read=("h",)))
    assert "SLICE" not in counts(after)


@KINDS
def test_hidden_states_within_are_read_from_the_sequence(kind: str) -> None:
    after = assert_rolled_up(kind, unrolled(kind, read=("h1", "sequence", "h2", "h1")))
    assert counts(after)["SLICE"] == 2


@KINDS
@pytest.mark.parametrize("batch", [1, 2])
def test_stacked_and_bidirectional_layers(kind: str, batch: int) -> None:
    before = unrolled(kind, Sizes(batch), layers=2, bidirectional=True)
    assert counts(assert_rolled_up(kind, before, layers=4)).get("REVERSE_V2", 0) == 4


@KINDS
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("layers", [1, 2])
def test_loops_over_cells(kind: str, batch: int, layers: int) -> None:
    assert_rolled_up(kind, unrolled_cells(kind, Sizes(batch, 5), layers=layers), layers)


def test_what_is_made_of_the_last_state_is_no_part_of_the_chain() -> None:
    before = unrolled("LSTM", Sizes(2, 5), read=("sequence", "h"), scale=4)
    after, records = roll_up(before)
    assert len(records) == 1
    assert_same(before, after)


@KINDS
@pytest.mark.parametrize("seed", range(4))
def test_altered_anywhere_the_results_stay(kind: str, seed: int) -> None:
    """Whatever node of a chain computes something else, the file computes it too; most alterations prevent the loop."""
    makers = [
        lambda: unrolled(kind, Sizes(2, 3, 5, 5), states=bool(seed % 2), read=("sequence", "h")),
        lambda: unrolled_cells(kind, Sizes(3, 3, 3, 3)),
    ]
    assert_altered_models_compute_the_same(makers[seed // 2](), seed)


@KINDS
@pytest.mark.parametrize(
    "change", ["weights", "activation", "clip", "order", "twice", "skip"], ids=lambda change: f"another_{change}"
)
def test_a_chain_altered_at_one_step_stays(kind: str, change: str) -> None:
    assert_stays(unrolled(kind, Sizes(2, 5), read=("sequence", "h"), **{change: 2}))


@pytest.mark.parametrize("change", ["row", "gates", "scale"])
@pytest.mark.parametrize("step", [2, 3])
def test_an_lstm_altered_at_one_step_stays(change: str, step: int) -> None:
    assert_stays(unrolled("LSTM", Sizes(2, 5), states=True, **{change: step}))


@pytest.mark.parametrize("change", ["weights", "activation", "clip", "row", "gates", "scale"])
def test_an_lstm_altered_at_the_first_step_stays(change: str) -> None:
    assert_stays(unrolled("LSTM", Sizes(2, 5), states=True, **{change: 0}))


def test_memory_that_is_read_within_keeps_the_chain() -> None:
    assert_stays(unrolled("LSTM", read=("sequence", "c1")))


@KINDS
def test_one_step_stays(kind: str) -> None:
    assert_stays(unrolled(kind, Sizes(steps=1), states=True, read=("sequence", "h")))


@KINDS
@pytest.mark.parametrize("sizes", [Sizes(1, 3), Sizes(2, 6, 3, 9)])
def test_signatures_and_names_stay(kind: str, sizes: Sizes) -> None:
    read: Sequence[str] = ("h", "sequence")
    before = unrolled(kind, sizes, read=read)
    after, _ = roll_up(before)
    for graph in (before.subgraphs[0], after.subgraphs[0]):
        names: list[Any] = [graph.tensors[t].name for t in (*graph.inputs, *graph.outputs)]
        assert names == [
            before.subgraphs[0].tensors[t].name for t in (*before.subgraphs[0].inputs, *before.subgraphs[0].outputs)
        ]
        assert len({spec.name for spec in graph.tensors}) == len(graph.tensors)
