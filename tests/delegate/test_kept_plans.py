"""Plans kept in the cache folder: the same results and report as from planning, and planned again in any doubt."""

import io
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import litecl
from litecl.delegate import CLDelegate, Tuning, devices, disk, kept_plans, own_code, plan_key
from litecl.delegate.native import compiler
from litecl.delegate.native.memory import ConstantPool
from litecl.interpreter import Interpreter
from litecl.interpreter.buffers import Constants, aligned
from litecl.interpreter.file.writer import write_file
from litecl.interpreter.graph import Model
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.schema import ActivationFunctionType
from support import cache_models, fault_models
from support.build import Graph, model, randn
from support.fault_models import Session, Subject

pytestmark = [
    pytest.mark.skipif(compiler.found() is None, reason="no compiler for the processor: pip install ziglang"),
    pytest.mark.kept_plans,
]
SUBJECTS = fault_models.subjects()
SMALL = fault_models.small()
TIMES = {"build_s", "cache_hits", "phases", "copies"}  # of a report
CODE = own_code.digest


@pytest.fixture(autouse=True)
def _code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that change while the suite runs forbid no entries here."""
    monkeypatch.setattr(own_code, "_IMPORTED_NS", 1 << 62)
    CODE.cache_clear()


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The planners of the test."""
    from litecl.delegate import planner

    made: list[Any] = []

    class Counted(planner.Planner):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            made.append(self)

    monkeypatch.setattr(planner, "Planner", Counted)
    yield made


def _delegate(folder: Path, **options: Any) -> CLDelegate:
    devices._DEVICES.clear()  # as in a new process
    return CLDelegate(**{"device": "native", "cache_dir": folder, "strict": True, **options})


def _run(subject: Subject, folder: Path, **options: Any) -> tuple[list[Any], Mapping[str, Any]]:
    """Return every output and the report of a new interpreter."""
    session = Session(subject, [_delegate(folder, **subject.options, **options)])
    session.interpreter.allocate_tensors()
    results = [session.invoke(number) for number in range(len(subject.feeds))]
    results.append(session.variables())
    report = asdict(session.interpreter.delegation_report())
    return results, {name: value for name, value in report.items() if name not in TIMES}


def _right(folder: Path, **options: Any) -> None:
    """Check a small model's outputs."""
    interpreter = Interpreter(SMALL, delegates=[_delegate(folder, **options)])
    interpreter.allocate_tensors()
    fault_models.assert_right(interpreter)


def _same(given: Any, expected: Any) -> bool:
    """Compare bits."""
    pairs = [(a, b) for got, want in zip(given, expected, strict=True) for a, b in zip(got, want, strict=True)]
    return all(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in pairs)


def _entries(folder: Path) -> list[Path]:
    return sorted((folder / disk.OWN).glob("plans-*.bin"))


@pytest.mark.parametrize("options", [{"num_threads": 1}, {"num_threads": 2, "profile": True}], ids=["one", "two"])
@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_kept_plans_compute_and_report_the_same(
    subject: Subject, options: dict[str, Any], plans: list[Any], tmp_path: Path
) -> None:
    planned, report = _run(subject, tmp_path, **options)
    assert len(plans) == len(_entries(tmp_path)) == 1
    kept, again = _run(subject, tmp_path, **options)
    assert len(plans) == 1
    assert _same(kept, planned)
    for each in (report, again):
        each.pop("kernels")  # with their times
    assert again == report


def test_entries_are_files_like_others(tmp_path: Path) -> None:
    """Private, listed, and removed like libraries."""
    _right(tmp_path)
    (entry,) = _entries(tmp_path)
    assert entry in disk.files(entry.parent)
    assert not disk.others(entry.parent)
    if os.name == "posix":
        assert entry.stat().st_mode & 0o077 == 0
    disk.trim(entry.parent, 0)
    assert not _entries(tmp_path)


