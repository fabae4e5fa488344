"""Memory and time limits of one model, so that a small file cannot exhaust a machine.

Without a budget one rule holds: no tensor may take more than half of the machine's memory. Systems overcommit memory
and kill a process that uses it, so numpy raises MemoryError only for far larger sizes.

A ``Budget`` counts all live values, and an operator's allocations before it makes them. Kernels whose temporaries are
large compared with their operands (borders, unrolled windows) request them with ``temporary``, loops within kernels
call ``tick``; both use the budget of the call that runs in this thread.
"""

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar, copy_context
from typing import TypeVar

import numpy as np

from litecl.interpreter.errors import LimitError, ModelError
from litecl.interpreter.graph import Array, TensorSpec


def _memory_bytes() -> int:
    """Return the machine's physical memory; a huge number if the system does not report it."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 1 << 62


MOST_BYTES = _memory_bytes() // 2
"""The most bytes of one tensor: half of the machine's memory, since reading a tensor copies it."""

_BYTES_AN_ELEMENT = {"f": 40, "c": 64, "b": 16, "O": 64}
_BYTES_AN_INTEGER = 64
_LEAST_BYTES = 1 << 16


class Budget:
    """The memory and time that one model may take, and what it takes now.

    memory_bytes: limits live values and kernels' allocations. time_s: limits one call. None: no limit.
    """

    def __init__(self, memory_bytes: int | None = None, time_s: float | None = None) -> None:
        self.memory_bytes, self.time_s = memory_bytes, time_s
        self.live_bytes = 0
        self._held: dict[int, tuple[Array, int]] = {}  # by id: the owner of the memory, and its number of holds
        self._until = math.inf

    def start_clock(self) -> None:
        """Start, or restart, the time of a call."""
        self._until = math.inf if self.time_s is None else time.monotonic() + self.time_s

    def reset(self) -> None:
        """Forget all holds."""
        self.live_bytes = 0
        self._held.clear()

    def tick(self) -> None:
        """Raise LimitError once the call has taken longer than it may."""
        if time.monotonic() > self._until:
            raise LimitError(f"the call takes longer than {self.time_s:g} s (time_limit)")

    def require(self, size_bytes: int) -> None:
        """Raise LimitError if this many bytes on top of live values exceed the limit."""
        if self.memory_bytes is not None and self.live_bytes + size_bytes > self.memory_bytes:
            raise LimitError(
                f"needs {size_bytes} bytes besides {self.live_bytes} that are live, expected at most "
                f"{self.memory_bytes} in all (memory_limit)"
            )

    def reserve(self, size_bytes: int) -> None:
        """Count memory that stays allocated; see ``require``."""
        self.require(size_bytes)
        self.live_bytes += size_bytes

    def hold(self, array: Array) -> None:
        """Count an array as alive; views of the same memory count once."""
        owner = _owner(array)
        count = self._held.get(id(owner), (owner, 0))[1]
        self._held[id(owner)] = owner, count + 1
        self.live_bytes += 0 if count else owner.nbytes

    def drop(self, array: Array) -> None:
        """Undo one ``hold``."""
        owner = _owner(array)
        count = self._held.get(id(owner), (owner, 0))[1]
        if count > 1:
            self._held[id(owner)] = owner, count - 1
        elif count:
            del self._held[id(owner)]
            self.live_bytes -= owner.nbytes


def budget(memory_limit: int | None, time_limit: float | None) -> Budget | None:
    """Return a budget for a user's limits; None without any. Raises ModelError unless they are more than 0."""
    for name, limit in (("memory_limit", memory_limit), ("time_limit", time_limit)):
        if limit is not None and not limit > 0:
            raise ModelError(f"{name}: expected more than 0, got {limit}")
    return None if memory_limit is None and time_limit is None else Budget(memory_limit, time_limit)


def _owner(array: Array) -> Array:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


class CountedValues(dict[int, Array]):
    """Values by tensor; a budget counts them while they are in this dictionary."""

    def __init__(self, budget: Budget, values: Mapping[int, Array]) -> None:
        super().__init__()
        self._budget = budget
        for tensor, value in values.items():
            self[tensor] = value

    def __setitem__(self, tensor: int, value: Array) -> None:
        self._budget.hold(value)
        if tensor in self:
            self._budget.drop(self[tensor])
        super().__setitem__(tensor, value)

    def pop(self, tensor: int, default: object = None) -> object:  # type: ignore[override]
        """Remove a value and stop counting it."""
        value = super().pop(tensor, None)
        if value is not None:
            self._budget.drop(value)
        return default if value is None else value

    def clear(self) -> None:
        """Remove all values."""
        for value in self.values():
            self._budget.drop(value)
        super().clear()


