"""Many inputs: parts that are there whole or not at all, going on, files and rows, engines."""

import json
import os
import pickle
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl import Predictor
from litecl.cases import hybrid
from litecl.cli import main
from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.writer import write, write_file
from litecl.interpreter.ops.binary import SUB, SubOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED
from litecl.jobs import engines, job
from litecl.jobs.job import ITEM, Job, run_part
from support import killed_worker
from support.build import Graph, model, randn
from support.command import RNG, data, failure, small_model, text

_IN_THREADS = {"processes": False, "preload": ()}  # workers of this process, which keep its signals


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return small_model(tmp_path)


@pytest.fixture
def rows(path: Path, tmp_path: Path) -> Job:
    """A job of 50 rows in 4 parts."""
    np.save(tmp_path / "rows.npy", randn(RNG, 50, 4))
    options = {"cpu": True, "buffers": 2}
    return Job(str(path), (str(tmp_path / "rows.npy"),), str(tmp_path / "out"), True, batch=4, part=15, options=options)


def expected(job_: Job) -> np.ndarray:
    """All results by one predictor, in one batch."""
    return Predictor(job_.model, cpu=True)({"x": np.load(job_.files[0])})["y"]


def require_right(job_: Job) -> None:
    parts = [np.load(job_.path(number)) for number in range(job_.parts)]
    np.testing.assert_array_equal(np.concatenate([part[ITEM] for part in parts]), np.arange(job_.count))
    np.testing.assert_allclose(np.concatenate([part["y"] for part in parts]), expected(job_), rtol=1e-6)
    assert not [*Path(job_.folder).glob("litecl-*.tmp")]


