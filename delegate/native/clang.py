"""A compiler: a clang, which runs in processes of its own.

A child process can be ended at any time, and needs nothing of the thread that waits for it: neither its stack nor its
address space.
"""

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from litecl.delegate.native.loading import NO_FOLDER
from litecl.interpreter.errors import KernelBuildError

_OPENCL = (
    "-x",
    "cl",
    "-cl-std=CL1.2",
    "-cl-no-stdinc",
    "-Xclang",
    "-cl-ext=+cl_khr_fp64,+__cl_clang_function_pointers",
)
# Kernels are written in vectors, and say what to unroll and inline: more passes take longer, and make few faster.
_OPTIMISED = ("-O1", "-fvectorize", "-fno-slp-vectorize", "-fno-unroll-loops", "-fno-math-errno", "-ffp-contract=on")
_COMMON = (*_OPTIMISED, "-fPIC", "-fvisibility=hidden", "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-w")
_LANGUAGES = {".cl": _OPENCL, ".c": ("-x", "c", "-ffreestanding")}
OPTIONS = *_COMMON, *(option for language in _LANGUAGES.values() for option in language)
_NO_WINDOW = getattr(subprocess, "CREATE_NO_WINDOW", 0)  # of Windows, where a child then hears no Ctrl-C either
_POLL_S = 0.002
_MOST_SAID = 10_000  # characters


@dataclass(frozen=True)
class Unit:
    """A source to compile. name: of the file, whose ending tells the language. options: its macros."""

    name: str
    source: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Facts:
    """A compiler's description of itself and its target: its version, the processor's name, the macros that it
    defines."""

    version: str
    processor: str
    macros: Mapping[str, str]


@dataclass(frozen=True)
class Compiler:
    """A compiler of C and OpenCL C. command: what runs clang. source: where it comes from, for people.

    linker: what runs a linker as ld; clang's own if empty. target: options that say for which processor. told: what it
    has said of itself before.
    """

    command: tuple[str, ...]
    source: str
    linker: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    told: Facts | None = field(default=None, compare=False, repr=False)

    @cached_property
    def facts(self) -> Facts:
        """Return what it says of itself and its target. Raises KernelBuildError."""
        if self.told is not None:
            return self.told
        macros, said = self._run((*self.command, *self.target, "-dM", "-E", "-v", "-x", "c", "-"))
        lines = (line.split(" ", 2) for line in macros.splitlines())
        named = re.search(r'"?-target-cpu"? "?([^" ]+)', said)
        return Facts(
            version=said.partition("\n")[0],
            processor=named[1] if named else "unknown",
            macros={words[1]: words[2] if len(words) > 2 else "" for words in lines},
        )

    @property
    def version(self) -> str:
        """Return the first line of what it says of itself. Raises KernelBuildError."""
        return self.facts.version

    @property
    def major(self) -> int:
        """Return its version's first number; 0 if it tells none."""
        found = re.search(r"clang version (\d+)", self.version)
        return int(found[1]) if found else 0

    @property
    def macros(self) -> Mapping[str, str]:
        """Return the macros that it defines for the target. Raises KernelBuildError."""
        return self.facts.macros

    @property
    def processor(self) -> str:
        """Return the name of the processor that it compiles for."""
        return self.facts.processor

    @cached_property
    def identity(self) -> tuple[str, ...]:
        """Return what its results depend on: version, options, target, and the processor as it takes it to be."""
        return self.version, *OPTIONS, *self.target, *sorted(f"{name}={value}" for name, value in self.macros.items())

    def compile(self, units: Sequence[Unit]) -> list[bytes]:
        """Return an object file for each source. Raises KernelBuildError with the compiler's messages."""
        made = dict(self.compiled(units))
        return [made[number] for number in range(len(units))]

    def compiled(self, units: Sequence[Unit]) -> Generator[tuple[int, bytes], None, None]:
        """Yield the number of each source and its object file as soon as it is done; several are compiled at a time.

        Raises KernelBuildError with the compiler's messages. Whatever ends this, no process is left.
        """
        with folder() as place:
            paths = [place / f"{number}.o" for number in range(len(units))]
            commands = [(self._compiling(unit, path), unit) for unit, path in zip(units, paths, strict=True)]
            for number in _run_all(commands, place):
                yield number, paths[number].read_bytes()

    def link(self, objects: Sequence[bytes]) -> bytes:
        """Return the shared library that object files make up. Raises KernelBuildError."""
        return self._linked(objects, "-shared")

    def program(self, objects: Sequence[bytes]) -> bytes:
        """Return the program that object files make up, with no library. Raises KernelBuildError."""
        return self._linked(objects, "-static")

    def _linked(self, objects: Sequence[bytes], how: str) -> bytes:
        with folder() as place:
            made = place / "made"
            linker = self.linker or (*self.command, *self.target, "-nostdlib")
            self._run((*linker, how, "-o", str(made), *written(objects, place)))
            return made.read_bytes()

    def _compiling(self, unit: Unit, path: Path) -> tuple[str, ...]:
        language = _LANGUAGES[Path(unit.name).suffix]
        return *self.command, *self.target, *_COMMON, *language, *unit.options, "-c", "-o", str(path), "-"

    def _run(self, command: Sequence[str]) -> tuple[str, str]:
        """Return what a short command writes to stdout and stderr. Raises KernelBuildError."""
        try:
            ran = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, check=False, creationflags=_NO_WINDOW
            )
        except OSError as error:
            raise KernelBuildError(f"{command[0]}: {error.strerror}") from error
        if ran.returncode:
            raise KernelBuildError(f"{' '.join(command)}:\n{ran.stderr.decode(errors='replace')}")
        return ran.stdout.decode(errors="replace"), ran.stderr.decode(errors="replace")


