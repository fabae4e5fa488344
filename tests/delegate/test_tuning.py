"""Tunings: in files that can't be spoilt, read by plans, and without influence on results."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.cli import main
from litecl.delegate import CLDelegate, Tuning, disk
from litecl.delegate.cpu.target import CpuTarget
from litecl.delegate.devices import choose
from litecl.delegate.gpu.properties import Gpu
from litecl.delegate.gpu.target import GpuTarget
from litecl.delegate.gpu.tiles import local_share
from litecl.delegate.tuning import (
    GroupTile,
    Measurement,
    Schedule,
    TileShape,
    Timing,
    file_of,
    load,
    measurement,
    save,
    save_tiles,
)
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.graph import Array
from litecl.perf import tuning as measuring
from litecl.perf.feeds import run_on
from litecl.perf.models import layers
from support import compare, oracle
from support.build import randn
from support.devices import as_on_a_gpu
from support.planned_gpu import GPUS, PlannedGpu

DEVICE = ("a platform", "OpenCL 3.0", "a device", "1", "avx2")
SCHEDULE = Schedule(most=5e5, tiles=(TileShape(3, 1, 0.5),))
FOUND = Measurement(
    Tuning(64, 1e7, {"gemm": SCHEDULE}), (Timing("gemm.most", "a model", {"500,000": 1.5, "1,000,000": 2.5}),)
)


def test_what_is_kept_is_found_by_the_same_device_and_driver(tmp_path: Path) -> None:
    assert load(tmp_path, DEVICE) == load(None, DEVICE) == Tuning()
    save(tmp_path / "new", DEVICE, "a device", FOUND)
    assert measurement(tmp_path / "new", DEVICE) == FOUND
    assert load(tmp_path / "new", DEVICE) == FOUND.tuning
    for i in range(len(DEVICE)):
        assert load(tmp_path / "new", (*DEVICE[:i], "another", *DEVICE[i + 1 :])) == Tuning()


def _content(**changes: object) -> bytes:
    tuning = {"winograd_channels": 64, "small_flops": 1e7, "schedules": {"gemm": asdict(SCHEDULE)}}
    return json.dumps({"version": 4, "tuning": tuning, "timings": [], **changes}).encode()


def _schedules(content: Any) -> bytes:
    return _content(tuning={"winograd_channels": 64, "small_flops": 1e7, "schedules": content})


def test_a_file_without_timings_counts(tmp_path: Path) -> None:
    file_of(tmp_path, DEVICE).write_bytes(_content())
    assert load(tmp_path, DEVICE) == FOUND.tuning


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"[" * 100_000,
        _content()[:-9],
        _content(version=0),
        _content(version=None),
        _content(tuning=None),
        _content(tuning={"winograd_channels": 64, "small_flops": 1e7}),
        _schedules({"gemm": {"most": -1}}),
        _schedules({"gemm": {"tiles": [{"rows": 3}]}}),
        _schedules([]),
        _content(tuning={"small_flops": float("nan")}),
        _content(tuning={"small_flops": 10**400}),
        _content(tuning={"unknown": 1}),
        _content(timings=None),
        _content(timings=[{}]),
        _content(timings=[{"choice": "gemm.most", "subject": "", "times_ms": {"a": None}}]),
    ],
    ids=range(19),
)
def test_a_file_that_is_corrupt_or_of_another_version_counts_as_none(content: bytes, tmp_path: Path) -> None:
    file_of(tmp_path, DEVICE).write_bytes(content)
    assert measurement(tmp_path, DEVICE) is None
    assert load(tmp_path, DEVICE) == Tuning()
    save(tmp_path, DEVICE, "a device", FOUND)
    assert measurement(tmp_path, DEVICE) == FOUND


def test_a_file_that_cannot_be_read_is_no_error_but_one_that_cannot_be_written_is(tmp_path: Path) -> None:
    file_of(tmp_path, DEVICE).mkdir()
    with pytest.raises(OSError, match=file_of(tmp_path, DEVICE).name):
        save(tmp_path, DEVICE, "a device", FOUND)
    assert load(tmp_path, DEVICE) == Tuning()


def test_writers_leave_what_one_of_them_wrote(tmp_path: Path) -> None:
    written = [Measurement(Tuning(channels), FOUND.timings * channels) for channels in (1, 50)]
    save(tmp_path, DEVICE, "a device", written[0])
    with ThreadPoolExecutor(2) as writers:
        waiting = [writers.submit(save, tmp_path, DEVICE, "a device", written[i % 2]) for i in range(200)]
        while not all(future.done() for future in waiting):
            assert measurement(tmp_path, DEVICE) in written
    assert measurement(tmp_path, DEVICE) in written
    assert list(tmp_path.iterdir()) == [file_of(tmp_path, DEVICE)]


@pytest.mark.parametrize("value", [-1, inf, float("nan"), "64", None])
def test_values_out_of_range_are_refused(value: Any) -> None:
    with pytest.raises(DelegateError, match="winograd_channels: expected a number"):
        Tuning(winograd_channels=value)


def _run(content: bytes, feed: Array, **options: Any) -> tuple[Array, Interpreter]:
    interpreter = Interpreter(model_content=content, delegates=[CLDelegate(strict=True, **options)])
    (output,) = run_on(interpreter, [feed])
    return output, interpreter


@pytest.mark.skipif(isinstance(choose(num_threads=1).target(), GpuTarget), reason="Winograd's algorithm is for CPUs")
@pytest.mark.parametrize(("least", "kernel"), [(0, "winograd"), (33, "conv_lines")])
@pytest.mark.parametrize("kept", [False, True], ids=["given", "kept in the cache"])
def test_winograd_or_direct_with_the_same_result(least: int, kernel: str, kept: bool, tmp_path: Path) -> None:
    content, feed = layers.convolution(20, 32), randn(np.random.default_rng(1), 1, 20, 20, 32)
    tuning = Tuning(winograd_channels=least)
    if kept:
        found = choose(num_threads=1)
        save(tmp_path / disk.OWN, found.identity, found.name, Measurement(tuning))
    options = {} if kept else {"tuning": tuning}
    got, interpreter = _run(content, feed, num_threads=1, profile=True, cache_dir=tmp_path, **options)
    assert {row.kernel for row in interpreter.delegation_report().kernels} == {kernel}
    compare.assert_close(got, oracle.run(content, [feed])[0], compare.DEVICE["float32"])


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ({"items_per_unit": 0}, "items_per_unit: expected a whole number from 1"),
        ({"group": 2.5}, "group: expected a whole number from 1"),
        ({"least": 0}, "least: expected a number from 1"),
        ({"most": inf}, "most: expected a number from 1"),
        ({"near_bytes": -1}, "near_bytes: expected a whole number from 0"),
    ],
)
def test_schedules_out_of_range_are_refused(schedule: dict[str, Any], said: str) -> None:
    with pytest.raises(DelegateError, match=said):
        Schedule(**schedule)


@pytest.mark.parametrize("tile", [(0, 1, 1.0), (1, 33, 1.0), (1, 1, 0.0)])
def test_tiles_out_of_range_are_refused(tile: tuple[int, int, float]) -> None:
    with pytest.raises(DelegateError, match="of a tile: expected a"):
        TileShape(*tile)


def test_work_items_have_the_arithmetic_that_is_asked_for() -> None:
    shares = []
    for most in (1e5, 1e6, 1e7):
        tuning = Tuning(schedules={"gemm": Schedule(items_per_unit=8, most=most)})
        target = CpuTarget(vector_width=8, compute_units=1, tuning=tuning)
        shares.append(target.product("gemm", target.tile_for("gemm", 1000, 64), (1000, 64, 64)).shares[0])
    assert shares == sorted(set(shares))


def test_how_much_arithmetic_makes_a_model_small(tmp_path: Path) -> None:
    single, large = choose(), choose(flops=inf)
    assert choose(None, None, 1e6, lambda found: Tuning(small_flops=1e7)) == single
    assert choose(None, None, 1e6, lambda found: Tuning(small_flops=1e5)) == large
    content, feed = layers.products(4, 8, 1), randn(np.random.default_rng(3), 1, 4, 4, 8)
    expected = oracle.run(content, [feed])[0]
    for small_flops, name in ((1e15, single.name), (0, large.name)):
        save(tmp_path, large.identity, large.name, Measurement(Tuning(small_flops=small_flops)))
        got, interpreter = _run(content, feed, cache_dir=tmp_path)
        assert interpreter.delegation_report().device == name
        compare.assert_close(got, expected, compare.DEVICE["float32"])


def test_a_crossover_is_where_the_second_way_begins_to_stay_ahead() -> None:
    assert measuring.crossover((8, 16, 32), [(2, 1), (2, 1), (2, 1)], 64) == 8
    assert measuring.crossover((8, 16, 32), [(2, 1), (1, 2), (2, 1)], 64) == 32
    assert measuring.crossover((8, 16, 32), [(1, 2), (2, 1), (3, 1)], 64) == 16
    assert measuring.crossover((8, 16, 32), [(2, 1), (2, 1), (1, 1)], 64) == 64


@pytest.mark.nightly
def test_measuring_is_done_once_unless_it_is_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"_ROUNDS": 1, "_CHANNELS": (16,), "_CONVOLUTION_SIDE": 16, "_PRODUCTS": (8, 16, 1)}
    products = dict.fromkeys(measuring._SUBJECTS, lambda: ("a product", layers.products(8, 16, 1)))
    monkeypatch.setattr(measuring, "_SUBJECTS", products)
    monkeypatch.setattr(measuring, "_CPU_TRIALS", measuring._CPU_TRIALS[:1])
    for name, value in {**small, "_MODEL_SIDES": (4, 5)}.items():
        monkeypatch.setattr(measuring, name, value)
    first = measuring.tuned(tmp_path)
    assert all(row.file.is_file() for row in first)
    for row in first:
        assert {timing.choice for timing in row.timings} == {*row.choices}
        assert all(ms > 0 for timing in row.timings for ms in timing.times_ms.values())
    measured: list[Any] = []
    monkeypatch.setattr(measuring, "measure", lambda device, directory, tick: measured.append(device) or FOUND)
    assert measuring.tuned(tmp_path) == first
    assert not measured
    assert all(row.tuning == FOUND.tuning for row in measuring.tuned(tmp_path, again=True))
    assert len(measured) == len(first)


@pytest.mark.parametrize("name", GPUS)
def test_what_is_timed_on_a_gpu_is_what_it_launches(name: str) -> None:
    for trial in measuring._GPU_TRIALS:
        device = PlannedGpu(name)
        content = measuring._SUBJECTS[trial.kernel]()[1]
        Interpreter(model_content=content, delegates=[CLDelegate(device=device)]).allocate_tensors()
        assert trial.kernel in {work.launch.kernel for plan in device.plans for work in plan.works}


def test_groups_that_keep_a_gpu_busy() -> None:
    """By the family, unless it was tuned: of 64 work-items in lockstep a group is one wave, and a unit takes four."""
    groups = {}
    for subgroup, tuning in ((32, Tuning()), (64, Tuning()), (64, Tuning(schedules={"product_local": Schedule(8)}))):
        gpu = Gpu("amd", subgroup)
        target = GpuTarget(4, 100, max_work_group_size=256, local_mem_bytes=1 << 15, gpu=gpu, tuning=tuning)
        share = local_share(target, 1, 784, 64, 2048)
        assert share is not None
        groups[subgroup, len(tuning.schedules)] = share.tiles * share.parts
    assert groups == {(32, 0): 200, (64, 0): 400, (64, 1): 800}


@pytest.mark.parametrize("groups", [1, 40])
def test_other_tiles_compute_the_same(groups: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    content, feed = layers.convolution(20, 32), randn(np.random.default_rng(1), 1, 20, 20, 32)
    tuning = Tuning(schedules={"product_local": Schedule(items_per_unit=groups)})
    got, _ = _run(content, feed, **as_on_a_gpu(monkeypatch, tmp_path), tuning=tuning)
    compare.assert_close(got, oracle.run(content, [feed])[0], compare.DEVICE["float32"])


def test_the_command_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(measuring, "measure", lambda device, directory, tick: FOUND)
    assert main(["devices", "--json"]) == 0
    assert "tuning" not in json.loads(capsys.readouterr().out)
    assert main(["devices", "--tuning", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in found["tuning"]] == [row["name"] for row in found["devices"]]
    row = found["tuning"][0]
    assert Path(row["file"]).parent == tmp_path / ".cache" / "litecl" / disk.OWN
    assert row["tuning"] == json.loads(json.dumps(asdict(FOUND.tuning)))
    assert row["defaults"] == vars(Tuning())
    assert row["choices"] == {"gemm.most": [5e5, choose().target().schedule("gemm").most]}
    assert row["timings"] == [
        {"choice": "gemm.most", "subject": "a model", "times_ms": {"500,000": 1.5, "1,000,000": 2.5}}
    ]
    assert main(["devices", "--tuning"]) == 0
    shown = capsys.readouterr().out
    assert all(text in shown for text in ("gemm.most", "1,000,000", "a model", "500,000 1.500", row["file"]))
    assert main(["devices", "--again"]) == 0
    assert row["file"] in capsys.readouterr().out


def test_tiles_stay_when_a_device_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They don't affect its other settings, which are still measured."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(measuring, "measure", lambda device, directory, tick: FOUND)
    folder, found = tmp_path / "litecl" / disk.OWN, choose()
    tiles = {"1 x 2 x 3 x 4 of rows, fp32": GroupTile(32, 32, 4, 4)}
    save_tiles(folder, found.identity, found.name, tiles)
    for arguments in (["--tuning"], ["--again"]):
        assert main(["devices", *arguments]) == 0
        assert "and tiles for 1 sizes of products, from litecl tune" in capsys.readouterr().out
        assert measurement(folder, found.identity) == replace(FOUND, tuning=replace(FOUND.tuning, tiles=tiles))


def test_what_cannot_be_put_in_its_place_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "taken" / "by").mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        disk.write_atomically(tmp_path / "taken", b"content")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