def test_a_delegation_holds_no_entry(tmp_path: Path) -> None:
    """Nothing of an entry stays in memory but what plans use."""
    for _ in range(2):
        interpreter = Interpreter(SUBJECTS[0].model, delegates=[_delegate(tmp_path, **SUBJECTS[0].options)])
        interpreter.allocate_tensors()
    kept = interpreter._delegations[0]._kept  # type: ignore[attr-defined]
    assert kept.is_read
    assert all(not len(vars(kept)[name]) for name in ("_arrays", "_constants", "_plans", "_blocks", "_partitionings"))


def test_half_precision(plans: list[Any], tmp_path: Path) -> None:
    subject = Subject("fp16", _dense(), [[randn(np.random.default_rng(2), 1, 600)]])
    whole, _ = _run(subject, tmp_path)
    halves, report = _run(subject, tmp_path, precision="fp16")
    assert len(plans) == len(_entries(tmp_path)) == 2
    assert not _same(halves, whole)
    again, reported = _run(subject, tmp_path, precision="fp16")
    assert len(plans) == 2
    assert _same(again, halves)
    assert reported["halves"] == report["halves"] != ""


def test_signatures_and_other_shapes(plans: list[Any], tmp_path: Path) -> None:
    """A model of two signatures, whose large input is updated in place; and a model that is resized after a hit."""
    rng, content = np.random.default_rng(4), cache_models.signatures(3, 1)
    cache, feed = randn(rng, *cache_models.SHAPE), cache_models.feeds(rng, 0, 7)
    outputs = []
    for _ in range(2):
        interpreter = Interpreter(model_content=content, delegates=[_delegate(tmp_path)])
        outputs.append(interpreter.get_signature_runner("s0")(cache=cache, **feed))
    assert len(plans) == 1
    assert all(outputs[0][name].tobytes() == outputs[1][name].tobytes() for name in ("new", "y"))
    np.testing.assert_array_equal(outputs[1]["new"], cache_models.updated(cache, feed["update"], 7))
    for count in (2, 2):
        interpreter = Interpreter(SMALL, delegates=[_delegate(tmp_path)])
        for rows in (2, 3):
            interpreter.resize_tensor_input(0, (rows, 5))
            interpreter.allocate_tensors()
            x = randn(rng, rows, 5)
            np.testing.assert_allclose(fault_models.run(interpreter, x), np.exp(x) + x, rtol=1e-5, atol=1e-6)
        assert len(plans) == 1 + count


CHANGES: list[dict[str, Any]] = [
    {"num_threads": 2},
    {"precision": "fp16"},
    {"dynamic_range": "reference"},
    {"min_nodes_per_partition": 2},
    {"max_delegated_partitions": 1},
    {"max_delegated_partitions": 0},
    {"max_loop_iterations": 7},
    {"queue_loops": True},
    {"profile": True},
    {"allow_ops": ["ADD"]},
    {"deny_ops": ["EXP"]},
    {"deny_nodes": [0]},
    {"keep_float": [0]},
    {"deterministic": True},
    {"tuning": Tuning(small_flops=1)},
    {"tuning": Tuning(winograd_channels=3)},
]


@pytest.mark.parametrize("change", CHANGES, ids=repr)
def test_another_option_is_another_entry(change: dict[str, Any], plans: list[Any], tmp_path: Path) -> None:
    for options, count in (({}, 1), (change, 2), ({}, 2), (change, 2)):
        interpreter = Interpreter(SMALL, delegates=[_delegate(tmp_path, **{"num_threads": 1, **options})])
        interpreter.allocate_tensors()
        fault_models.assert_right(interpreter)
        assert len(plans) >= count
    assert len(plans) == 2 or not interpreter.delegation_report().partitions  # without a region there is no entry