_ACTIVE: ContextVar[Budget | None] = ContextVar("budget", default=None)
_T = TypeVar("_T")


def within(budget: Budget | None, call: Callable[..., _T], *arguments: object) -> _T:
    """Call a function whose kernels use this budget, and whose time begins now; return its result.

    It has its own context, which ends with it: no interrupt can leave the budget to later calls.
    """
    if budget is None:
        return call(*arguments)
    budget.start_clock()
    return copy_context().run(_within, budget, call, *arguments)


def _within(budget: Budget, call: Callable[..., _T], *arguments: object) -> _T:
    _ACTIVE.set(budget)
    return call(*arguments)


def active() -> Budget | None:
    """Return the budget of the call running in this thread."""
    return _ACTIVE.get()


def tick() -> None:
    """Raise LimitError once the running call has taken longer than it may; for loops that may be long."""
    budget = _ACTIVE.get()
    if budget is not None:
        budget.tick()


def timed() -> bool:
    """Return whether the time of the running call is limited."""
    running = _ACTIVE.get()
    return running is not None and running.time_s is not None


def reserve(size_bytes: int) -> None:
    """Count memory that stays allocated as long as the prepared model. Raises LimitError if refused."""
    budget = _ACTIVE.get()
    if budget is not None:
        budget.reserve(size_bytes)


def temporary(name: str, shape: Sequence[int], itemsize: int) -> None:
    """Request memory for a kernel's allocation. Raises LimitError over the budget, ModelError over ``MOST_BYTES``."""
    size_bytes = math.prod(shape) * itemsize
    if size_bytes < _LEAST_BYTES:
        return
    budget = _ACTIVE.get()
    if budget is not None:
        budget.require(size_bytes)
    if size_bytes > MOST_BYTES:
        raise ModelError(
            f"{name} of shape {list(shape)} takes {size_bytes} bytes, expected at most {MOST_BYTES} "
            "(half of this machine's memory)"
        )


def check(spec: TensorSpec) -> None:
    """Raise for a tensor of known shape that is too large: LimitError by budget, ModelError by ``MOST_BYTES``."""
    if spec.shape is None:
        return
    size_bytes = math.prod(spec.shape) * spec.dtype.itemsize
    budget = _ACTIVE.get()
    if budget is not None and budget.memory_bytes is not None and size_bytes > budget.memory_bytes:
        raise LimitError(
            f"tensor {spec.name!r} of shape {list(spec.shape)} takes {size_bytes} bytes, expected at most "
            f"{budget.memory_bytes} (memory_limit)"
        )
    if size_bytes > MOST_BYTES:
        raise ModelError(
            f"tensor {spec.name!r} of shape {list(spec.shape)} takes {size_bytes} bytes, expected at most {MOST_BYTES} "
            "(half of this machine's memory)"
        )


def bytes_of(specs: Sequence[TensorSpec | None]) -> int:
    """Return the bytes of those tensors whose shapes are known."""
    return sum(spec.size * spec.dtype.itemsize for spec in specs if spec is not None and spec.shape is not None)


def workspace(specs: Sequence[TensorSpec | None]) -> int:
    """Return the bytes that a kernel may take besides its outputs: a multiple of its inputs' and outputs' elements.

    Kernels compute integers in 64 bits, several arrays at a time; floats take no more.
    """
    return sum(
        spec.size * _BYTES_AN_ELEMENT.get(spec.dtype.kind, _BYTES_AN_INTEGER)
        for spec in specs
        if spec is not None and spec.shape is not None
    )


def need(fed: Sequence[TensorSpec | None], outputs: Sequence[TensorSpec]) -> int:
    """Return the bytes that running an operator takes on its non-constant inputs: its outputs and its workspace."""
    return bytes_of(outputs) + workspace([*fed, *outputs])


def packed(inputs: Sequence[TensorSpec | None]) -> int:
    """Return the bytes that kernels may keep for integer constants prepared once: eight per element."""
    constants = [spec for spec in inputs if spec is not None and spec.data is not None]
    return sum(8 * spec.size for spec in constants if spec.shape is not None and spec.dtype.kind in "iu")
