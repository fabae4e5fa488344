"""The memory of a plan on the processor: numpy arrays, which kernels and host use in place."""

from collections.abc import Callable, Mapping
from weakref import ref

import numpy as np

from litecl.delegate.backend import fork
from litecl.delegate.backend.layout import Layout, part_of
from litecl.delegate.cl_op import Arg, Operand
from litecl.delegate.plan.memory import align
from litecl.delegate.plan.plan import Plan
from litecl.delegate.plan.region_tables import RegionSize, Shift
from litecl.interpreter.buffers import ALIGNMENT, LARGE_PAGE, Constants, HostBuffer, aligned
from litecl.interpreter.graph import Array

_SHARED_BYTES = 1 << 12  # of constants worth sharing; no kernel uses larger ones as counters
_MOVED_BYTES = 1 << 18  # up to here, constants are copied if that aligns them to cache lines
_CHUNK_BYTES = 1 << 24  # of a chunk that copies share
_OWN_BYTES = 1 << 22  # from here on constants may stay where they are: numpy requests huge pages for them
_STEP = 1 << 20  # bytes compared at a time
_SAMPLE = 64  # bytes in the key of a constant; only those with equal keys are compared whole


class ConstantPool:
    """The large constants of all regions, each stored once: signatures and models share their weights.

    Kernels only read them. The pool drops constants that no region holds any more. Copies are packed into chunks to
    share huge pages (``aligned``).
    """

    def __init__(self) -> None:
        self._sharing = fork.Section(needs_runtime=False)
        self._taking = False  # by a thread that a signal handler may have interrupted, or that a fork has left behind
        self._held: dict[tuple[int, bytes], list[ref[Array]]] = {}
        self._chunk: Callable[[], Array | None] = lambda: None
        self._next = self._end = 0  # of the chunk, in bytes

    def held(self, data: Array) -> Array:
        """Return a constant's bytes: an equal constant in the pool, the array itself (``_is_apart``), or a copy."""
        given = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        key = given.size, given[:: max(1, given.size // _SAMPLE)].tobytes()
        with self._sharing.lock:
            alive = [(held, array) for held in self._held.get(key, ()) if (array := held()) is not None]
            shared = next((array for _, array in alive if _equal(array, given)), None)
            if shared is None:
                shared = given if _is_apart(data) else self._copied(given)
                self._held = {
                    k: there for k, refs in self._held.items() if (there := [r for r in refs if r() is not None])
                }
                self._held[key] = [*(held for held, _ in alive), ref(shared)]
        return shared

    def _copied(self, given: Array) -> Array:
        """Return a copy, with its own allocation if it fills huge pages, or if the chunk is being used."""
        copy = aligned(given.size) if given.size >= LARGE_PAGE or self._taking else self._taken(given.size)
        copy[...] = given
        return copy

    def _taken(self, size_bytes: int) -> Array:
        """Allocate from the current chunk, or from a new one. A chunk lives as long as any part of it."""
        self._taking = True
        try:
            size, chunk = align(size_bytes, ALIGNMENT), self._chunk()
            if chunk is None or self._next + size > self._end:
                memory = aligned(_CHUNK_BYTES)
                chunk = memory.base
                assert chunk is not None
                start = memory.ctypes.data - chunk.ctypes.data
                self._chunk, self._next, self._end = ref(chunk), start, start + memory.size
            part = chunk[self._next : self._next + size_bytes]
            self._next += size
            return part
        finally:
            self._taking = False


def _equal(a: Array, b: Array) -> bool:
    """Compare bytes block by block, to save memory."""
    return a.ctypes.data == b.ctypes.data or all(
        np.array_equal(a[i : i + _STEP], b[i : i + _STEP]) for i in range(0, a.size, _STEP)
    )


def _is_apart(data: Array) -> bool:
    """Return whether kernels may read an array in place and it holds no other memory: it is a part of ``Constants``, or
    large and owns its allocation, like packed weights.
    """
    alone = isinstance(data.base, np.ndarray) and data.base.nbytes <= data.nbytes + LARGE_PAGE  # see ``aligned``
    return ((alone and data.nbytes >= _OWN_BYTES) or _is_kept(data)) and _lies_well(data, ALIGNMENT)


def _is_kept(data: Array) -> bool:
    """Return whether an array is a view of a part of ``Constants``."""
    base: object = data
    while isinstance(base, np.ndarray) and not isinstance(base, Constants):
        base = base.base
    return isinstance(base, Constants)


def _lies_well(data: Array, unit: int) -> bool:
    """Return whether kernels may read an array in place: it must be contiguous, read-only, and aligned to ``unit``."""
    return data.flags.c_contiguous and not data.flags.writeable and data.ctypes.data % unit == 0


class NativeMemory:
    """An arena for what changes, and constants: large ones in a pool or the model's own memory, small ones in one
    array. See ``Memory`` in delegate/backend/protocols.py.

    base: the lowest address of a constant, to which their offsets are relative. constant_parts: the sizes of constants
    outside the model's memory, by address. shifts: the indices of the shifts (``Shift``) of inputs and outputs that may
    lie in buffers, after those of all sets.
    """

    def __init__(self, plan: Plan, pool: ConstantPool) -> None:
        self._plan = plan
        self.arena = aligned(plan.arena.size_bytes)
        self._address = int(self.arena.ctypes.data)
        self._layout = Layout(plan, ALIGNMENT)
        first = Shift.SETS + 2 * (plan.turns + 1)
        ends = dict.fromkeys(map(plan.root, (*plan.inputs, *plan.outputs)))
        outside = [root for root in ends if root in plan.arena.offsets or root in plan.apart]
        self.shifts = {root: first + i for i, root in enumerate(outside)}
        sizes = dict(self._layout.constants.values())
        small, end = {}, 0
        for offset, size in sizes.items():
            if size < _SHARED_BYTES:
                small[offset], end = end, align(end + max(1, size), ALIGNMENT)
        block = aligned(end)
        self._constants = {offset: block[at : at + sizes[offset]] for offset, at in small.items()}
        tensors = {offset for root, (offset, _) in self._layout.constants.items() if isinstance(root, Operand)}
        models = set()
        for data, offset in self._layout.released():
            if offset in small:
                self._constants[offset][...] = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
            elif (
                offset in tensors
                and not _is_kept(data)
                and _lies_well(data, ALIGNMENT if data.nbytes <= _MOVED_BYTES else data.itemsize)
            ):
                self._constants[offset] = data.reshape(-1).view(np.uint8)
                models.add(offset)
            else:
                self._constants[offset] = pool.held(data)
        addresses = {offset: memory.ctypes.data for offset, memory in self._constants.items()}
        self.base = min(addresses.values(), default=0)
        self._offsets = {offset: address - self.base for offset, address in addresses.items()}
        elsewhere = small.keys() | models
        parts = {addresses[offset]: size for offset, size in sizes.items() if offset not in elsewhere}
        self.constant_parts: Mapping[int, int] = {block.ctypes.data: end, **parts}
        self.constant_bytes = sum(self.constant_parts.values())

    def address(self, arg: Arg) -> int:
        """Return an argument's address for region.cl (``Layout.address``)."""
        root, start = self._layout.root(arg)
        if root in self.shifts:
            return (self._arena_offset(root) + start) | self.shifts[root] << RegionSize.OFFSET_BITS
        if root not in self._layout.constants:
            return self._layout.address(arg)
        return self._offsets[self._layout.constants[root][0]] | Shift.CONSTANTS << RegionSize.OFFSET_BITS

    def _arena_offset(self, root: Operand) -> int:
        """Return a root's offset in the arena; 0 if it lies apart."""
        return self._plan.arena.offsets.get(root, 0)

    def shift(self, root: Operand, buffer: HostBuffer) -> tuple[int, int]:
        """Return the index among ``shifts`` and the shift, modulo 2^64, that move a root from the arena to a buffer."""
        first = next(iter(self.shifts.values()))
        return self.shifts[root] - first, (buffer.address - self._address - self._arena_offset(root)) % (1 << 64)

    def view(self, operand: Operand, turned: bool = False) -> Array | None:
        """Return an operand's memory as an array; None for a constant or an operand that lies apart."""
        root, start = self._layout.root(operand)
        if root not in self._plan.arena.offsets and root not in self._plan.slots:
            return None
        return part_of(self.arena, self._layout.start(root, {self._plan.turns} if turned else ()) + start, operand)

    def upload(self, operand: Operand, value: Array, turned: bool = False) -> None:
        """Copy a host array to an operand."""
        view = self.view(operand, turned)
        assert view is not None
        view[...] = value

    def download(self, operand: Operand, into: Array, turned: bool = False) -> None:
        """Copy an operand, which may be a constant, to a host array."""
        view, (root, start) = self.view(operand, turned), self._layout.root(operand)
        into[...] = part_of(self._constants[self._layout.constants[root][0]], start, operand) if view is None else view

    def copy(self, state: Operand, turned: bool) -> None:
        """Copy a state from the other set."""
        before, after = self.view(state, not turned), self.view(state, turned)
        assert before is not None and after is not None
        after[...] = before