def test_every_option_is_looked_at() -> None:
    """A new option must be among those that change the name, unless it is listed as one that changes no plan."""
    changed = {name for change in CHANGES for name in change} | {"custom_ops", "dump_passes", "strict"}
    assert changed - {"tuning"} | plan_key.ELSEWHERE == {item.name for item in fields(CLDelegate)}


def _weights(given: Model) -> Model:
    (graph,) = given.subgraphs
    tensors = [
        replace(spec, data=spec.data + np.float32(1)) if spec.data is not None and spec.dtype == np.float32 else spec
        for spec in graph.tensors
    ]
    assert any(a is not b for a, b in zip(tensors, graph.tensors, strict=True))
    return replace(given, subgraphs=(replace(graph, tensors=tuple(tensors)),))


def _options(given: Model) -> Model:
    (graph,) = given.subgraphs
    nodes = [replace(n, options=replace(n.options, keep_num_dims=True)) for n in graph.nodes]
    return replace(given, subgraphs=(replace(graph, nodes=tuple(nodes)),))


def _another_operator(given: Model) -> Model:
    (graph,) = given.subgraphs
    inner = replace(graph.nodes[0], op=replace(graph.nodes[0].op, versions=range(1, 99)))
    return replace(given, subgraphs=(replace(graph, nodes=(inner,)),))


@pytest.mark.parametrize("change", [_weights, _options])
def test_another_model_is_another_entry(change: Callable[[Model], Model], plans: list[Any], tmp_path: Path) -> None:
    x = randn(np.random.default_rng(2), 1, 600)
    for given, count in ((_dense(), 1), (change(_dense()), 2), (_dense(), 2), (change(_dense()), 2)):
        results, _ = _run(Subject("dense", given, [[x]]), tmp_path)
        expected, _ = _run(Subject("dense", given, [[x]]), tmp_path, cache_dir=None)
        assert _same(results, expected)
        assert len(_entries(tmp_path)) == count


def test_the_users_own_operators_are_never_kept(plans: list[Any], tmp_path: Path) -> None:
    """A record that is not one of litecl's, even under the name of one."""
    x = randn(np.random.default_rng(2), 1, 600)
    _run(Subject("dense", _another_operator(_dense()), [[x]]), tmp_path)
    assert not _entries(tmp_path)


def test_plans_to_be_shown_are_made(plans: list[Any], tmp_path: Path) -> None:
    for _ in range(2):
        _run(Subject("dense", _dense(), []), tmp_path, dump_passes=tmp_path / "passes")
    assert len(plans) == 2


