"""Shared libraries of regions: compiled, cached object by object, and loaded.

An object is a kernel file compiled with one set of macros, plus the callers of its functions. Models that share kernels
share objects.
"""

import ctypes
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from litecl.delegate import disk, own_code
from litecl.delegate.backend import binaries, fork
from litecl.delegate.backend.sources import Defines, render, source_of
from litecl.delegate.native.ahead import Ahead
from litecl.delegate.native.clang import Compiler, Unit
from litecl.delegate.native.loading import loaded
from litecl.delegate.plan.region_program import RegionProgram
from litecl.delegate.progress import logged, phase, slow, tell

_MORE_PASSES = {"copy.cl"}  # its rows are short, with a stride unknown at compile time
_PRELUDE, _CREW, _PYTHON, _RUNTIME = "native.h", "crew.c", "python.c", "runtime.c"
_NAME = r"library-[0-9a-f]{32}"
# Files of functions that kernel variants share, by their name (``NAME.h`` declares them, ``NAME.cl`` defines them): the
# macros that each depends on.
_SHARED = {"gather_patches": ("T", "WIDTH", "WORDS")}


class Libraries:
    """The libraries of one compiler. macros: defined for all kernels. directory: the cache of objects, or None. ahead:
    objects that need not be compiled, or None.

    loaded: the number of objects and libraries read, not made. origin: the source of the libraries, for people;
    empty for the compiler alone.
    """

    origin = ""

    def __init__(self, compiler: Compiler, macros: Defines, directory: Path | None, ahead: Ahead | None = None) -> None:
        self._compiler, self._macros, self._directory, self._ahead = compiler, macros, directory, ahead
        self._identity = compiler.identity
        if ahead is not None:
            self._identity = (*compiler.identity, *ahead.compiler.target)
            self.origin = f"kernels compiled ahead for {ahead.compiler.processor} where there are any"
        self._libraries: dict[str, ctypes.CDLL] = {}
        self._making = fork.Section(needs_runtime=False)  # one thread at a time compiles; others wait for its result
        self.loaded = 0

    def region(self, program: RegionProgram, workers: int, *, timed: bool) -> ctypes.CDLL:
        """Return the library with ``run_region`` and everything that it calls. Raises KernelBuildError."""
        note = self._note(program, workers, timed)
        name = (binaries.read(self._directory, note) or b"").decode(errors="replace") if note else ""
        if re.fullmatch(_NAME, name) and (library := self._known(name)) is not None:
            return library
        units = self.callable_units(program, workers, timed=timed)
        if note:
            binaries.keep(self._directory, note, self._names(units)[1].encode())
        return self._library(units)

    def _note(self, program: RegionProgram, workers: int, timed: bool) -> str | None:
        """Return the file that says which library has a program, so that its sources need not be read; None without
        one, as for users' kernels, which may change.
        """
        code = own_code.digest()
        if self._directory is None or code is None or any(variant.is_users for variant in program.variants):
            return None
        variants = [(v.kernel, v.defines, callers) for v, callers in program.variants.items()]
        said = variants, program.is_straight, workers == 1, timed, sorted(self._macros.items())
        return disk.key("named", self._identity, (code, repr(said)))

    def _known(self, name: str) -> ctypes.CDLL | None:
        """Return a library that is loaded or in the cache; None if it is neither."""
        with self._making.lock:
            if name not in self._libraries and (content := self._kept(name)) is not None:
                self._libraries[name] = loaded(content)
        return self._libraries.get(name)

    def crew(self) -> ctypes.CDLL:
        """Return the crew's library (kernels_cl/crew.c). Raises KernelBuildError."""
        return self._library(self.crew_units())

    def callable_units(self, program: RegionProgram, workers: int, *, timed: bool) -> list[Unit]:
        """Return the sources of a region's library for Python."""
        return [*self.region_units(program, workers, timed=timed), Unit(_PYTHON, source_of(_PYTHON))]

    def region_units(self, program: RegionProgram, workers: int, *, timed: bool) -> list[Unit]:
        """Return the sources of a region, which are the same for any number of workers above one."""
        units = dict[Unit, None]()  # each once
        for variant, callers in program.variants.items():
            unit = self._unit(f"{variant.kernel}.cl", variant.macros, after=callers)
            units |= {unit: None, **dict.fromkeys(self._shared(unit, variant.macros))}
        wanted = {"LITECL_SOLO": workers == 1, "LITECL_STRAIGHT": program.is_straight, "LITECL_TIMED": timed}
        macros = {"LITECL_REGION": 1, **{macro: 1 for macro, is_wanted in wanted.items() if is_wanted}}
        return [*units, self._unit("region.cl", macros), *self._runtime()]

    def _shared(self, unit: Unit, defines: Defines) -> Iterator[Unit]:
        """Yield the files of shared functions whose header a kernel file includes."""
        for name, macros in _SHARED.items():
            if f'"{name}.h"' in unit.source and "PLAIN" not in defines:
                own = {macro: value for macro, value in defines.items() if macro in (*macros, "LITECL_REGION")}
                yield self._unit(f"{name}.cl", own)

    def crew_units(self) -> list[Unit]:
        """Return the sources of the crew's library."""
        return [Unit(_CREW, source_of(_CREW)), *self._runtime()]

    def _runtime(self) -> list[Unit]:
        """Return the replacement of the compiler's runtime library, if compiled code may call it."""
        macros = self._compiler.macros
        has_all = "_WIN32" not in macros and not {"__aarch64__", "__F16C__"}.isdisjoint(macros)
        return [] if has_all else [Unit(_RUNTIME, source_of(_RUNTIME))]

    def _unit(self, name: str, macros: Defines, after: str = "") -> Unit:
        text = source_of(_PRELUDE) + source_of(name) + after
        passes = ("-O2",) if name in _MORE_PASSES else ()
        return Unit(name, text, (*render({**macros, **self._macros}), *passes))

    def content(self, units: Sequence[Unit]) -> tuple[str, bytes]:
        """Return a library's name, a hash of its inputs, and its bytes. Raises KernelBuildError."""
        keys, name = self._names(units)
        return name, self._content(units, keys, name)

    def _library(self, units: Sequence[Unit]) -> ctypes.CDLL:
        keys, name = self._names(units)
        if name not in self._libraries:
            with self._making.lock:
                self._libraries[name] = self._libraries.get(name) or loaded(self._content(units, keys, name))
        return self._libraries[name]

    def _names(self, units: Sequence[Unit]) -> tuple[list[str], str]:
        keys = [self._compiler.key(unit) for unit in units]
        return keys, disk.key("library", self._identity, keys)

    def _content(self, units: Sequence[Unit], keys: Sequence[str], name: str) -> bytes:
        content = self._kept(name)
        if content is None:
            content = self._compiler.link(self._objects(units, keys))
            binaries.keep(self._directory, name, content)
        return content

    def _objects(self, units: Sequence[Unit], keys: Sequence[str]) -> list[bytes]:
        """Return object files, compiling those that are not cached."""
        with phase("load"):
            objects = {key: self._kept(key, unit) for key, unit in zip(keys, units, strict=True)}
        missing = {key: unit for key, unit in zip(keys, units, strict=True) if objects[key] is None}
        if missing:
            with phase("compile"), logged(f"compiling {len(missing)} files"):
                objects.update(self._compiled(missing))
        return [content for content in objects.values() if content is not None]

    def _compiled(self, units: Mapping[str, Unit]) -> Iterator[tuple[str, bytes]]:
        """Compile units, caching each at once so that an interrupted build resumes."""
        names, sources = [*units], [*units.values()]
        say_if_slow = slow("compiling for the processor")
        tell(sources[0].name, 0, len(units))
        with closing(self._compiler.compiled(sources)) as compiled:
            for count, (number, content) in enumerate(compiled, start=1):
                binaries.keep(self._directory, names[number], content)
                yield names[number], content
                say_if_slow(count, len(units))
                tell("the region" if count == len(units) else sources[count].name, count, len(units))

    def _kept(self, key: str, unit: Unit | None = None) -> bytes | None:
        content = binaries.read(self._directory, key)
        if content is None and unit is not None and self._ahead is not None:
            content = self._ahead.read(unit)
        self.loaded += content is not None
        return content
