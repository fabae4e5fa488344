"""The compiler: clang, run in child processes.

A child process can be killed at any time, and uses neither the stack nor the address space of the waiting thread. What
starts one is imported then: a process whose programs are cached starts none.
"""

import re
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from litecl.delegate import disk
from litecl.delegate.backend import scratch
from litecl.delegate.native.loading import NO_FOLDER
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import KernelBuildError

if TYPE_CHECKING:
    from litecl.delegate.native.processes import Task

_OPENCL = (
    "-x",
    "cl",
    "-cl-std=CL1.2",
    "-cl-no-stdinc",
    "-Xclang",
    "-cl-ext=+cl_khr_fp64,+__cl_clang_function_pointers",
)
# Kernels are written with vectors and explicit unrolling and inlining: more passes cost time and speed up few.
_OPTIMISED = ("-O1", "-fvectorize", "-fno-slp-vectorize", "-fno-unroll-loops", "-fno-math-errno", "-ffp-contract=on")
_COMMON = (*_OPTIMISED, "-fPIC", "-fvisibility=hidden", "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-w")
_LANGUAGES = {".cl": _OPENCL, ".c": ("-x", "c", "-ffreestanding")}
OPTIONS = *_COMMON, *(option for language in _LANGUAGES.values() for option in language)
_MACRO = "-D"


@dataclass(frozen=True)
class Unit:
    """A source to compile. name: of the file; its suffix selects the language. options: macros and other options."""

    name: str
    source: str
    options: tuple[str, ...] = ()

    @property
    def suffix(self) -> str:
        """Return the file suffix."""
        return Path(self.name).suffix

    @property
    def text(self) -> str:
        """Return the source with its macros as #defines: one process compiles sources with different macros."""
        macros = (option.removeprefix(_MACRO) for option in self.options if option.startswith(_MACRO))
        return "".join(f"#define {macro.replace('=', ' ', 1)}\n" for macro in macros) + self.source

    @property
    def others(self) -> tuple[str, ...]:
        """Return the options that define no macro."""
        return tuple(option for option in self.options if not option.startswith(_MACRO))

    def __str__(self) -> str:
        return f"{self.name} with {' '.join(self.options)}"


@dataclass(frozen=True)
class Facts:
    """A compiler's version, the name of its target processor, and the macros that it predefines for it."""

    version: str
    processor: str
    macros: Mapping[str, str]


