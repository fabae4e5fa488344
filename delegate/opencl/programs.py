"""Building OpenCL programs for one device, with a cache of their binaries on disk."""

import logging
import re
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import pyopencl as cl

from litecl import kernels_cl
from litecl.delegate import disk
from litecl.delegate.backend import fork
from litecl.delegate.cl_op import Launch
from litecl.delegate.opencl.environment import POCL, check_room, tidy
from litecl.delegate.opencl.errors import typed
from litecl.delegate.opencl.identity import identity
from litecl.delegate.opencl.kernel_objects import kernel_object
from litecl.delegate.plan.headers import header
from litecl.delegate.plan.region_program import RegionProgram, Variant, function_of
from litecl.delegate.progress import logged, phase, tell
from litecl.delegate.report import warn
from litecl.interpreter.errors import KernelBuildError

_LOG = logging.getLogger("litecl")
_KERNELS = Path(kernels_cl.__file__).parent
_TRIES = 3
_INCLUDE = re.compile(r'#include (?:"(\w+\.h)"|<(\w+)>)')

Defines = Mapping[str, str | int | float]
File = tuple[str, tuple[str, ...]]
"""A file to compile: source and options."""


class Programs:
    """The programs of one context, built by one thread at a time. ``macros`` are defined for all of them. Each distinct
    program is kept once, as long as the process lives. cache_dir: where binaries are kept, or None.
    """

    needs_threads = False

    def __init__(self, context: Any, device: Any, macros: Defines, cache_dir: Path | None) -> None:
        self._context, self._device, self._macros, self._cache_dir = context, device, macros, cache_dir
        self._built: dict[str, Any] = {}
        self._objects: dict[str, Any] = {}
        self._unsaved: set[str] = set()
        self._identity = identity(device)
        self._is_pocl = device.platform.name == POCL
        self.cache_hits = 0
        self.lock: Any = threading.Lock()
        fork.register(self)

    def kernel(self, name: str, entry: str, defines: Defines) -> Any:
        """Return a new kernel object of ``kernels_cl/<name>.cl``. Raises KernelBuildError with the build log."""
        return self._kernel(name, entry, _source(f"{name}.cl"), render({**defines, **self._macros}))

    def guarded_kernel(self, launch: Launch) -> Any:
        """Return a kernel with two extra arguments, flags and an index: it does nothing while flags[index] is 0."""
        function = function_of(launch)
        if function is None:
            raise KernelBuildError(f"{launch.entry} has arguments that cannot be handed on")
        options = render({**launch.defines, **self._macros, "LITECL_GUARDED": 1})
        source = _source(f"{launch.kernel}.cl") + function.guarded
        return self._kernel(launch.kernel, f"guarded_{launch.entry}", source, options)

    def _kernel(self, name: str, entry: str, source: str, options: tuple[str, ...]) -> Any:
        key = self._key(name, (source, *options))
        if key not in self._built:  # what is built is returned without a lock, even while something else is being built
            with self.lock:
                self._built[key] = self._built.get(key) or self._made(key, lambda: self._build(key, source, options))
        program = self._built[key]
        try:
            return kernel_object(program, entry)
        except cl.Error as error:
            raise typed(error, f"{name}.cl: making kernel {entry!r}", KernelBuildError) from error

    def region_kernel(
        self, region: RegionProgram, entry: str = "run", *, solo: bool = False, timed: bool = False, group: bool = False
    ) -> Any:
        """Return a new kernel object that runs a whole region (region.cl). Raises KernelBuildError with the build log.

        entry: run, or lead or assist, which are in one program. timed: measures the times of its steps; that is another
        program than without. group: for one group of a GPU.
        """
        asked = {"LITECL_SOLO": solo, "LITECL_TIMED": timed, "LITECL_GROUP": group, "LITECL_CREW": entry != "run"}
        macros = {**self._macros, "LITECL_REGION": 1, **{name: 1 for name, given in asked.items() if given}}
        main = region.functions_macro + _source("region.cl"), render(macros)

        def files() -> Iterator[File]:  # not a list: it is long, and needed again only if the cache has no binary
            yield from (self._part(variant, callers) for variant, callers in region.variants.items())
            yield main

        key = self._key("region", (text for source, options in files() for text in (source, *options)))
        with self.lock:
            self._built[key] = self._built.get(key) or self._made(key, lambda: self._link(key, [*files()]))
        return kernel_object(self._built[key], entry)

    def _made(self, key: str, build: Callable[[], Any]) -> Any:
        """Return a program from the cache, or else built, if the driver has disk space for what it writes."""
        self.check_room()
        with phase("load"):
            loaded = self.load(key)
        if loaded is not None:
            return loaded
        with phase("compile"):
            return build()

    def load(self, key: str) -> Any:
        """Return a program from the cache, or None if there is none that this driver accepts."""
        binary = None if self._cache_dir is None else disk.read_sealed(self._cache_dir / f"{key}.bin")
        if binary is None:
            return None
        try:
            program = cl.Program(self._context, [self._device], [binary]).build(cache_dir=False)
        except cl.Error:
            return None
        self.cache_hits += 1
        return program

    def check_room(self) -> None:
        """Raise DelegateError if the driver has no disk space for what it is about to compile or unpack. PoCL compiles
        a kernel at its first launch.
        """
        if self._is_pocl:
            check_room()

    def save(self) -> None:
        """Write new binaries to the cache; call after a first run, when the driver has finished its kernels.

        A driver that returns no binary is not an error: the next process builds the program again.
        """
        if self._cache_dir is None:
            return
        with self.lock:
            unsaved = sorted(self._unsaved)
            self._unsaved.clear()
            kept = [self._keep(key, self._cache_dir) for key in unsaved]
        if any(kept):
            disk.tidy(self._cache_dir, disk.limit(self._cache_dir))
            tidy()

    def _keep(self, key: str, folder: Path) -> bool:
        """Write a program's binary. Return whether it is there now."""
        binary = b""
        with suppress(cl.Error):
            binary = self._built[key].get_info(cl.program_info.BINARIES)[0]
        if binary and disk.write_sealed(folder / f"{key}.bin", binary):
            _LOG.info("kept %s.bin (%d bytes) in %s", key, len(binary), folder)
            return True
        if binary:
            warn(
                f"compiled programs cannot be kept in {folder}, so that every process compiles anew: "
                "set XDG_CACHE_HOME to a folder that can be written"
            )
        return False

    def _build(self, key: str, source: str, options: Sequence[str]) -> Any:
        tell(_name(source), 0, 1)
        with _build_errors(source, options, self._device), logged(f"compiling {_name(source)} for {self._device.name}"):
            program = self._tried(
                lambda: cl.Program(self._context, source).build(list(options), [self._device], cache_dir=False)
            )
        tell(_name(source), 1, 1)
        self._unsaved.add(key)
        return program

    def _part(self, variant: Variant, callers: str) -> File:
        """Return source and options of a kernel file whose kernels become functions, with what calls them."""
        source = _source(f"{variant.kernel}.cl") + callers
        return source, render({**dict(variant.defines), **self._macros, "LITECL_REGION": 1})

    def _link(self, key: str, files: Sequence[File]) -> Any:
        objects, total = [], len(files) + 1
        for done, (source, options) in enumerate(files):
            tell(_name(source), done, total)
            objects.append(self._object(source, options))
        tell("the region", len(files), total)
        with _build_errors(files[-1][0], (), self._device), logged(f"linking {len(files)} files"):
            program = self._tried(lambda: cl.link_program(self._context, objects, devices=[self._device]))
        tell("the region", total, total)
        self._unsaved.add(key)
        return program

    def _object(self, source: str, options: tuple[str, ...]) -> Any:
        """Return a compiled file of a program to be linked; kept, because other regions use the same files."""
        key = self._key("object", (source, *options))
        if key not in self._objects:
            doing, program = f"compiling {_name(source)} for {self._device.name}", cl.Program(self._context, source)
            with warnings.catch_warnings(), logged(doing), _build_errors(source, options, self._device, program):
                warnings.simplefilter("ignore")  # pyopencl warns that it cannot cache these: litecl does
                self._objects[key] = self._tried(lambda: program.compile(list(options), [self._device]))
        return self._objects[key]

    def _tried(self, build: Callable[[], Any]) -> Any:
        """Return what is built. Processes that build the same program with PoCL at the same time remove its file from
        PoCL's folder before they replace it: whoever misses it then fails without a word, and may try again.
        """
        for _ in range(_TRIES - 1 if self._is_pocl else 0):
            with suppress(cl.Error):
                return build()
        return build()

    def _key(self, name: str, built_from: Iterable[str]) -> str:
        """Return the name of a binary; a user's kernel file is named by its path."""
        return disk.key(Path(name).name, self._identity, built_from)