@contextmanager
def folder() -> Iterator[Path]:
    """Make a folder of this process's own. Raises KernelBuildError where there is none to write to."""
    try:
        with tempfile.TemporaryDirectory(prefix="litecl-", ignore_cleanup_errors=True) as name:
            yield Path(name)
    except OSError as error:
        raise KernelBuildError(f"compiling in a temporary folder: {error}. {NO_FOLDER}") from error


def written(objects: Sequence[bytes], place: Path) -> list[str]:
    """Write object files to a folder; return their paths."""
    paths = [place / f"{number}.o" for number in range(len(objects))]
    for path, content in zip(paths, objects, strict=True):
        path.write_bytes(content)
    return [str(path) for path in paths]


@dataclass(frozen=True)
class _Job:
    """A compiler that runs. number: of its source. log: where its messages go."""

    process: "subprocess.Popen[bytes]"
    number: int
    unit: Unit
    log: Path


def _run_all(commands: Sequence[tuple[tuple[str, ...], Unit]], folder: Path) -> Iterator[int]:
    """Run compilers, as many at a time as there are processors, and yield the number of each that is done; end all of
    them if one fails, or at an interrupt.
    """
    waiting, running = list(enumerate(commands))[::-1], list[_Job]()
    try:
        while waiting or running:
            while waiting and len(running) < processors():
                number, (command, unit) = waiting.pop()
                running.append(_started(command, number, unit, folder))
            time.sleep(_POLL_S)
            for job in [job for job in running if job.process.poll() is not None]:
                if job.process.returncode:
                    raise KernelBuildError(_fault(job))
                running.remove(job)
                yield job.number
    finally:
        for job in running:
            job.process.kill()
        for job in running:
            job.process.wait()


def _started(command: Sequence[str], number: int, unit: Unit, folder: Path) -> _Job:
    """Start a compiler on a source, which it reads from a file, lest it waits for us."""
    source, log = folder / f"{number}.source", folder / f"{number}.log"
    source.write_text(unit.source, encoding="utf-8")
    try:
        with source.open("rb") as given, log.open("wb") as said:
            process = subprocess.Popen(
                command, stdin=given, stdout=said, stderr=said, start_new_session=True, creationflags=_NO_WINDOW
            )
            return _Job(process, number, unit, log)
    except OSError as error:
        raise KernelBuildError(f"{command[0]}: {error.strerror}") from error


def _fault(job: _Job) -> str:
    """Return what a compiler that failed has said, or how it ended."""
    said = job.log.read_text(errors="replace", encoding="utf-8")[:_MOST_SAID]
    code = job.process.returncode
    ended = f"ended by signal {-code}" if code < 0 else f"exit status {code}"
    return f"{job.unit.name} with {' '.join(job.unit.options)}: the compiler failed ({ended}):\n{said}"


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
