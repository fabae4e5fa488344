"""Builds OpenCL programs for one device, and caches their binaries on disk."""

import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyopencl as cl

from litecl.delegate import disk
from litecl.delegate.backend import binaries, fork
from litecl.delegate.backend.sources import Defines, name_of, render, source_of
from litecl.delegate.cl_op import Launch
from litecl.delegate.opencl.environment import POCL, check_room
from litecl.delegate.opencl.errors import typed
from litecl.delegate.opencl.identity import identity
from litecl.delegate.opencl.kernel_objects import kernel_object
from litecl.delegate.opencl.unlocked import binary_of, linked
from litecl.delegate.plan.region_program import RegionProgram, Variant, function_of
from litecl.delegate.progress import logged, phase, tell
from litecl.interpreter.errors import KernelBuildError

_TRIES = 3


class File(NamedTuple):
    """A kernel file to compile. options: its macros. before, after: text around the file's."""

    name: str
    options: tuple[str, ...]
    before: str = ""
    after: str = ""

    @property
    def source(self) -> str:
        """The complete source text."""
        return self.before + source_of(self.name) + self.after


class Programs:
    """The programs of one context, built by one thread at a time and each kept once.

    macros: defined for all programs. cache_dir: the cache of binaries, or None.
    """

    needs_runtime, needs_threads = True, False

    def __init__(self, context: Any, device: Any, macros: Defines, cache_dir: Path | None) -> None:
        self._context, self._device, self._macros, self._cache_dir = context, device, macros, cache_dir
        self._built: dict[str, Any] = {}
        self._objects: dict[str, Any] = {}
        self._unsaved: set[str] = set()
        self._identity = identity(device)
        self._is_pocl = device.platform.name == POCL
        self.cache_hits = 0
        self.lock: Any = threading.RLock()  # reentrant: a signal handler may need a program during a build
        fork.register(self)

    def kernel(self, name: str, entry: str, defines: Defines) -> Any:
        """Return a new kernel object of ``kernels_cl/<name>.cl``. Raises KernelBuildError with the build log."""
        return self._kernel(name, entry, source_of(f"{name}.cl"), self._options(name, defines))

    def guarded_kernel(self, launch: Launch) -> Any:
        """Return a kernel with two extra arguments, flags and an index, that does nothing if flags[index] is 0."""
        function = function_of(launch)
        if function is None:
            raise KernelBuildError(f"{launch.entry} has arguments that cannot be passed on")
        options = self._options(launch.kernel, {**launch.defines, "LITECL_GUARDED": 1})
        source = source_of(f"{launch.kernel}.cl") + function.guarded
        return self._kernel(launch.kernel, f"guarded_{launch.entry}", source, options)

    def _kernel(self, name: str, entry: str, source: str, options: tuple[str, ...]) -> Any:
        key = self._key(name, (source, *options))
        if key not in self._built:  # no lock if built, even during another build
            with self.lock:
                self._built[key] = self._built.get(key) or self._program(key, lambda: self._build(key, source, options))
        program = self._built[key]
        try:
            return kernel_object(program, entry)
        except cl.Error as error:
            raise typed(error, f"{name}.cl: making kernel {entry!r}", KernelBuildError) from error

    def region_kernel(self, region: RegionProgram, *, solo: bool = False, group: bool = False) -> Any:
        """Return a new kernel object that runs a whole region (region.cl). Raises KernelBuildError with the build log.

        solo: for a device that runs one work-group at a time. group: for one group of a GPU.
        """
        asked = {"LITECL_REGION": True, "LITECL_SOLO": solo, "LITECL_GROUP": group}
        macros = {name: 1 for name, given in asked.items() if given}
        main = File("region.cl", self._options("region", macros), before=region.functions_macro)
        files = [*(self._part(*part) for part in region.variants.items()), main]
        texts = (text for file in files for text in (file.source, *file.options))  # long, so not kept
        key = self._key("region", texts)
        with self.lock:
            self._built[key] = self._built.get(key) or self._program(key, lambda: self._linked(key, files))
        return kernel_object(self._built[key], "run")

    def _program(self, key: str, build: Callable[[], Any]) -> Any:
        """Load a program from the cache or build it. Raises DelegateError if the driver lacks disk space."""
        self.check_room()
        with phase("load"):
            loaded = self.load(key)
        if loaded is not None:
            return loaded
        with phase("compile"):
            return build()

    def load(self, key: str) -> Any:
        """Load a program from the cache; return None if it is missing or the driver rejects it."""
        binary = binaries.read(self._cache_dir, key)
        if binary is None:
            return None
        try:
            program = self._of(binary)
        except cl.Error:
            return None
        self.cache_hits += 1
        return program

    def _of(self, binary: bytes) -> Any:
        return cl.Program(self._context, [self._device], [binary]).build(cache_dir=False)

    def check_room(self) -> None:
        """Raise DelegateError if the driver lacks disk space to compile or unpack; PoCL compiles at a first launch."""
        if self._is_pocl:
            check_room()

    def save(self) -> None:
        """Write new binaries to the cache; call after a first run, when the driver has compiled all kernels.

        A driver that returns no binary is not an error: the next process builds the program again.
        """
        if self._cache_dir is None:
            return
        with self.lock:
            unsaved = sorted(self._unsaved)
            self._unsaved.clear()
            for key in unsaved:
                binaries.keep(self._cache_dir, key, binary_of(self._built[key]))

    def _finished(self, key: str, program: Any) -> Any:
        """Return a program, for PoCL one that is machine code and cached.

        PoCL compiles kernels at their first launch or when asked for the binary. So the binary is requested here, and
        a program created from it has nothing left to compile. Other drivers may finish kernels in a first run, so
        ``save`` writes their binaries.
        """
        if not self._is_pocl:
            self._unsaved.add(key)
            return program
        binary = binary_of(program)
        binaries.keep(self._cache_dir, key, binary)
        with suppress(cl.Error):
            return self._of(binary)
        return program

    def _build(self, key: str, source: str, options: Sequence[str]) -> Any:
        tell(name_of(source), 0, 1)
        with (
            _build_errors(source, options, self._device),
            logged(f"compiling {name_of(source)} for {self._device.name}"),
        ):
            program = self._tried(
                lambda: cl.Program(self._context, source).build(list(options), [self._device], cache_dir=False)
            )
            program = self._finished(key, program)
        tell(name_of(source), 1, 1)
        return program

    def _part(self, variant: Variant, callers: str) -> File:
        """Return a kernel file whose kernels become functions, followed by their callers."""
        return File(f"{variant.kernel}.cl", self._options(variant.kernel, variant.macros), after=callers)

    def _options(self, kernel: str, defines: Defines) -> tuple[str, ...]:
        """Return the build options of a kernel file."""
        return render({**defines, **self._macros})

    def _linked(self, key: str, files: Sequence[File]) -> Any:
        objects, total = [], len(files) + 1
        for done, file in enumerate(files):
            source = file.source
            tell(name_of(source), done, total)
            objects.append(self._object(source, file.options))
        tell("the region", len(files), total)
        with _build_errors(source, (), self._device), logged(f"linking {len(files)} files"):
            program = self._finished(key, self._tried(lambda: linked(self._context, objects, self._device)))
        tell("the region", total, total)
        return program

    def _object(self, source: str, options: tuple[str, ...]) -> Any:
        """Compile a file for linking, or return it if another region has compiled it."""
        key = self._key("object", (source, *options))
        if key not in self._objects:
            doing, program = f"compiling {name_of(source)} for {self._device.name}", cl.Program(self._context, source)
            with warnings.catch_warnings(), logged(doing), _build_errors(source, options, self._device, program):
                warnings.simplefilter("ignore")  # pyopencl warns that it can't cache these
                self._objects[key] = self._tried(lambda: program.compile(list(options), [self._device]))
        return self._objects[key]

    def _tried(self, build: Callable[[], Any]) -> Any:
        """Build, with retries on PoCL: if the user shares its folder among processes, one that builds the same program
        at the same time removes a file before it replaces it. A build that misses the file fails without a message.
        """
        for _ in range(_TRIES - 1 if self._is_pocl else 0):
            with suppress(cl.Error):
                return build()
        return build()

    def _key(self, name: str, built_from: Iterable[str]) -> str:
        """Return the name of a binary; a user's kernel file is named by its path."""
        return disk.key(Path(name).name, self._identity, built_from)


@contextmanager
def _build_errors(source: str, options: Sequence[str], device: Any, compiled: Any = None) -> Iterator[None]:
    """Translate OpenCL's errors, adding the file, the options and the build log.

    compiled: a program that is compiled but not linked, whose log pyopencl's error lacks.
    """
    try:
        yield
    except (cl.Error, OSError) as error:  # OSError: pyopencl writes source that fails to build to a file
        log = ""
        with suppress(cl.Error):
            log = compiled.get_build_info(device, cl.program_build_info.LOG) if compiled is not None else ""
        doing = f"{name_of(source)} with {' '.join(options)} on {device.name}:\n{log}"
        raise typed(error, doing, KernelBuildError) from error