def test_a_part_is_there_whole_or_not_at_all(rows: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    rows.begin()
    assert (rows.count, rows.parts, rows.missing()) == (50, 4, [0, 1, 2, 3])
    run_part(rows, 1)
    with monkeypatch.context() as patch:
        patch.setattr(np, "savez", lambda file, **arrays: (file.write(b"half"), 1 / 0))
        with pytest.raises(ZeroDivisionError):
            run_part(rows, 2)
    assert rows.missing() == [0, 2, 3]
    killed, written = (Path(rows.folder) / f"litecl-{digit * 16}.tmp" for digit in "01")
    mine = [Path(rows.folder) / name for name in ("notes.tmp", "my-litecl-0.tmp")]
    for file in (killed, written, *mine):
        file.write_bytes(b"half")
        os.utime(file, (1e9, 1e9))
    (Path(rows.folder) / "folder.tmp").mkdir()
    os.utime(written)  # another process is writing it
    rows.begin()
    assert not killed.exists() and all(file.read_bytes() == b"half" for file in (written, *mine))
    written.unlink()
    before = rows.path(1).read_bytes()
    for number in (1, *rows.missing()):  # once more: by a worker whose death was told too early
        assert run_part(rows, number).inputs == len(rows.items(number))
    assert rows.path(1).read_bytes() == before
    require_right(rows)


def test_parts_of_inputs_that_have_changed_are_outdated(rows: Job, tmp_path: Path) -> None:
    rows.begin()
    for number in (0, 2):
        run_part(rows, number)
    assert rows.outdated() == []
    later_ns = rows.path(2).stat().st_mtime_ns + 1_000_000_000
    os.utime(rows.files[0], ns=(later_ns, later_ns))
    assert rows.outdated() == [0, 2] and rows.missing() == [1, 3]
    files = [tmp_path / f"{name}.npy" for name in "abcd"]
    for file in files:
        np.save(file, randn(RNG, 1, 4))
    by_file = replace(rows, files=tuple(map(str, files)), rows=False, folder=str(tmp_path / "by_file"), part=2)
    by_file.begin()
    for number in (0, 1):
        run_part(by_file, number)
    os.utime(files[3], ns=(later_ns, later_ns))
    files[0].unlink()
    assert by_file.outdated() == [1]


def test_an_input_that_changes_while_its_part_runs(rows: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    rows.begin()
    save = np.savez

    def changed(file: Any, **arrays: np.ndarray) -> None:
        np.save(rows.files[0], randn(RNG, 50, 4))
        save(file, **arrays)

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez", changed)
        run_part(rows, 1)
    assert rows.outdated() == [1]
    run_part(rows, 1)
    assert rows.outdated() == []


def test_a_run_that_fails_before_its_first_part_leaves_nothing(
    rows: Job, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "run", rows.model, "--inputs", *rows.files, "--rows", "--part", 15
    assert "no device 'none'" in failure(capsys, *words, "--devices", "none", "-o", tmp_path / "a" / "b")
    assert not (tmp_path / "a").exists()
    with pytest.raises(ZeroDivisionError), rows.begun():
        run_part(rows, 1)
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), rows.begun():
        assert rows.missing() == [0, 2, 3]
        raise ZeroDivisionError
    assert {path.name for path in Path(rows.folder).iterdir()} == {"job.json", rows.path(1).name}


def test_a_folder_of_another_job_is_refused(rows: Job) -> None:
    rows.begin()
    with pytest.raises(ModelError, match="parts of another job \\(part differ\\)"):
        replace(rows, part=7).begin()
    Path(rows.model).write_bytes(Path(rows.model).read_bytes() + b" ")
    with pytest.raises(ModelError, match="sha256"):
        rows.begin()


@pytest.mark.parametrize("dynamic", [True, False])
def test_a_job_goes_on_in_the_mode_that_it_began_in(rows: Job, dynamic: bool) -> None:
    """The mode of dynamic range, if a model has it; a delegate and numpy have different defaults."""
    if dynamic:
        Path(rows.model).write_bytes(write(next(case for case in hybrid.CASES if case.op is FULLY_CONNECTED).model()))
    rows.begin()
    replace(rows, options={**rows.options, "dynamic_range": "reference"}).begin()
    for others in ({"cpu": True, "dynamic_range": "asymmetric"}, {"cpu": False}):
        other = replace(rows, options=others)
        with pytest.raises(ModelError, match=r"\(dynamic_range differ\)") if dynamic else nullcontext():
            other.begin()


@pytest.mark.parametrize("content", [b"", b'{"model": "a', b"\xff\xfe", b"[1]", b"[" * 100_000])
def test_a_damaged_record_is_an_error_of_ours(rows: Job, content: bytes) -> None:
    """It is neither overwritten nor taken for that of this job."""
    rows.begin()
    for name, read in (("job.json", rows.begin), ("part-000000.json", rows.unreadable)):
        path = Path(rows.folder) / name
        path.write_bytes(content)
        with pytest.raises(ModelError, match=f"{name}: damaged, expected .*: use a new folder"):
            read()
        assert path.read_bytes() == content


def test_the_record_of_a_job_is_written_whole_or_not_at_all(rows: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    rows.begin()
    path = Path(rows.folder) / "job.json"
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            rows.begin()
    assert path.read_bytes() == before
    assert not [*path.parent.glob("*.tmp")]


def test_the_actors_of_ray_run_parts(rows: Job) -> None:
    told = engines.RunParts(rows)({"part": np.array([0, 3])})
    assert (told["number"], told["inputs"], told["error"]) == ([0, 3], [15, 5], [b"", b""])
    assert rows.missing() == [1, 2]
    Path(rows.files[0]).write_bytes(b"damaged")
    job._mapped.cache_clear()
    (error,) = map(pickle.loads, engines.RunParts(rows)({"part": np.array([1])})["error"])
    assert isinstance(error, ModelError) and "not a .npy file" in str(error)


def test_on_dask(rows: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """On workers that are threads of this process."""
    pytest.importorskip("distributed")
    here = engines._dask_of_this_machine(2) | _IN_THREADS
    monkeypatch.setattr(engines, "_dask_of_this_machine", lambda workers: here)
    assert {done.number for done in engines.on_dask(rows, [0, 1, 2, 3], 2)} == {0, 1, 2, 3}
    require_right(rows)


def test_on_a_dask_cluster_given(rows: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask's configuration, which reads DASK_SCHEDULER_ADDRESS, names it. A part that raises is run once."""
    distributed, dask = pytest.importorskip("distributed"), pytest.importorskip("dask")
    with (
        distributed.LocalCluster(**(engines._dask_of_this_machine(1) | _IN_THREADS)) as cluster,
        dask.config.set({"scheduler-address": cluster.scheduler_address}),
    ):
        assert cluster.scheduler.http_server.address == "127.0.0.1"  # nothing from elsewhere
        assert {done.number for done in engines.on_dask(rows, [0, 1, 2, 3], 2)} == {0, 1, 2, 3}
        require_right(rows)
        tries = tmp_path / "tries"
        monkeypatch.setattr(engines, "run_part", lambda job_, number: tries.open("a").write(f"{number}\n") / 0)
        with pytest.raises(ZeroDivisionError):
            list(engines.on_dask(rows, [3], 2))
        assert tries.read_text() == "3\n"
        monkeypatch.setattr(engines, "run_part", lambda job_, number: __import__("no_such_package"))
        with pytest.raises(engines.EngineError, match="--engine dask: No module named 'no_such_package'"):
            list(engines.on_dask(rows, [3], 2))


@pytest.mark.parametrize(("engine", "package"), [("ray", "ray"), ("dask", "distributed")])
def test_a_worker_is_killed(engine: str, package: str, rows: Job, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """Nothing is lost and nothing there twice. ``python -m tools.workers --kill`` is the long form."""
    pytest.importorskip(package)
    if engine == "ray" and not pytestconfig.getoption("ray"):
        pytest.skip("starts a cluster, which takes up to a minute: --ray")
    np.save(tmp_path / "rows.npy", randn(RNG, 12_000, 4))
    job_ = replace(rows, batch=1, part=1000, options={"cpu": True})
    job_.begin()
    found = killed_worker.killed(job_, engine, 2)
    assert (found["inputs"], found["each_once"], found["parts"]) == (12_000, True, 12)
    assert found["processes"] > 1
    assert found["difference"] < 1e-5
    require_right(job_)


@pytest.mark.parametrize(("engine", "package"), [("ray", "ray"), ("dask", "distributed")])
def test_an_engine_that_is_not_installed(
    engine: str, package: str, rows: Job, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    flags = "--inputs", rows.files[0], "--rows", "--engine", engine, "-o", rows.folder
    assert f"pip install 'litecl[{engine}]'" in failure(capsys, "run", rows.model, *flags)
    assert "no*.npy: No such file" in failure(capsys, "run", rows.model, "--inputs", "no*.npy", "-o", rows.folder)
    assert not Path(rows.folder).exists()


def test_the_command_goes_on_where_it_was(rows: Job, capsys: pytest.CaptureFixture[str]) -> None:
    flags = "--inputs", rows.files[0], "--rows", "--batch", 4, "--part", 15, "--cpu", "-o", rows.folder
    found = data(capsys, "run", rows.model, *flags)
    assert (found["inputs"], found["parts"], found["run_before"], found["missing"]) == (50, 4, 0, [])
    require_right(rows)
    rows.path(2).unlink()
    again = data(capsys, "run", rows.model, *flags)
    assert (again["run_before"], [worker["inputs"] for worker in again["workers"]]) == (35, [15])
    require_right(rows)
    assert "50 inputs in 4 parts, 50 of them resumed" in text(capsys, "run", rows.model, *flags)


def test_files_of_many_kinds(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = {f"{n}.npy": randn(RNG, 1, 4) for n in range(5)}
    for name, value in values.items():
        np.save(tmp_path / name, value)
    (tmp_path / "5.raw").write_bytes(values["0.npy"].tobytes())
    pattern = str(tmp_path / "[0-9].*")
    data(capsys, "run", path, "--inputs", pattern, "--batch", 2, "--devices", "0,1", "-o", tmp_path / "out")
    with np.load(tmp_path / "out" / "part-000000.npz") as part:
        assert part[ITEM].tolist() == [*values, "5.raw"]
        want = Predictor(str(path), cpu=True)({"x": np.concatenate([*values.values(), values["0.npy"]])})["y"]
        np.testing.assert_allclose(part["y"], want, rtol=1e-5)
    assert json.loads((tmp_path / "out" / "job.json").read_text())["count"] == 6


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--inputs", "x.npy"], "expected -o DIR"),
        (["--inputs", "a.npy", "b.npy", "--rows", "-o", "{}/o"], "--rows: expected one .npy file, got 2"),
        (["--inputs", "nothing.npy", "-o", "{}/o"], "nothing.npy: No such file"),
    ],
)
def test_wrong_arguments(
    flags: list[str], message: str, path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in failure(capsys, "run", path, "--cpu", *(flag.format(tmp_path) for flag in flags))


def test_a_folder_is_its_files_named_from_what_holds_them_all(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = tmp_path / "in" / "day=1", tmp_path / "in" / "day=2"
    for folder, count in zip(folders, (2, 1), strict=True):
        folder.mkdir(parents=True)
        for n in range(count):
            np.save(folder / f"{n}.npy", randn(RNG, 1, 4))
    found = data(capsys, "run", path, "--cpu", "--inputs", *folders, "-o", tmp_path / "out")
    assert (found["inputs"], found["workers"][0]["devices"]) == (3, "none")
    with np.load(tmp_path / "out" / "part-000000.npz") as part:
        assert part[ITEM].tolist() == ["day=1/0.npy", "day=1/1.npy", "day=2/0.npy"]


def test_archives_are_the_inputs_of_a_model_of_several(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    g = Graph()
    y = g.op(SUB, [g.input((1, 4)), g.input((1, 4))], SubOptions())
    write_file(model(g.build(y)), tmp_path / "model.tflite")
    names = [*Predictor(tmp_path / "model.tflite", cpu=True).inputs]
    values = randn(RNG, 3, 2, 1, 4)
    for n, (a, b) in enumerate(values):
        np.savez(tmp_path / f"{n}.npz", **{names[1]: b, names[0]: a})
    np.savez(tmp_path / "half.npz", **{names[0]: values[0, 0]})
    run = "run", tmp_path / "model.tflite", "--cpu", "--batch", 1, "--inputs"
    data(capsys, *run, tmp_path / "[0-9].npz", "-o", tmp_path / "out")
    with np.load(tmp_path / "out" / "part-000000.npz") as part:
        (output,) = {*part.files} - {ITEM}
        np.testing.assert_array_equal(part[output], values[:, 0, 0] - values[:, 1, 0])
    said = failure(capsys, *run, tmp_path / "half.npz", "-o", tmp_path / "other")
    assert f"half.npz: expected a value for each of {names}, got {names[:1]}" in said


def test_what_cannot_be_read_is_left_out_and_told(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for n in range(6):
        np.save(folder / f"{n}.npy", randn(RNG, 1, 4))
    np.save(folder / "5.npy", np.ones((1, 4)))
    (folder / "2.npy").write_bytes(b"damaged")
    np.save(folder / "3.npy", randn(RNG, 1, 9))
    run = "run", path, "--cpu", "--batch", 2, "--inputs", folder, "-o", tmp_path / "out"
    for _ in range(2):  # the second time nothing is run any more
        assert main([*map(str, run), "--json"]) == 1
        found = json.loads(capsys.readouterr().out)
        assert (found["inputs"], found["missing"]) == (6, [])
        assert "input 'x': expected float32, got float64" in found["unreadable"]["5.npy"]
        damaged, unfit = found["unreadable"]["2.npy"], found["unreadable"]["3.npy"]
        assert "not a .npy file" in damaged and "expected shape [-1, 4], got [1, 9]" in unfit
    with np.load(tmp_path / "out" / "part-000000.npz") as part:
        assert part[ITEM].tolist() == ["0.npy", "1.npy", "4.npy"]
        x = np.concatenate([np.load(folder / name) for name in part[ITEM]])
        np.testing.assert_allclose(part["y"], Predictor(str(path), cpu=True)({"x": x})["y"], rtol=1e-6)
    assert main([*map(str, run)]) == 1
    assert "3 inputs have no result:" in capsys.readouterr().out
    assert main([*map(str, run[:-1]), str(tmp_path / "alone"), "--part", "1", "--json"]) == 1
    assert len(json.loads(capsys.readouterr().out)["unreadable"]) == 3
    assert np.load(tmp_path / "alone" / "part-000002.npz").files == [ITEM]
    only = "run", path, "--cpu", "--inputs", folder / "2.npy", "-o", tmp_path / "none"
    assert "not a .npy file" in failure(capsys, *only)
    np.save(folder / "2.npy", randn(RNG, 1, 4))
    np.save(folder / "3.npy", randn(RNG, 1, 4))
    np.save(folder / "5.npy", randn(RNG, 1, 4))
    (tmp_path / "out" / "part-000000.npz").unlink()  # so that it is run again
    assert data(capsys, *run)["unreadable"] == {}


def test_flags_without_effect_are_refused(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    many = "--inputs", tmp_path, "-o", tmp_path / "out"
    assert "--batch, --engine: expected --inputs" in failure(capsys, "run", path, "--batch", 2, "--engine", "ray")
    assert "--input and --shape have no effect" in failure(capsys, "run", path, *many, "--shape", "x=2,4")
    assert "--workers: expected --engine ray" in failure(capsys, "run", path, *many, "--workers", 2)


def test_a_device_that_is_required(path: Path, rows: Job, capsys: pytest.CaptureFixture[str]) -> None:
    flags = "--inputs", rows.files[0], "--rows", "-o", rows.folder, "--require-device"
    assert "require_device: the CPU was selected" in failure(capsys, "run", path, *flags, "--cpu")
    (worker,) = data(capsys, "run", path, *flags)["workers"]
    assert worker["devices"] not in ("", "none")
