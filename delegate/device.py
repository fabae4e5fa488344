"""An OpenCL device: choosing one, and building programs for it with a cache of binaries on disk."""

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pyopencl as cl

from litecl import kernels_cl
from litecl.delegate.cl_op import Target
from litecl.interpreter.errors import DelegateError, KernelBuildError, OutOfDeviceMemory

_KERNELS = Path(kernels_cl.__file__).parent
_OUT_OF_MEMORY = {
    cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE,
    cl.status_code.OUT_OF_RESOURCES,
    cl.status_code.OUT_OF_HOST_MEMORY,
    cl.status_code.INVALID_BUFFER_SIZE,
}


def devices() -> list[Any]:
    """Every OpenCL device of every platform. Raises DelegateError where there is no OpenCL at all."""
    # PoCL shows its single-threaded device only when asked, and reads the environment once.
    os.environ.setdefault("POCL_DEVICES", "pthread basic")
    try:
        return [device for platform in cl.get_platforms() for device in platform.get_devices()]
    except cl.Error as error:
        raise DelegateError(f"no OpenCL platform: {error}") from error


def choose(wanted: Any, num_threads: int | None, work_flops: float) -> Any:
    """The device for a model.

    wanted: a pyopencl Device, an index into ``devices()``, a fragment of a name, or None for a GPU if there is one and
    else the CPU device that suits ``num_threads`` and a model of ``work_flops`` arithmetic operations an invoke.
    """
    if isinstance(wanted, cl.Device):
        return wanted
    found = devices()
    names = [device.name for device in found]
    if isinstance(wanted, int):
        if not 0 <= wanted < len(found):
            raise DelegateError(f"device {wanted} out of range; there are {len(found)}: {names}")
        return found[wanted]
    if wanted is not None:
        matches = [device for device in found if wanted.lower() in device.name.lower()]
        if not matches:
            raise DelegateError(f"no device is named {wanted!r}; there are: {names}")
        return matches[0]
    if not found:
        raise DelegateError("no OpenCL device")
    gpus = [device for device in found if device.type & cl.device_type.GPU]
    return gpus[0] if gpus else _cpu(found, num_threads, work_flops)


# Below this much work an invoke is over before a second thread has woken up.
_SMALL_FLOPS = 3e7


def _cpu(found: list[Any], num_threads: int | None, work_flops: float) -> Any:
    alone = num_threads == 1 or (num_threads is None and work_flops < _SMALL_FLOPS)
    prefix = "basic" if alone else "pthread"
    chosen = next((device for device in found if device.name.startswith(prefix)), found[0])
    if num_threads is not None and 1 < num_threads < chosen.max_compute_units:
        by_counts = cl.device_partition_property.BY_COUNTS
        return chosen.create_sub_devices([by_counts, num_threads])[0]
    return chosen


def target_of(device: Any) -> Target:
    """What a lowering may know of a device."""
    gpu = bool(device.type & cl.device_type.GPU)
    return Target(
        kind="gpu" if gpu else "cpu",
        vector_width=4 if gpu else max(4, min(16, device.native_vector_width_float)),
        compute_units=device.max_compute_units,
        max_work_group_size=device.max_work_group_size,
        local_mem_bytes=device.local_mem_size,
    )


@contextmanager
def typed_errors(doing: str) -> Iterator[None]:
    """Turns OpenCL's errors into ours, saying what was being done."""
    try:
        yield
    except cl.Error as error:
        kind = OutOfDeviceMemory if isinstance(error, cl.MemoryError) or error.code in _OUT_OF_MEMORY else DelegateError
        raise kind(f"{doing}: {error}") from error


_INCLUDE = re.compile(r'#include "(\w+\.h)"')


@cache
def _source(name: str) -> str:
    """A kernel file with every header in place of its #include, and line numbers that stay true."""
    lines = [f'#line 1 "{name}"']
    for number, line in enumerate((_KERNELS / name).read_text().splitlines(), start=1):
        header = _INCLUDE.fullmatch(line)
        lines.append(f'{_source(header[1])}#line {number + 1} "{name}"' if header else line)
    return "\n".join(lines) + "\n"


