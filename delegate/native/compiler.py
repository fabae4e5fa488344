"""The compiler: the clang that the package ``ziglang`` holds, or one on the path; it runs in processes of its own.

A child process can be ended at any time, and needs nothing of the thread that waits for it: neither its stack nor its
address space.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from litecl.interpreter.errors import KernelBuildError

_OLDEST = 16  # of clang's versions: it has all builtins that kernels use
_OPENCL = (
    "-x",
    "cl",
    "-cl-std=CL1.2",
    "-cl-no-stdinc",
    "-Xclang",
    "-cl-ext=+cl_khr_fp64,+__cl_clang_function_pointers",
)
# Kernels are written in vectors, and say which loops to unroll: more of both takes time, and makes them slower.
_OPTIMISED = ("-O2", "-fno-slp-vectorize", "-fno-unroll-loops", "-fno-math-errno", "-ffp-contract=on")
_COMMON = (*_OPTIMISED, "-fPIC", "-fvisibility=hidden", "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-w")
_LANGUAGES = {".cl": _OPENCL, ".c": ("-x", "c", "-ffreestanding")}
OPTIONS = *_COMMON, *(option for language in _LANGUAGES.values() for option in language)
_POLL_S = 0.002
_MOST_SAID = 10_000  # characters
MISSING = "no compiler for the processor: pip install ziglang, or install clang 16 or newer"


@dataclass(frozen=True)
class Unit:
    """A source to compile. name: of the file, whose ending tells the language. options: its macros."""

    name: str
    source: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Compiler:
    """A compiler of C and OpenCL C. command: what runs clang. source: where it comes from, for people.

    linker: what runs a linker as ld; clang's own if empty. target: options that say for which processor.
    """

    command: tuple[str, ...]
    source: str
    linker: tuple[str, ...] = ()
    target: tuple[str, ...] = ()

    @cached_property
    def version(self) -> str:
        """Return the first line of what it says of itself. Raises KernelBuildError."""
        return self._run((*self.command, "--version")).decode().partition("\n")[0]

    @cached_property
    def major(self) -> int:
        """Return its version's first number; 0 if it tells none."""
        found = re.search(r"clang version (\d+)", self.version)
        return int(found[1]) if found else 0

    @cached_property
    def macros(self) -> dict[str, str]:
        """Return the macros that it defines for the target. Raises KernelBuildError."""
        text = self._run((*self.command, *self.target, "-dM", "-E", "-x", "c", "-"))
        lines = (line.split(" ", 2) for line in text.decode().splitlines())
        return {words[1]: words[2] if len(words) > 2 else "" for words in lines}

    @cached_property
    def processor(self) -> str:
        """Return the name of the processor that it compiles for."""
        said = self._run((*self.command, *self.target, "-###", "-x", "c", "-c", "-"), of=2).decode(errors="replace")
        found = re.search(r'"-target-cpu" "([^"]+)"', said)
        return found[1] if found else "unknown"

    @cached_property
    def identity(self) -> tuple[str, ...]:
        """Return what its results depend on: version, options, target, and the processor as it takes it to be."""
        return self.version, *OPTIONS, *self.target, *sorted(f"{name}={value}" for name, value in self.macros.items())

    def compile(self, units: Sequence[Unit], done: Callable[[int], None] = lambda count: None) -> list[bytes]:
        """Return an object file for each source, several of which are compiled at a time. done: is told how many are.

        Raises KernelBuildError with the compiler's messages. Whatever else is raised meanwhile, no process is left.
        """
        with folder() as place:
            paths = [place / f"{number}.o" for number in range(len(units))]
            commands = [(self._compiling(unit, path), unit) for unit, path in zip(units, paths, strict=True)]
            _run_all(commands, place, done)
            return [path.read_bytes() for path in paths]

    def link(self, objects: Sequence[bytes]) -> bytes:
        """Return the shared library that object files make up. Raises KernelBuildError."""
        with folder() as place:
            library = place / "library"
            linker = self.linker or (*self.command, *self.target, "-nostdlib")
            self._run((*linker, "-shared", "-o", str(library), *written(objects, place)))
            return library.read_bytes()

    def _compiling(self, unit: Unit, path: Path) -> tuple[str, ...]:
        language = _LANGUAGES[Path(unit.name).suffix]
        return *self.command, *self.target, *_COMMON, *language, *unit.options, "-c", "-o", str(path), "-"

    def _run(self, command: Sequence[str], of: int = 1) -> bytes:
        """Return what a short command writes to stdout (1) or stderr (2). Raises KernelBuildError."""
        try:
            ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        except OSError as error:
            raise KernelBuildError(f"{command[0]}: {error.strerror}") from error
        if ran.returncode:
            raise KernelBuildError(f"{' '.join(command)}:\n{ran.stderr.decode(errors='replace')}")
        return ran.stdout if of == 1 else ran.stderr