@dataclass(frozen=True)
class Compiler:
    """A compiler of C and OpenCL C. command: runs clang. source: its origin, for people.

    linker: a command with ld's options; empty to link with clang. target: options that select the processor. known:
    its facts, if a cache or a pack has them.
    """

    command: tuple[str, ...]
    source: str
    linker: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    known: Facts | None = field(default=None, compare=False, repr=False)

    @cached_property
    def facts(self) -> Facts:
        """Return the facts about the compiler and its target. Raises KernelBuildError."""
        if self.known is not None:
            return self.known
        from litecl.delegate.native.processes import run

        macros, messages = run((*self.command, *self.target, "-dM", "-E", "-v", "-x", "c", "-"))
        lines = (line.split(" ", 2) for line in macros.splitlines())
        named = re.search(r'"?-target-cpu"? "?([^" ]+)', messages)
        return Facts(
            version=messages.partition("\n")[0],
            processor=named[1] if named else "unknown",
            macros={words[1]: words[2] if len(words) > 2 else "" for words in lines},
        )

    @property
    def version(self) -> str:
        """Return the first line of ``clang -v``. Raises KernelBuildError."""
        return self.facts.version

    @property
    def major(self) -> int:
        """Return the major version; 0 if unknown."""
        match = re.search(r"clang version (\d+)", self.version)
        return int(match[1]) if match else 0

    @property
    def macros(self) -> Mapping[str, str]:
        """Return the macros predefined for the target. Raises KernelBuildError."""
        return self.facts.macros

    @property
    def processor(self) -> str:
        """Return the name of the target processor."""
        return self.facts.processor

    @cached_property
    def identity(self) -> tuple[str, ...]:
        """Return everything that its output depends on: version, options, target, and predefined macros."""
        return self.version, *OPTIONS, *self.target, *sorted(f"{name}={value}" for name, value in self.macros.items())

    def key(self, unit: Unit) -> str:
        """Return the name of a source's object in a cache."""
        return disk.key(Path(unit.name).stem, self.identity, (unit.name, unit.source, *unit.options))

    def compile(self, units: Sequence[Unit]) -> list[bytes]:
        """Return an object file for each source. Raises KernelBuildError with the compiler's messages."""
        objects = dict(self.compiled(units))
        return [objects[number] for number in range(len(units))]

    def compiled(self, units: Sequence[Unit]) -> Generator[tuple[int, bytes], None, None]:
        """Compile sources in parallel; yield the index of each and its object file as soon as it is done.

        Raises KernelBuildError with the compiler's messages. No process survives, however this ends.
        """
        from litecl.delegate.native.processes import run_all, shares

        with folder() as directory:
            tasks = [
                self._task({number: units[number] for number in share}, directory)
                for alike in _alike(units)
                for share in shares(alike)
            ]
            paths = {product.number: product.path for task in tasks for product in task.products}
            for number in run_all(tasks):
                yield number, paths[number].read_bytes()

    def link(self, objects: Sequence[bytes]) -> bytes:
        """Link object files into a shared library. Raises KernelBuildError."""
        return self._linked(objects, "-shared")

    def program(self, objects: Sequence[bytes]) -> bytes:
        """Link object files into a static executable without libraries. Raises KernelBuildError."""
        return self._linked(objects, "-static")

    def _linked(self, objects: Sequence[bytes], how: str) -> bytes:
        from litecl.delegate.native.processes import run

        with folder() as directory:
            output = directory / "made"
            linker = self.linker or (*self.command, *self.target, "-nostdlib")
            run((*linker, how, "-o", str(output), *written(objects, directory)))
            return output.read_bytes()

    def _task(self, units: Mapping[int, Unit], directory: Path) -> "Task":
        """Return the command that compiles sources of one language and with the same options except macros.

        With -fsyntax-only, clang's driver names no output file, so each object is written next to its source. The
        driver appends its own source, the last one, to the others.
        """
        from litecl.delegate.native.processes import Product, Task

        sources = {number: _source(directory / str(number), unit) for number, unit in units.items()}
        *others, last = map(str, sources.values())
        alike = next(iter(units.values()))
        options = (*self.target, *_COMMON, *_LANGUAGES[alike.suffix], *alike.others)
        together = (word for source in others for word in ("-Xclang", source))
        command = (*self.command, *options, "-fsyntax-only", "-Xclang", "-emit-obj", *together, last)
        products = (Product(number, source.with_suffix(".o"), str(units[number])) for number, source in sources.items())
        return Task(command, tuple(products), directory / f"{min(units)}.log")


@contextmanager
def folder() -> Iterator[Path]:
    """Make a temporary folder for this process. Raises KernelBuildError if none is writable."""
    try:
        parent = Path(tempfile.gettempdir())
        _tidied(parent)
        with scratch.temporary(parent, scratch.BUILD) as path:
            yield path
    except OSError as error:
        raise KernelBuildError(f"compiling in a temporary folder: {error}. {NO_FOLDER}") from error


@cache
def _tidied(parent: Path) -> None:
    """Remove the folders that killed processes left, once."""
    scratch.remove_left(parent, scratch.BUILD)


def written(objects: Sequence[bytes], directory: Path) -> list[str]:
    """Write object files to a folder; return their paths."""
    paths = [directory / f"{number}.o" for number in range(len(objects))]
    for path, content in zip(paths, objects, strict=True):
        path.write_bytes(content)
    return [str(path) for path in paths]


def _alike(units: Sequence[Unit]) -> Iterable[list[int]]:
    """Group the indices of units that one process can compile together."""
    alike = dict[tuple[str, tuple[str, ...]], list[int]]()
    for number, unit in enumerate(units):
        alike.setdefault((unit.suffix, unit.others), []).append(number)
    return alike.values()


def _source(directory: Path, unit: Unit) -> Path:
    """Write a source to a new folder; return its path. The name is fixed, as objects contain it."""
    directory.mkdir()
    path = directory / f"source{unit.suffix}"
    path.write_text(unit.text, encoding="utf-8")
    return path
