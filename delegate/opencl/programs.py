"""Building OpenCL programs for one device, with a cache of their binaries on disk."""

import logging
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyopencl as cl

from litecl.delegate import disk
from litecl.delegate.backend import fork
from litecl.delegate.backend.sources import Defines, name_of, render, source_of
from litecl.delegate.cl_op import Launch
from litecl.delegate.opencl.environment import POCL, check_room, tidy
from litecl.delegate.opencl.errors import typed
from litecl.delegate.opencl.identity import identity
from litecl.delegate.opencl.kernel_objects import kernel_object
from litecl.delegate.opencl.machine_code import UNIT, machine_code
from litecl.delegate.opencl.native import binary_of, linked
from litecl.delegate.opencl.unit import File, unit
from litecl.delegate.plan.region_program import RegionProgram, Variant, function_of
from litecl.delegate.progress import logged, phase, tell
from litecl.delegate.report import warn
from litecl.interpreter.errors import KernelBuildError

_LOG = logging.getLogger("litecl")
_TRIES = 3


class Programs:
    """The programs of one context, built by one thread at a time. ``macros`` are defined for all of them, ``lean`` for
    litecl's own files. whole: whether the files of a region are compiled as one (machine_code.py). Each distinct
    program is kept once, as long as the process lives. cache_dir: where binaries are kept, or None.
    """

    needs_threads = False

    def __init__(
        self,
        context: Any,
        device: Any,
        macros: Defines,
        cache_dir: Path | None,
        lean: Defines | None = None,
        *,
        whole: bool = False,
    ) -> None:
        self._context, self._device, self._macros, self._cache_dir = context, device, macros, cache_dir
        self._lean, self._whole = lean or {}, whole
        self._built: dict[str, Any] = {}
        self._objects: dict[str, Any] = {}
        self._unsaved: set[str] = set()
        self._identity = identity(device)
        self._is_pocl = device.platform.name == POCL
        self.cache_hits = 0
        self.lock: Any = threading.RLock()  # a signal handler may build programs too
        fork.register(self)

    def kernel(self, name: str, entry: str, defines: Defines) -> Any:
        """Return a new kernel object of ``kernels_cl/<name>.cl``. Raises KernelBuildError with the build log."""
        return self._kernel(name, entry, source_of(f"{name}.cl"), self._options(name, defines))

    def guarded_kernel(self, launch: Launch) -> Any:
        """Return a kernel with two extra arguments, flags and an index: it does nothing while flags[index] is 0."""
        function = function_of(launch)
        if function is None:
            raise KernelBuildError(f"{launch.entry} has arguments that cannot be handed on")
        options = self._options(launch.kernel, {**launch.defines, "LITECL_GUARDED": 1})
        source = source_of(f"{launch.kernel}.cl") + function.guarded
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
        self,
        region: RegionProgram,
        entry: str = "run",
        *,
        solo: bool = False,
        timed: bool = False,
        group: bool = False,
        again: bool = False,
    ) -> Any:
        """Return a new kernel object that runs a whole region (region.cl). Raises KernelBuildError with the build log.

        entry: run, or lead, or assist. timed: measures the times of its steps; that is another program than
        without. group: for one group of a GPU. again: for later runs without a launch (again.py).
        """
        asked = {"LITECL_SOLO": solo, "LITECL_TIMED": timed, "LITECL_GROUP": group, "LITECL_CREW": entry != "run"}
        asked |= {"LITECL_ASSIST": entry == "assist", "LITECL_AGAIN": again}
        macros = {"LITECL_REGION": 1, **{name: 1 for name, given in asked.items() if given}}
        main = File("region.cl", self._options("region", macros), before=region.functions_macro)
        return self._of_files([*(self._part(*part) for part in region.variants.items()), main], entry)

    def helper_kernel(self) -> Any:
        """Return a new kernel ``assist``, which calls functions of other programs (assist.h)."""
        return self._of_files([File("assist.cl", self._options("assist", {}))], "assist")

    def _of_files(self, files: Sequence[File], entry: str) -> Any:
        """Return a new kernel of a program of several files, of which the last one defines it."""
        manner = ("one source", *render(UNIT)) if self._whole else ()
        texts = (text for file in files for text in (file.source, *file.options))  # long: made again only to build
        key = self._key(Path(files[-1].name).stem, (*manner, *texts))
        with self.lock:
            self._built[key] = self._built.get(key) or self._made(key, lambda: self._link(key, files, entry))
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
            program = self._of(binary)
        except cl.Error:
            return None
        self.cache_hits += 1
        return program

    def _of(self, binary: bytes) -> Any:
        return cl.Program(self._context, [self._device], [binary]).build(cache_dir=False)

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
            for key in unsaved:
                self._keep(key, binary_of(self._built[key]), self._cache_dir)

    def _finished(self, key: str, program: Any) -> Any:
        """Return a program that is machine code, and write it to the cache; for PoCL a copy made of its binary.

        PoCL compiles a kernel when it is first launched, or when its binary is asked for: so it is asked here, and a
        program made of the binary has nothing left to compile. Other drivers may finish kernels in a first run: their
        binaries are left to ``save``.
        """
        if not self._is_pocl:
            self._unsaved.add(key)
            return program
        binary = binary_of(program)
        if self._cache_dir is not None:
            self._keep(key, binary, self._cache_dir)
        with suppress(cl.Error):
            return self._of(binary)
        return program

    def _keep(self, key: str, binary: bytes, folder: Path) -> None:
        """Write a program's binary, and see that the folders do not grow too large."""
        if self._write(key, binary, folder):
            disk.tidy(folder, disk.limit(folder))
            tidy()

    def _write(self, key: str, binary: bytes, folder: Path) -> bool:
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
        """Return a kernel file whose kernels become functions, with what calls them."""
        options = self._options(variant.kernel, {**dict(variant.defines), "LITECL_REGION": 1})
        return File(f"{variant.kernel}.cl", options, after=callers)

    def _options(self, kernel: str, defines: Defines) -> tuple[str, ...]:
        """Return the options to compile a kernel file with."""
        own = {} if Path(kernel).is_absolute() else self._lean
        return render({**defines, **self._macros, **own})

    def _link(self, key: str, files: Sequence[File], entry: str) -> Any:
        return self._as_one(key, files, entry) or self._linked(key, files)

    def _as_one(self, key: str, files: Sequence[File], entry: str) -> Any:
        """Return a program whose files are compiled as one, or None if they cannot be."""
        if not self._whole or any(Path(file.name).is_absolute() for file in files):
            return None
        tell(files[-1].name, 0, len(files))
        try:
            with logged(f"compiling {len(files)} files as one for {self._device.name}"):
                source, options = unit(files), render({**self._lean, **UNIT})
                binary = self._tried(lambda: machine_code(self._device, entry, source, options))
                program = self._of(binary) if binary else None
        except cl.Error as error:
            _LOG.info("%d files are compiled one by one: %s", len(files), error)
            return None
        if program is not None:
            tell(files[-1].name, len(files), len(files))
            if self._cache_dir is not None:
                self._keep(key, binary, self._cache_dir)
        return program

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
        """Return a compiled file of a program to be linked; kept, because other regions use the same files."""
        key = self._key("object", (source, *options))
        if key not in self._objects:
            doing, program = f"compiling {name_of(source)} for {self._device.name}", cl.Program(self._context, source)
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
        doing = f"{name_of(source)} with {' '.join(options)} on {device.name}:\n{log}"
        raise typed(error, doing, KernelBuildError) from error