def test_changed_code_is_other_code(plans: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any file of another size or time changes the name, and one newer than the process keeps it from being given."""
    files = own_code._files
    before, listed = own_code.digest(), [*own_code._files(Path(own_code.__file__).parent)]
    assert {Path(name).name for name, *_ in listed} >= {"delegation.py", "plan.py", "chains.py"}
    changed = [(name, size, times[0] + (name.endswith("chains.py")), *times[1:]) for name, size, *times in listed]
    assert changed != listed
    monkeypatch.setattr(
        own_code, "_files", lambda folder: changed if Path(folder).name == "delegate" else files(folder)
    )
    CODE.cache_clear()
    assert own_code.digest() not in (None, before)
    monkeypatch.setattr(own_code, "_IMPORTED_NS", max(time for _, _, *times in changed for time in times) + 1)
    CODE.cache_clear()
    assert own_code.digest() is None
    for _ in range(2):
        _right(tmp_path)
    assert len(plans) == 2
    assert not _entries(tmp_path)


def test_another_version_is_other_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where files have the times of their image, as large as before."""
    before = own_code.digest()
    monkeypatch.setattr(litecl, "__version__", "0.0.0")
    CODE.cache_clear()
    assert own_code.digest() not in (None, before)


def test_compiled_code_is_not_known(plans: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that holds litecl compiled, beside its kernels."""
    files = own_code._files
    monkeypatch.setattr(own_code, "_files", lambda folder: (row for row in files(folder) if row[0].endswith(".cl")))
    CODE.cache_clear()
    for _ in range(2):
        _right(tmp_path)
    assert len(plans) == 2
    assert not _entries(tmp_path)


def test_code_that_changes_while_it_is_imported(
    plans: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planner that was imported after the digest may be of other files."""
    own_code.digest()
    files = own_code._files
    monkeypatch.setattr(own_code, "_files", lambda folder: ((row[0], row[1] + 1, *row[2:]) for row in files(folder)))
    for _ in range(2):
        _right(tmp_path)
    assert len(plans) == 2
    assert not _entries(tmp_path)


def test_the_time_of_import_is_the_first() -> None:
    """Modules imported before a delegate count too."""
    code = (
        "import time, litecl, litecl.interpreter\n"
        "now = time.time_ns()\n"
        "from litecl.delegate import own_code\n"
        "assert own_code._IMPORTED_NS < now"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


_ELSEWHERE = (
    *("litecl.delegate.plan.pass", "litecl.delegate.ops.", "litecl.delegate.matmul", "litecl.delegate.gpu"),
    *("litecl.delegate.opencl", "litecl.delegate.backend.step_times", "litecl.delegate.native.processes"),
    *("litecl.delegate.native.stepped", "litecl.delegate.native.workers", "litecl.converter", "litecl.perf"),
    *("asyncio", "concurrent", "flatbuffers", "importlib.metadata", "logging", "numpy.random", "subprocess"),
)
"""What a process that only runs kept plans needn't import: planning, compiling, profiling, threads, other devices."""


class _Hostile:
    def __reduce__(self) -> Any:
        return os.mkdir, ("made",)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 7,
        b"\xff" * 64,
        (5).to_bytes(8, "little") + b"\x80\x05N.\0",
        *(len(each).to_bytes(8, "little") + each for each in map(pickle.dumps, (_Hostile(), ({}, {}, {}), ([], 1), 3))),
    ],
    ids=["empty", "zeros", "ones", "nothing", "hostile", "three", "a list", "a number"],
)
def test_a_sealed_entry_of_something_else(
    content: bytes, plans: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another program wrote, seal and all, is planned anew, and runs nothing."""
    monkeypatch.chdir(tmp_path)
    _right(tmp_path)
    (entry,) = _entries(tmp_path)
    disk.write_sealed(entry, content)
    _right(tmp_path)
    assert len(plans) == 2
    assert not (tmp_path / "made").exists()


def test_damage_anywhere_is_planned_again(plans: list[Any], tmp_path: Path) -> None:
    """The content in each of 40 places, behind a seal that fits: no wrong number, and no process that ends."""
    subject = Subject("dense", _dense(), [[randn(np.random.default_rng(2), 1, 600)]])
    expected, _ = _run(subject, tmp_path)
    (entry,) = _entries(tmp_path)
    content, whole = disk.read_sealed(entry), entry.read_bytes()
    assert content is not None
    for place in np.linspace(0, len(whole) - 1, 40, dtype=int):
        entry.write_bytes(whole[:place] + bytes([whole[place] ^ 0x20]) + whole[place + 1 :])
        before = len(plans)
        results, _ = _run(subject, tmp_path)
        assert _same(results, expected)
        assert len(plans) == before + 1
        assert disk.read_sealed(entry) == content


def test_a_region_that_was_not_built_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from litecl.delegate.native import backend
    from litecl.interpreter.errors import KernelBuildError

    monkeypatch.setattr(backend.NativeDevice, "bind", fault_models.raises(KernelBuildError("no")))
    _right(tmp_path, strict=False)
    assert not _entries(tmp_path)


def test_large_constants_are_not_kept(plans: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_plans, "_MOST_BYTES", 1 << 10)
    results = [_run(SUBJECTS[0], tmp_path)[0] for _ in range(2)]
    assert _same(*results)
    assert not _entries(tmp_path)


def test_a_folder_that_cannot_be_written(plans: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "put", fault_models.raises(PermissionError(13, "read-only")))
    for _ in range(2):
        _right(tmp_path)
    assert len(plans) == 2


def test_two_processes_at_once(tmp_path: Path) -> None:
    """Both agree with a third, which plans nothing and imports none of ``_ELSEWHERE``."""
    path = tmp_path / "model.tflite"
    write_file(SMALL, path)
    code = (
        "import sys, numpy as np\n"
        "before = set(sys.modules)\n"
        "from litecl import CLDelegate, Interpreter\n"
        f"i = Interpreter({str(path)!r}, delegates=[CLDelegate(device='native', cache_dir={str(tmp_path)!r})])\n"
        "i.allocate_tensors()\n"
        "i.set_tensor(0, np.linspace(-1, 1, 10, dtype=np.float32).reshape(2, 5))\n"
        "i.invoke()\n"
        "print(i.get_tensor(i.get_output_details()[0]['index']).tobytes().hex())\n"
        f"print(sorted(m for m in {{*sys.modules}} - before if m.startswith({_ELSEWHERE})))"
    )

    def ran() -> list[str]:
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split(
            "\n"
        )

    with ThreadPoolExecutor(2) as pool:
        both = [done.result() for done in [pool.submit(ran) for _ in range(2)]]
    third = ran()
    assert len(_entries(tmp_path)) == 1
    assert both[0][0] == both[1][0] == third[0] != ""
    assert third[1] == "[]"


def _dense() -> Model:
    """A product with weights large enough to be stored as halves."""
    rng, g = np.random.default_rng(1), Graph()
    x = g.input((1, 600))
    operands = [x, g.const(randn(rng, 600, 600)), g.const(randn(rng, 600))]
    options = FullyConnectedOptions(ActivationFunctionType.NONE)
    return model(g.build(g.op(FULLY_CONNECTED, operands, options)))


def test_arrays_in_the_models_memory_stay_there() -> None:
    """The same array, a part and another type of it; small others are copies, each once, as writeable as before; large
    ones are read-only views of the entry, which the pool takes as they are.
    """
    rng = np.random.default_rng(6)
    constants = [randn(rng, 3, 5), randn(rng, 4, 6)]
    sealed, turned = randn(rng, 7), np.ascontiguousarray(constants[0].T)
    sealed.flags.writeable = False
    large = randn(rng, 3000)
    within = [constants[1], constants[1][1:3], constants[1].view(np.int32).reshape(-1), constants[0].reshape(5, 3)]
    apart = [constants[0].T, turned, sealed, sealed, np.empty(0, np.float32), np.float32(3).reshape(()), large]
    blocks: list[bytes] = []

    def offset(array: np.ndarray) -> int:
        blocks.append(array.tobytes().ljust(256, b"\0"))
        return sum(map(len, blocks[:-1]))

    memory = io.BytesIO()
    kept_plans._Pickler(memory, constants, offset).dump([*within, *apart])
    memory.seek(0)
    entry = aligned(sum(map(len, blocks)))
    entry[...] = np.frombuffer(b"".join(blocks), np.uint8)
    reader = kept_plans._Unpickler(memory, [*constants], entry.view(Constants))
    got = reader.load()
    assert got[0] is constants[1]
    assert all(np.shares_memory(a, b) for a, b in zip(got[: len(within)], within, strict=True))
    assert not any(np.shares_memory(a, b) for a, b in zip(got[len(within) :], apart, strict=True))
    for a, b in zip(got, [*within, *apart], strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    assert got[len(within) + 2] is got[len(within) + 3]
    assert [a.flags.writeable for a in got[len(within) + 1 :][:3]] == [True, False, False]
    assert [np.shares_memory(a, entry) for a in got] == [a is got[-1] for a in got]
    assert not got[-1].flags.writeable
    assert np.shares_memory(ConstantPool().held(got[-1]), entry)
