"""``litecl tune``: measures a GPU's tiles within a model, and keeps them for later models; with a fake clock."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate, DelegationReport, Tuning, disk
from litecl.delegate.devices import choose
from litecl.delegate.gpu.target import GpuTarget
from litecl.delegate.tuning import Measurement, Schedule, Tiled, load, measurement, save
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.file.writer import write_file
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.perf import tiles
from litecl.perf.feeds import random_inputs
from litecl.perf.models import layers
from litecl.perf.tiles import Times, tuned_model
from litecl.perf.timing import Tick
from support.build import Graph, model, randn
from support.command import data, failure, text
from support.devices import as_on_a_gpu
from support.gpu_nets import check
from support.gpu_products import depthwise

_X = randn(np.random.default_rng(2), 33, 64)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of two products of one size and one of another."""
    g, rng = Graph(), np.random.default_rng(1)
    y = g.input(_X.shape)
    for columns in (64, 64, 20):
        y = g.op(FULLY_CONNECTED, [y, g.const(randn(rng, columns, 64, scale=0.2)), None], FullyConnectedOptions())
    write_file(model(g.build(y)), tmp_path / "dense.tflite")
    return tmp_path / "dense.tflite"


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep tables from wrapping their cells."""
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    return as_on_a_gpu(monkeypatch, tmp_path / "cache" / disk.OWN)


def _tiles(interpreter: Interpreter) -> list[Tiled]:
    return [row.tiled for row in DelegationReport.of(interpreter).kernels if row.tiled is not None]


def _prefers(rows: int) -> Any:
    """Return a timer for which tiles with this number of rows take a tenth of the others' time."""

    def timer(interpreters: Sequence[Interpreter], tick: Tick) -> list[Times]:
        tick()
        return [
            {str(tiled.products): 0.1 if tiled.tile.rows == rows else 1.0 for tiled in _tiles(interpreter)}
            for interpreter in interpreters
        ]

    return timer


def _run(path: Path, **options: Any) -> tuple[Array, list[Tiled]]:
    interpreter = Interpreter(path, delegates=[CLDelegate(**options, profile=True, strict=True)] if options else [])
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, _X)
    interpreter.invoke()
    got = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    return got, _tiles(interpreter) if options else []


def test_what_is_measured_is_used_from_then_on(path: Path, options: dict[str, Any]) -> None:
    """By this device alone, and with the same results except for the order of sums."""
    folder, device = options["cache_dir"], choose(options["device"])
    before, usual = _run(path, **options)
    assert {tiled.source for tiled in usual} == {"estimate"}
    found = tuned_model(path, {}, options, folder, timer=_prefers(16))
    assert [(str(one.products), one.launches) for one in found.products] == [
        ("1 x 33 x 64 x 64 of rows, fp32", 2),
        ("1 x 33 x 20 x 64 of rows, fp32", 1),
    ]
    assert {one.tile.rows for one in found.products} == {16}
    after, chosen = _run(path, **options)
    assert {(tiled.source, tiled.tile.rows) for tiled in chosen} == {("measured", 16)}
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(after, _run(path)[0], rtol=1e-5, atol=1e-5)
    assert load(folder, device.identity).tiles.keys() == {str(one.products) for one in found.products}
    assert not load(folder, (*device.identity, "a newer driver")).tiles
    (file,) = folder.glob("tuning-*.json")
    file.write_text(file.read_text()[:-20])
    assert _run(path, **options)[1] == usual


def test_groups_of_depthwise_convolutions_are_measured(tmp_path: Path, options: dict[str, Any]) -> None:
    """As tiles are: of lines of an image, by channels."""
    net, path = depthwise(9, 20, 3), tmp_path / "depthwise.tflite"
    write_file(model(net.graph.build(net.output)), path)
    found = tuned_model(path, {}, options, options["cache_dir"], timer=_prefers(64)).products
    assert [str(one.products) for one in found] == ["18 x 10 x 20 x 9 of depthwise windows, fp32"]
    (tiled,) = _tiles(check(net, {**options, "profile": True}))
    assert (tiled.source, tiled.tile.rows) == ("measured", 64)
    assert tiled.tile == found[0].tile != found[0].usual


def test_products_are_measured_once(path: Path, options: dict[str, Any]) -> None:
    """Unless it is asked for again; those of another precision are others."""
    folder = options["cache_dir"]
    assert len(tuned_model(path, {}, options, folder, timer=_prefers(16)).products) == 2
    assert not tuned_model(path, {}, options, folder, timer=_prefers(64)).products
    halved = tuned_model(path, {}, {**options, "precision": "fp16"}, folder, timer=_prefers(64)).products
    assert [one.products.arithmetic for one in halved] == ["fp16"] * 2
    again = tuned_model(path, {}, options, folder, again=True, timer=_prefers(64)).products
    assert [one.tile.rows for one in again] == [64, 64]
    assert {tiled.tile.rows for tiled in _run(path, **options)[1]} == {64}