@cache
def found() -> Compiler | None:
    """Return the compiler for this machine: of ``ziglang`` if it is installed, else the path's; None without any."""
    target = ("-march=native",) if _is_x86() else ("-mcpu=native",)
    spec = importlib.util.find_spec("ziglang")
    if spec is not None and spec.origin is not None:
        zig = Path(spec.origin).parent / ("zig.exe" if sys.platform == "win32" else "zig")
        if zig.is_file():
            return Compiler((str(zig), "clang"), "of ziglang", (str(zig), "ld.lld"), target)
    for name in ("clang", *(f"clang-{version}" for version in range(30, _OLDEST - 1, -1))):
        path = shutil.which(name)
        if path is not None:
            compiler = Compiler((path,), path, (), target)
            if compiler.major >= _OLDEST:
                return compiler
    return None


def _is_x86() -> bool:
    machine = os.uname().machine if hasattr(os, "uname") else "AMD64"
    return machine in ("x86_64", "AMD64", "i386", "i686")


@contextmanager
def folder() -> Iterator[Path]:
    """Make a folder of this process's own. Raises KernelBuildError where there is none to write to."""
    try:
        with tempfile.TemporaryDirectory(prefix="litecl-", ignore_cleanup_errors=True) as name:
            yield Path(name)
    except OSError as error:
        raise KernelBuildError(f"compiling in {tempfile.gettempdir()}: {error}") from error


def written(objects: Sequence[bytes], place: Path) -> list[str]:
    """Write object files to a folder; return their paths."""
    paths = [place / f"{number}.o" for number in range(len(objects))]
    for path, content in zip(paths, objects, strict=True):
        path.write_bytes(content)
    return [str(path) for path in paths]


@dataclass(frozen=True)
class _Job:
    """A compiler that runs. log: where its messages go."""

    process: "subprocess.Popen[bytes]"
    unit: Unit
    log: Path


def _run_all(commands: Sequence[tuple[tuple[str, ...], Unit]], folder: Path, done: Callable[[int], None]) -> None:
    """Run compilers, as many at a time as there are processors; end all of them if one fails, or at an interrupt."""
    waiting, running, finished = list(enumerate(commands))[::-1], list[_Job](), 0
    done(0)
    try:
        while waiting or running:
            while waiting and len(running) < processors():
                number, (command, unit) = waiting.pop()
                running.append(_started(command, unit, folder / str(number)))
            time.sleep(_POLL_S)
            for job in [job for job in running if job.process.poll() is not None]:
                if job.process.returncode:
                    raise KernelBuildError(_fault(job))
                running.remove(job)
                finished += 1
                done(finished)
    finally:
        for job in running:
            job.process.kill()
        for job in running:
            job.process.wait()


def _started(command: Sequence[str], unit: Unit, path: Path) -> _Job:
    """Start a compiler on a source, which it reads from a file, lest it waits for us."""
    source, log = Path(f"{path}.source"), Path(f"{path}.log")
    source.write_text(unit.source)
    try:
        with source.open("rb") as given, log.open("wb") as said:
            return _Job(
                subprocess.Popen(command, stdin=given, stdout=said, stderr=said, start_new_session=True), unit, log
            )
    except OSError as error:
        raise KernelBuildError(f"{command[0]}: {error.strerror}") from error


def _fault(job: _Job) -> str:
    """Return what a compiler that failed has said, or how it ended."""
    said = job.log.read_text(errors="replace")[:_MOST_SAID]
    code = job.process.returncode
    ended = f"ended by signal {-code}" if code < 0 else f"exit status {code}"
    return f"{job.unit.name} with {' '.join(job.unit.options)}: the compiler failed ({ended}):\n{said}"


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
