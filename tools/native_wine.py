"""Runs libraries for Windows by Wine: operators' device cases against LiteRT, with one thread and with two.

Models are planned here, for a machine with Windows; each run of a region writes its memory to a file, which a program
for Windows reads, gives to the region's function, and writes back (``wine_host.c``). So machine code, calls and helpers
are tried, and nothing of Python on Windows.

Usage: tools/native_wine.py [NUMBER|EXPRESSION [PROCESSOR]], every 40th case, and x86-64-v3 unless given
Needs wine64 (Debian: apt-get install --no-install-recommends wine wine64) and the package ziglang.
"""

import ctypes
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from litecl.cases import Case
from litecl.delegate import CLDelegate
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.native import execution, workers
from litecl.delegate.native.backend import NativeDevice, NativeFound
from litecl.delegate.native.clang import Unit
from litecl.delegate.native.cross import compiler_for
from litecl.delegate.native.kinds import machine
from litecl.delegate.native.library import Libraries
from litecl.delegate.native.workers import Crew
from litecl.delegate.plan.plan import Plan
from litecl.delegate.plan.region_program import RegionProgram
from litecl.delegate.plan.region_tables import NativeCall
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.graph import Array
from support import compare
from support.all_cases import DEVICE_CASES, content, expected

_RUNS = 12
_LONGEST_S = 120
_FOLDER = Path(tempfile.mkdtemp(prefix="litecl-wine-"))
_TABLES = tuple(NativeCall)[: NativeCall.DOOR]


@dataclass
class Library:
    """A library for Windows, which is not loaded here. path: of its file."""

    path: Path
    nothing: Any = field(default_factory=lambda: ctypes.CFUNCTYPE(None)(lambda: None))

    def __getitem__(self, name: str) -> Any:
        return self.nothing


class WineLibraries(Libraries):
    """The libraries of a compiler for Windows, as files."""

    def _library(self, units: Sequence[Unit]) -> Any:
        name, made = self.content(units)
        path = _FOLDER / f"{name}.dll"
        path.write_bytes(made)
        return Library(path)


class WineExecution(execution.NativeExecution):
    """A region that Wine runs."""

    def _prepare(self, program: RegionProgram, libraries: Libraries, workers: int) -> Array:
        self._names = [function.name for function in program.functions]
        self._crew, self._workers = libraries.crew(), workers
        return super()._prepare(program, libraries, workers)

    def _method(self, call: Array, *, locked: bool) -> Any:
        files = [self._library.path, self._crew.path]  # type: ignore[attr-defined]
        return lambda: self._in_wine(call, self._held[1:], files, self._workers)

    def _in_wine(self, record: Array, tables: Sequence[Array], files: Sequence[Path], workers: int) -> None:
        dump = _FOLDER / "dump"
        named = [*zip(_TABLES, tables, strict=True), (-1, self.memory.constants)]
        parts = [np.int64(len(named)).tobytes()]
        for index, table in named:
            parts += [np.array([index, table.nbytes], np.int64).tobytes(), table.tobytes(), bytes(-table.nbytes % 8)]
        dump.write_bytes(b"".join([*parts, record.tobytes()]))
        given = *(f"Z:{file}" for file in (*files, dump)), str(workers), str(_RUNS), *self._names
        command = ["wine", str(_FOLDER / "host.exe"), *given]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LONGEST_S)
        assert ran.returncode == 0, f"exit status {ran.returncode}: {ran.stdout}"
        left, at = np.frombuffer(dump.read_bytes(), np.uint8), 0
        for index, table in named:
            if index not in (NativeCall.SHIFTS, NativeCall.FUNCTIONS, -1):
                table.reshape(-1).view(np.uint8)[...] = left[at : at + table.nbytes]
            at += table.nbytes


class WineDevice(NativeDevice):
    """A device whose regions Wine runs."""

    def bind(self, plan: Plan, options: CLOptions) -> WineExecution:
        """See ``Device``."""
        return WineExecution(plan, self._libraries, self.target.compute_units, options)


class WineFound(NativeFound):
    """A machine with Windows."""

    def libraries(self, directory: Path | None) -> Libraries:
        """See ``NativeFound``."""
        return WineLibraries(self.compiler, self.macros, directory)

    def open(self, *, profile: bool, directory: Path | None) -> NativeDevice:
        """See ``FoundDevice``."""
        return WineDevice(self, directory)


def main(wanted: str = "40", processor: str = "x86-64-v3") -> int:
    """Run all; tell what fails, and return how many do."""
    compiler = compiler_for(machine(f"x86_64-windows:{processor}"))
    host = Path(__file__).with_name("wine_host.c")
    zig = compiler.command[0]
    macros = *(f"-D{member.name}={int(member)}" for member in NativeCall), f"-DWORDS={len(NativeCall)}"
    options = "-target", "x86_64-windows-gnu", "-O1", *macros, "-o", str(_FOLDER / "host.exe")
    subprocess.run((zig, "cc", *options, str(host)), check=True)
    workers.crew = lambda libraries: Crew(_NoCrew, 0, 0, 0)  # type: ignore[assignment,arg-type,attr-defined]
    failed, runs, start_s = 0, 0, time.perf_counter()
    for case in _cases(wanted):
        for threads in (1, 2):
            runs += 1
            try:
                _check(case, WineFound(compiler, threads))
            except (AssertionError, LiteclError) as error:
                failed += 1
                print(f"FAILED {case!r}, {threads} threads: {error}", flush=True)
    print(f"{runs} runs, {failed} failed, {time.perf_counter() - start_s:.0f} s")
    return failed


class _NoCrew:
    """Helpers are hired in Wine."""

    @staticmethod
    def hire(count: int) -> int:
        return count


def _cases(wanted: str) -> Sequence[Case]:
    if wanted.isdecimal():
        return DEVICE_CASES[:: int(wanted)]
    return [case for case in DEVICE_CASES if re.search(wanted, repr(case))]


def _check(case: Case, device: WineFound) -> None:
    interpreter = Interpreter(
        model_content=content(case), delegates=[CLDelegate(device, strict=True, dynamic_range="reference")]
    )
    interpreter.allocate_tensors()
    for detail, feed in zip(interpreter.get_input_details(), case.feeds, strict=True):
        interpreter.set_tensor(detail["index"], feed)
    interpreter.invoke()
    report = interpreter.delegation_report()
    assert case.device or not case.on_device or report.claimed == len(report.nodes), "a node is not claimed"
    for detail, wanted in zip(interpreter.get_output_details(), expected(case), strict=True):
        tolerance = compare.DEVICE.get(wanted.dtype.name, 0.0) if case.tolerance is None else case.tolerance
        compare.assert_close(np.asarray(interpreter.get_tensor(detail["index"])), wanted, tolerance)


if __name__ == "__main__":
    sys.exit(min(main(*sys.argv[1:]), 100))