def test_what_is_not_clearly_faster_leaves_the_estimate(path: Path, options: dict[str, Any]) -> None:
    def timer(interpreters: Sequence[Interpreter], tick: Tick) -> list[Times]:
        return [
            {str(tiled.products): ms for tiled in _tiles(one)}
            for one, ms in zip(interpreters, (1.0, 0.97), strict=True)
        ]

    _, usual = _run(path, **options)
    found = tuned_model(path, {}, options, options["cache_dir"], timer=timer)
    assert {one.products: one.tile for one in found.products} == {tiled.products: tiled.tile for tiled in usual}
    assert all(one.ms == one.usual_ms == 1.0 for one in found.products)


def test_candidates_with_which_a_device_fails_are_left_out(path: Path, options: dict[str, Any]) -> None:
    """Others are measured nevertheless; where all fail nothing is kept."""
    for failing in (1, 99):
        calls: list[int] = []

        def timer(interpreters: Sequence[Interpreter], tick: Tick, failing: int = failing, calls: Any = calls) -> Any:
            calls.append(1)
            if len(calls) <= failing:
                raise DelegateError("out of registers")
            return _prefers(64)(interpreters, tick)

        found = tuned_model(path, {}, options, options["cache_dir"], again=True, timer=timer)
        assert len(found.problems) == min(failing, len(calls))
        assert all("out of registers" in problem for problem in found.problems)
        assert [bool(one.ratios) for one in found.products] == [failing == 1] * 2


def test_a_tile_that_computes_anything_else_is_left_out(
    path: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is timed that is wrong."""
    monkeypatch.setattr(tiles, "difference", lambda got, expected: 0.5)
    found = tuned_model(path, {}, options, options["cache_dir"], timer=lambda *_: pytest.fail("timed"))
    assert found.problems and all("an output changes by 5.0e-01 of its magnitude" in one for one in found.problems)
    assert not (options["cache_dir"] / "tuning").exists()
    assert not load(options["cache_dir"], found.device.identity).tiles


def test_states_that_go_on_are_no_difference(options: dict[str, Any]) -> None:
    """Of an LSTM the usual tiles' model has run more often than the one beside it."""

    def timer(interpreters: Sequence[Interpreter], tick: Tick) -> Sequence[Times]:
        for interpreter in interpreters:
            interpreter.invoke()
        return _prefers(16)(interpreters, tick)

    content = layers.lstm(2, 8, 16)
    inputs = random_inputs(Interpreter(content).get_input_details(), seed=0)
    found = tuned_model(content, inputs, options, options["cache_dir"], timer=timer)
    assert found.products and not found.problems


def test_what_the_device_has_been_measured_for_stays(path: Path, options: dict[str, Any]) -> None:
    """Settings of the device, which ``litecl devices --tuning`` measures, are used and kept."""
    device, folder = choose(options["device"]), options["cache_dir"]
    schedules = {"product_local": Schedule(items_per_unit=2)}
    save(folder, device.identity, device.name, Measurement(Tuning(schedules=schedules)))
    tuned_model(path, {}, options, folder, timer=_prefers(16))
    kept = measurement(folder, device.identity)
    assert kept is not None and kept.tuning.schedules == schedules and len(kept.tuning.tiles) == 2


@pytest.mark.skipif(isinstance(choose(num_threads=1).target(), GpuTarget), reason="there is no other device than a GPU")
def test_only_gpus_have_tiles(path: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    said = failure(capsys, "tune", path, "--device", choose(num_threads=1).name, "--cache", tmp_path)
    assert "`tune` needs a GPU; got" in said


def test_the_command(
    path: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It measures by the device's clock."""
    monkeypatch.setattr(tiles, "_ROUNDS", 1)
    folder = options["cache_dir"]
    arguments = ["tune", path, "--device", choose(options["device"]).name, "--cache", folder]
    (found,) = data(capsys, *arguments)["models"]
    assert {row["products"] for row in found["products"]} == load(
        folder, choose(options["device"]).identity
    ).tiles.keys()
    assert all(row["usual_ms"] > 0 and row["ratios"] for row in found["products"])
    assert Path(found["file"]).parent == folder and not found["problems"]
    assert "were measured before (--again)" in text(capsys, *arguments)
    shown = text(capsys, *arguments, "--again")
    assert all(word in shown for word in ("1 x 33 x 64 x 64 of rows, fp32", "usual tile", "kept in"))
