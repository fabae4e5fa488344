"""LSTMs with their weights in registers, on whatever device there is: every share of units, and what stays apart."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.cases import Case, lstm
from litecl.delegate import CLDelegate
from litecl.delegate.gpu.cell_groups import cell_share
from litecl.delegate.gpu.properties import Gpu
from litecl.delegate.opencl.devices import device
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model
from litecl.interpreter.ops.unidirectional_sequence_lstm import (
    UNIDIRECTIONAL_SEQUENCE_LSTM,
    UnidirectionalSequenceLSTMOptions,
)
from litecl.interpreter.schema import ActivationFunctionType
from support import compare, devices, oracle
from support.build import Graph, model
from support.planned_gpu import PlannedGpu

# Those of lstm_local.cl with each set of macros, and in each order of time and batch; and one of lstm.cl.
_NAMES = (
    *("plain, batch first", "one cell", "coupled gates", "peephole", "cell clip", "RELU6", "as Keras makes them"),
    *("linked, coupled gates, batch first", "coupled gates, peephole", "merged", "everything"),
)
_CASES = [case for case in (*lstm.SEQUENCES, *lstm.BOTH_WAYS) if case.name in _NAMES]


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Options of delegates that take the first device for a GPU."""
    with pytest.MonkeyPatch.context() as patch:
        yield devices.as_on_a_gpu(patch, tmp_path_factory.mktemp("programs"))


@pytest.mark.parametrize("case", _CASES, ids=repr)
def test_agrees(options: dict[str, Any], case: Case) -> None:
    """Two runs, the second with the states of the first, agree with LiteRT."""
    if case.name == "everything":
        devices.needs_groups()
    content = write(case.model())
    interpreter = Interpreter(model_content=content, delegates=[CLDelegate(**options, strict=True)])
    interpreter.allocate_tensors()
    (row,) = interpreter.delegation_report().partitions
    assert ("lstm_local" in row.kernels) == (case.name != "everything")
    for feeds in (case.feeds, [feed * np.float32(0.5) for feed in case.feeds]):
        for detail, feed in zip(interpreter.get_input_details(), feeds, strict=True):
            interpreter.set_tensor(detail["index"], feed)
        interpreter.invoke()
    wanted = oracle.run(content, case.feeds)
    interpreter.reset_all_variables()
    for detail, feed in zip(interpreter.get_input_details(), case.feeds, strict=True):
        interpreter.set_tensor(detail["index"], feed)
    interpreter.invoke()
    for detail, expected in zip(interpreter.get_output_details(), wanted, strict=True):
        compare.assert_close(np.asarray(interpreter.get_tensor(detail["index"])), expected, compare.DEVICE["float32"])


def sequence(units: int, steps: int, batch: int, depth: int = 8) -> tuple[Model, Array, Array]:
    """Return an LSTM without bias, its inputs, and the outputs of a float64 loop after two runs."""
    rng = np.random.default_rng(units)
    g, x = Graph(), rng.standard_normal((steps, batch, depth)).astype(np.float32)
    weights = [(rng.standard_normal((units, n)) * n**-0.5).astype(np.float32) for n in [depth] * 4 + [units] * 4]
    zero = np.zeros(units, np.float32)
    inputs = [g.input(x.shape), *map(g.const, weights), None, None, None, *(g.const(zero) for _ in range(4))]
    states = [g.variable((batch, units)), g.variable((batch, units))]
    chosen = UnidirectionalSequenceLSTMOptions(ActivationFunctionType.TANH, time_major=True)
    y = g.op(UNIDIRECTIONAL_SEQUENCE_LSTM, [*inputs, None, None, *states], chosen)
    h, c = np.zeros((batch, units)), np.zeros((batch, units))
    for _ in range(2):
        outs = []
        for row in x.astype(np.float64):
            i, f, n, o = (row @ w.T + h @ r.T for w, r in zip(weights[:4], weights[4:], strict=True))
            c = c / (1 + np.exp(-f)) + np.tanh(n) / (1 + np.exp(-i))
            h = np.tanh(c) / (1 + np.exp(-o))
            outs.append(h)
    return model(g.build(y)), x, np.stack(outs)


@pytest.mark.parametrize(("units", "batch", "launches"), [(3, 1, 2), (17, 3, 2), (64, 2, 2), (70, 2, 5), (256, 1, 5)])
def test_shares_of_units(units: int, batch: int, launches: int, options: dict[str, Any]) -> None:
    """One group; several, which are queued step by step where it is not known that they run at once."""
    check_sequence(units, 4, batch, launches, options)


@pytest.mark.skipif(not devices.tested()[0].name.startswith("llvmpipe"), reason="groups that are sure to run at once")
@pytest.mark.parametrize(("units", "steps"), [(70, 2), (128, 5), (128, 100)])
def test_handing_on(units: int, steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several groups run at once, which rusticl's threads do where there are as many."""
    chosen, target = devices.as_on_a_gpu(monkeypatch, tmp_path), device.target_of
    monkeypatch.setattr(device, "target_of", lambda *given: replace(target(*given), gpu=Gpu("intel"), compute_units=8))
    check_sequence(units, steps, 1, 2, chosen)


def check_sequence(units: int, steps: int, batch: int, launches: int, options: dict[str, Any]) -> None:
    """Run an LSTM twice and compare."""
    model_, x, expected = sequence(units, steps, batch)
    interpreter = Interpreter(model_, delegates=[CLDelegate(**options, strict=True)])
    interpreter.allocate_tensors()
    for _ in range(2):
        interpreter.set_tensor(0, x)
        interpreter.invoke()
    got = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
    assert interpreter.delegation_report().counters.kernel_launches == launches


def test_at_most_two_launches() -> None:
    """On a GPU whose units surely run all groups at once."""
    for units in (64, 128, 256, 512):
        absent = PlannedGpu("nvidia")
        delegate = CLDelegate(device=absent, strict=True)
        Interpreter(sequence(units, 100, 1)[0], delegates=[delegate]).allocate_tensors()
        launches = [work.launch for work in absent.plans[0].works]
        assert len(launches) == 2
        assert launches[1].defines.get("HANDED_ON") == (1 if units > 64 else None)


def test_groups_that_wait_for_each_other_run_at_once() -> None:
    """At most half of a GPU's units have one, and none elsewhere."""
    target = PlannedGpu("nvidia").target()
    for units, batch, at_once in ((256, 1, True), (256, 4, True), (256, 5, False), (64, 60, True)):
        share = cell_share(target, units, batch)
        assert share is not None
        assert (share.groups * batch <= target.compute_units // 2) == share.at_once == at_once
        assert share.units * share.groups >= units
        assert share.lanes * share.depth >= units
        apart = cell_share(replace(target, gpu=Gpu()), units, batch)
        assert apart is not None
        assert not apart.at_once
    assert cell_share(target, 1025, 1) is None
    assert cell_share(replace(target, local_mem_bytes=0), 256, 1) is None
