"""Counts every OpenCL call that litecl makes, and lets one of them fail.

litecl's modules see pyopencl through ``cl``, which is replaced there; methods and queries are replaced in pyopencl's
classes. Calls that pyopencl makes within such a call don't count.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from weakref import ref

import pyopencl as cl

from litecl.delegate.opencl import enqueue, unlocked

_FUNCTIONS = (
    *("get_platforms", "Context", "CommandQueue", "Buffer", "SVMAllocation", "Program", "Kernel", "link_program"),
    *("enqueue_nd_range_kernel", "enqueue_copy", "enqueue_fill_buffer", "enqueue_map_buffer"),
)
_METHODS = (
    *((cl.Program, name) for name in ("build", "compile", "get_info")),
    *((cl.Platform, name) for name in ("get_devices", "name", "version")),
    *((cl.Device, name) for name in ("name", "type", "platform", "version", "driver_version", "max_compute_units")),
    *((cl.Device, name) for name in ("native_vector_width_float", "max_work_group_size", "local_mem_size")),
    *((cl.Device, name) for name in ("svm_capabilities", "mem_base_addr_align", "max_mem_alloc_size")),
    *((cl.Device, name) for name in ("create_sub_devices",)),
    *(
        (cl.MemoryObjectHolder if hasattr(cl.MemoryObjectHolder, "get_sub_region") else cl.Buffer, name)
        for name in ("get_sub_region",)
    ),
    *((cl.CommandQueue, name) for name in ("finish", "flush")),
    *((cl.Kernel, name) for name in ("set_args",)),
    *((cl.Event, name) for name in ("profile", "wait")),
    (cl.MemoryMap, "release"),
)
_KINDS = (
    (cl.MemoryError, cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE),
    (cl.RuntimeError, cl.status_code.OUT_OF_RESOURCES),
    (cl.LogicError, cl.status_code.INVALID_VALUE),
    (cl.RuntimeError, cl.status_code.EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
)


def error(kind: int, routine: str) -> Exception:
    """An OpenCL error, as pyopencl would raise it. kind: any number."""
    type_, code = _KINDS[kind % len(_KINDS)]
    record = cl._cl._ErrorRecord(msg=f"{routine} fails on purpose", code=code, routine=routine)
    raised: Exception = type_(record)
    return raised


@dataclass
class Seam:
    """calls: the calls so far, in order. fail_at: the position of the call that fails, by raising ``raised``."""

    fail_at: int | None = None
    raised: Callable[[str], BaseException] = lambda routine: error(0, routine)
    calls: list[str] = field(default_factory=list)
    _made: list[Any] = field(default_factory=list)
    _depth: int = 0

    @property
    def live(self) -> list[Any]:
        """Return the buffers, contexts and programs that still exist."""
        return [item for made in self._made if (item := made()) is not None]

    def call(self, name: str, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """One call, unless it is the one that fails."""
        if self._depth:
            return real(*args, **kwargs)
        self.calls.append(name)
        if len(self.calls) - 1 == self.fail_at:
            raise self.raised(name)
        self._depth += 1
        try:
            made = real(*args, **kwargs)
        finally:
            self._depth -= 1
        with suppress(TypeError):  # of all that is made, buffers, contexts and programs can be referred to weakly
            if name in ("Buffer", "SVMAllocation", "Context", "Program", "link_program"):
                self._made.append(ref(made))
        return made


@contextmanager
def installed(seam: Seam) -> Iterator[Seam]:
    """A seam in place of pyopencl, as far as litecl's modules go."""
    proxy = _Proxy(seam)
    modules = [m for n, m in sys.modules.items() if n.startswith("litecl.") and getattr(m, "cl", None) is cl]
    kept = [(class_, name, class_.__dict__[name]) for class_, name in _METHODS]
    natives = {name: getattr(enqueue, name) for name in ("_enqueue", "_enqueue_locked")}
    for name, function in natives.items():
        setattr(enqueue, name, function and _native(seam, function, "clEnqueueNDRangeKernel"))
    link, unlocked._link = unlocked._link, None  # pyopencl's is counted
    for module in modules:
        module.cl = proxy  # type: ignore[attr-defined]
    for class_, name, real in kept:
        setattr(class_, name, _replaced(seam, f"{class_.__name__}.{name}", real))
    try:
        yield seam
    finally:
        unlocked._link = link
        for name, function in natives.items():
            setattr(enqueue, name, function)
        for class_, name, real in kept:
            setattr(class_, name, real)
        for module in modules:
            module.cl = cl  # type: ignore[attr-defined]


class _Proxy(SimpleNamespace):
    def __init__(self, seam: Seam) -> None:
        super().__init__()
        for name in _FUNCTIONS:
            real = _COUNTED.get(name) or getattr(cl, name)
            setattr(self, name, lambda *args, _n=name, _r=real, **kwargs: seam.call(_n, _r, *args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        return getattr(cl, name)


class _Buffer(cl.Buffer):  # type: ignore[misc]
    """A buffer that can be referred to weakly."""


class _SVMAllocation(cl.SVMAllocation):  # type: ignore[misc]
    """The same of shared memory."""


_COUNTED: dict[str, Any] = {"Buffer": _Buffer, "SVMAllocation": _SVMAllocation}


def _native(seam: Seam, real: Callable[..., int], name: str) -> Callable[..., int]:
    """A function that litecl calls past pyopencl, which answers with a status instead of raising."""

    def answer(*args: Any) -> int:
        try:
            return int(seam.call(name, real, *args))
        except cl.Error as failed:
            return int(failed.code)

    return answer


def _replaced(seam: Seam, name: str, real: Any) -> Any:
    if isinstance(real, property):
        return property(lambda self: seam.call(name, real.__get__, self, type(self)))
    return lambda self, *args, **kwargs: seam.call(name, real.__get__(self, type(self)), *args, **kwargs)