def _source(name: str) -> str:
    """Return a kernel file with every header and shared record in place of its #include, and correct line numbers.
    litecl's own files are read once; a user's, which have absolute paths, may change. Raises KernelBuildError.
    """
    return _expanded(name) if Path(name).is_absolute() else _own(name)


@cache
def _own(name: str) -> str:
    return _expanded(name)


def _expanded(name: str) -> str:
    try:
        content = (_KERNELS / name).read_text()
    except OSError as error:
        raise KernelBuildError(f"{name}: {error.strerror}") from error
    lines = [f'#line 1 "{name}"']
    for number, line in enumerate(content.splitlines(), start=1):
        found = _INCLUDE.fullmatch(line)
        lines.append(f'{_included(*found.groups())}#line {number + 1} "{name}"' if found else line)
    return "\n".join(lines) + "\n"


def _included(file: str | None, shared: str | None) -> str:
    return header(shared) if file is None and shared is not None else _own(str(file))


def render(defines: Defines) -> tuple[str, ...]:
    """Return macros as build options, floats as C literals of type float."""
    return tuple(f"-D{name}={_literal(value)}" for name, value in sorted(defines.items()))


def _literal(value: str | int | float) -> str:
    return f"{value!r}f" if isinstance(value, float) else str(value)


@contextmanager
def _build_errors(source: str, options: Sequence[str], device: Any, compiled: Any = None) -> Iterator[None]:
    """Turn OpenCL's errors into litecl's, with the file, the options and the build log, which pyopencl's error has but
    for a program that is only compiled.
    """
    try:
        yield
    except (cl.Error, OSError) as error:  # pyopencl writes source that does not build to a file
        log = ""
        with suppress(cl.Error):
            log = compiled.get_build_info(device, cl.program_build_info.LOG) if compiled is not None else ""
        doing = f"{_name(source)} with {' '.join(options)} on {device.name}:\n{log}"
        raise typed(error, doing, KernelBuildError) from error


def _name(source: str) -> str:
    """Return the kernel file that a source was made from."""
    found = re.findall(r'#line 1 "([^"]+\.cl)"', source)
    return found[-1] if found else "a program"
