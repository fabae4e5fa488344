"""Recurrent operators of all forms side by side in one region, over several invokes, in every mode of a device."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from litecl.cases import Case, hybrid, integer_lstm, rnn
from litecl.delegate import CLDelegate
from litecl.delegate.opencl.devices import device
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import ABSENT, Array, Model, Node, Subgraph
from support import compare, devices
from support.as_gpu import as_gpu

_INTEGERS = (
    ("UNIDIRECTIONAL_SEQUENCE_LSTM", "batch first, everything"),
    ("LSTM", "8-bit products, clipped"),
    ("SVDF", "rank 2, no bias"),
)
_HYBRID = (
    ("UNIDIRECTIONAL_SEQUENCE_LSTM", "8 bits, projection, batch first"),
    ("UNIDIRECTIONAL_SEQUENCE_RNN", "8 bits, asymmetric"),
)
_FLOATS = (("BIDIRECTIONAL_SEQUENCE_RNN", "sizes differ, merged, time first"), ("SVDF", "rank 2, bias"))


def _named(table: Sequence[Case], names: Sequence[tuple[str, str]]) -> list[Case]:
    return [next(c for c in table if (c.op.name, c.name) == name) for name in names]


_CASES = (
    *_named(integer_lstm.CASES, _INTEGERS),
    *_named(hybrid.CASES, _HYBRID),
    *_named(rnn.CASES, _FLOATS),
)


def _side_by_side(cases: Sequence[Case]) -> Model:
    """Return the models of cases, which are a node each, as one model."""
    tensors: list[Any] = []
    nodes, inputs, outputs = [], [], []
    for case in cases:
        (graph,) = case.model().subgraphs
        (node,) = graph.nodes
        first = len(tensors)

        def moved(indices: Sequence[int], by: int = first) -> tuple[int, ...]:
            return tuple(i if i == ABSENT else i + by for i in indices)

        tensors += [replace(spec, name=f"{first}_{spec.name}") for spec in graph.tensors]
        inner, version = moved(node.intermediates), node.version
        nodes.append(Node(node.op, moved(node.inputs), moved(node.outputs), node.options, inner, version))
        inputs += moved(graph.inputs)
        outputs += moved(graph.outputs)
    return Model((Subgraph(tuple(tensors), tuple(inputs), tuple(outputs), tuple(nodes), name="main"),))


def _feeds(cases: Sequence[Case], rng: np.random.Generator) -> list[Array]:
    """Return inputs like those of the cases, in other orders of their elements."""
    return [rng.permutation(feed.ravel()).reshape(feed.shape) for case in cases for feed in case.feeds]


def _agrees(cases: Sequence[Case], options: dict[str, Any]) -> None:
    # In some draws a hybrid row's value lies so near a half that the last bit of tanh moves it by a step, and then all.
    model, rng = _side_by_side(cases), np.random.default_rng(6)
    graph = model.subgraphs[0]
    states = [t for t, spec in enumerate(graph.tensors) if spec.is_variable]
    device = Interpreter(model, delegates=[CLDelegate(strict=True, **options)])
    plain = Interpreter(model)
    for interpreter in (device, plain):
        interpreter.allocate_tensors()
    assert len(device.delegation_report().partitions) == 1
    for invoke in range(4):
        feeds = _feeds(cases, rng)
        if invoke == 3:
            device.reset_all_variables(), plain.reset_all_variables()
        for interpreter in (device, plain):
            for tensor, feed in zip(graph.inputs, feeds, strict=True):
                interpreter.set_tensor(tensor, feed)
            interpreter.invoke()
        for tensor in (*graph.outputs, *(states if invoke % 2 else ())):
            got, expected = device.get_tensor(tensor), plain.get_tensor(tensor)
            compare.assert_close(got, expected, compare.DEVICE.get(expected.dtype.name, 0.0))
    assert device.delegation_report().claimed == len(cases)


_MODES = {
    "two threads": {"num_threads": 2},
    "queued, with a profile": {"num_threads": 1, "queue_loops": True, "profile": True},
}


@pytest.mark.parametrize("mode", _MODES)
def test_states(mode: str) -> None:
    _agrees(_CASES, _MODES[mode])


@pytest.mark.nightly
def test_states_as_on_a_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any) -> None:
    devices.needs_groups()
    _agrees(_CASES, devices.as_on_a_gpu(monkeypatch, tmp_path_factory.getbasetemp() / "recurrent"))


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:Non-empty compiler output")
def test_work_items_take_their_own_branches(tmp_path: Path) -> None:
    """In optimised programs too, which random graphs run as on a GPU: PoCL alone would let one decide for all."""
    with mock.patch.multiple(device, **as_gpu()):
        cases = _named(integer_lstm.CASES, [("LSTM", "coupled gates, projection")])
        _agrees(cases, {"device": devices.tested()[0], "cache_dir": tmp_path})
