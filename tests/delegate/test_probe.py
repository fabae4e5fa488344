"""The target of the processor's own compiler, tried by a program before anything else is compiled for it."""

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from litecl.delegate.native import backend, compiler, probe, processes
from litecl.delegate.native.clang import Compiler
from litecl.interpreter.errors import KernelBuildError
from support import compare, small_models
from support.small_models import prepared, reference, run

_FOUND = compiler.found()
pytestmark = pytest.mark.skipif(
    _FOUND is None or not _FOUND.macros.keys() >= {"__x86_64__", "__linux__"},
    reason="no compiler for an x86-64 processor on Linux",
)
BEYOND = "diamondrapids"  # has more than any processor has that runs this
CHAIN = small_models.chain()
X = np.random.default_rng(6).standard_normal((2, 5)).astype(np.float32)


def _for(processor: str) -> Compiler:
    assert _FOUND is not None
    return replace(_FOUND, target=(f"-march={processor}",), known=None)


@pytest.fixture(autouse=True)
def _afresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known from before, and warnings are given again."""
    monkeypatch.setattr(probe, "_tried", probe._tried.__wrapped__)
    monkeypatch.setattr("litecl.delegate.progress._said", set())


def test_this_processor_runs_what_is_compiled_for_it(tmp_path: Path) -> None:
    assert probe._runs(_for("native"))
    assert probe.checked(_for("native"), tmp_path).target == ("-march=native",)


def test_a_program_is_killed_by_what_the_processor_does_not_have() -> None:
    assert not probe._runs(_for(BEYOND))


@pytest.mark.parametrize("seen", [True, False], ids=["as numpy sees", "as a program finds"])
def test_a_lower_level_is_taken(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, seen: bool
) -> None:
    if not seen:  # as in an emulator that passes on the names of instructions which it does not run
        monkeypatch.setattr("litecl.delegate.native.features.missing", lambda *args: [])
    with caplog.at_level(logging.WARNING, "litecl"):
        lower = probe.checked(_for(BEYOND), None)
    assert lower.target[0].startswith("-march=x86-64")
    assert probe._runs(lower)
    assert f"does not run all instructions that {BEYOND} promises" in caplog.text
    device = backend.NativeFound(lower)
    assert f"for {lower.processor} as {BEYOND} does not run" in device.describe().platform
    got = run(prepared(CHAIN, device=device, strict=True, cache_dir=None), X)
    compare.assert_close(got, run(reference(CHAIN), X), compare.DEVICE["float32"])


def test_levels_go_down_to_the_first_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = list[str]()

    def lacks(of: Compiler) -> str:
        tried.append(of.processor)
        return "" if of.processor == "x86-64-v2" else "something"

    monkeypatch.setattr(probe, "_lacks", lacks)
    assert probe.checked(_for(BEYOND), None).processor == "x86-64-v2"
    assert tried == [BEYOND, "x86-64-v4", "x86-64-v3", "x86-64-v2"]


def test_a_second_process_asks_nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = probe.checked(_for(BEYOND), tmp_path)
    monkeypatch.setattr(processes, "run", lambda *args: pytest.fail("a compiler was started"))
    again = probe.checked(_for(BEYOND), tmp_path)
    assert again == first
    assert (again.identity, again.processor, again.major) == (first.identity, first.processor, first.major)


def test_what_is_kept_is_of_one_compiler_and_one_processor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = probe._path(_for("native"), tmp_path)
    copy = tmp_path / "clang"
    copy.write_bytes(b"another")
    assert probe._path(replace(_for("native"), command=(str(copy),)), tmp_path) != before
    assert probe._path(_for("x86-64-v3"), tmp_path) != before
    monkeypatch.setattr("litecl.delegate.native.probe.seen_by_numpy", lambda: {"SSE2": True})
    assert probe._path(_for("native"), tmp_path) != before
    monkeypatch.undo()
    monkeypatch.setattr(probe, "_first_processor", lambda: "model name: another")
    assert probe._path(_for("native"), tmp_path) != before


def test_a_compiler_that_does_not_work_says_so_when_it_is_used(tmp_path: Path) -> None:
    broken = probe.checked(Compiler(("false",), "a test"), tmp_path)
    with pytest.raises(KernelBuildError, match="false"):
        _ = broken.version
    assert not [*tmp_path.iterdir()]