@dataclass
class Device:
    """A device with its context, queue and programs. Built once for every set of options, shared by models.

    cache_dir: where program binaries are kept, or None for nowhere.
    """

    device: Any
    profile: bool
    cache_dir: Path | None
    context: Any = field(init=False)
    queue: Any = field(init=False)
    target: Target = field(init=False)
    cache_hits: int = 0
    _programs: dict[str, Any] = field(default_factory=dict)
    _unsaved: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        with typed_errors(f"opening {self.device.name}"):
            self.context = cl.Context([self.device])
            flags = cl.command_queue_properties.PROFILING_ENABLE if self.profile else 0
            self.queue = cl.CommandQueue(self.context, self.device, properties=flags)
        self.target = target_of(self.device)

    @property
    def name(self) -> str:
        """The name that the OpenCL platform gives the device."""
        return str(self.device.name)

    @property
    def _macros(self) -> dict[str, int]:
        return {"VW": self.target.vector_width, f"LITECL_{self.target.kind.upper()}": 1}

    @property
    def alignment(self) -> int:
        """Alignment of a sub-buffer's origin, in bytes."""
        return max(64, int(self.device.mem_base_addr_align) // 8)

    def buffer(self, size_bytes: int, data: Any = None) -> Any:
        """Device memory, filled from an array if one is given. Raises OutOfDeviceMemory."""
        limit = int(self.device.max_mem_alloc_size)
        if size_bytes > limit:
            raise OutOfDeviceMemory(f"a buffer of {size_bytes} bytes; {self.name} allows {limit} at most")
        flags = cl.mem_flags.READ_WRITE
        with typed_errors(f"allocating {size_bytes} bytes"):
            if data is not None:
                return cl.Buffer(self.context, flags | cl.mem_flags.COPY_HOST_PTR, hostbuf=data)
            return cl.Buffer(self.context, flags, size=max(1, size_bytes))

    def kernel(self, name: str, entry: str, defines: Mapping[str, str | int | float]) -> Any:
        """A new kernel object of ``kernels_cl/<name>.cl``. Raises KernelBuildError with the build log."""
        program = self._program(name, render({**defines, **self._macros}))
        with typed_errors(f"{name}.cl has no kernel {entry!r}"):
            return cl.Kernel(program, entry)

    def _program(self, name: str, options: tuple[str, ...]) -> Any:
        key = self._key(name, options)
        if key not in self._programs:
            self._programs[key] = self._load(key) or self._compile(key, name, options)
        return self._programs[key]

    def _key(self, name: str, options: tuple[str, ...]) -> str:
        platform = self.device.platform
        parts = (
            platform.name, platform.version, self.device.name, self.device.driver_version, self.device.version,
            _source(f"{name}.cl"), *options,
        )
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        return f"{name}-{digest[:32]}"

    def _compile(self, key: str, name: str, options: tuple[str, ...]) -> Any:
        source = _source(f"{name}.cl")
        try:
            program = cl.Program(self.context, source).build(list(options), devices=[self.device], cache_dir=False)
        except cl.Error as error:
            raise KernelBuildError(f"{name}.cl with {' '.join(options)} on {self.name}:\n{error}") from error
        self._unsaved.add(key)
        return program

    def _load(self, key: str) -> Any:
        """A program from the cache, or None where there is none that this driver takes."""
        path = None if self.cache_dir is None else self.cache_dir / f"{key}.bin"
        if path is None or not path.is_file():
            return None
        try:
            program = cl.Program(self.context, [self.device], [path.read_bytes()]).build(cache_dir=False)
        except (cl.Error, OSError):
            return None
        self.cache_hits += 1
        return program

    def save(self) -> None:
        """Writes new binaries to the cache; call after a first run, when the driver has finished its kernels."""
        if self.cache_dir is None:
            return
        for key in sorted(self._unsaved):
            binary = self._programs[key].get_info(cl.program_info.BINARIES)[0]
            _write_atomically(self.cache_dir / f"{key}.bin", binary)
        self._unsaved.clear()


def render(defines: Mapping[str, str | int | float]) -> tuple[str, ...]:
    """Macros as build options: a float as a literal that C reads as a float."""
    return tuple(f"-D{name}={_literal(value)}" for name, value in sorted(defines.items()))


def _literal(value: str | int | float) -> str:
    return f"{value!r}f" if isinstance(value, float) else str(value)


def _write_atomically(path: Path, content: bytes) -> None:
    """A cache that cannot be written (a full disk, a read-only home) is no error: the next process builds again."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(content)
        Path(file.name).replace(path)
    except OSError:
        return
