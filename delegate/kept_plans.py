"""Plans in the cache folder, so that a process whose model was planned before imports no planner.

An entry has the partitionings and plans of one model on one device, under the name that ``plan_key`` gives it: the
records pickled, and the arrays apart. ``binaries.sealed`` verifies an entry before it is decoded. Decoding creates
only the records that plans consist of; whatever else a plan refers to keeps it from being kept.
"""

import io
import math
import pickle
from bisect import bisect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from litecl.delegate import own_code
from litecl.delegate.backend import binaries
from litecl.delegate.claim.region import Partitioning, Region
from litecl.delegate.plan.memory import align
from litecl.delegate.plan.plan import Plan
from litecl.interpreter.buffers import Constants, aligned
from litecl.interpreter.graph import Array

_ALIGNMENT = 64  # of arrays in an entry
_NONE = np.empty(0, np.uint8).view(Constants)
_COPIED_BYTES = 1 << 12  # up to here, arrays are copied, and don't hold their entry
_LENGTH_BYTES = 8  # of the records' length, at the start
_MOST_BYTES = 1 << 26  # of an entry's arrays; those of the model are not among them
_RECORDS = {
    "litecl.delegate.claim.region": "Partitioning Region RegionVariable",
    "litecl.delegate.launch": "Const Launch Local Operand Scratch Weights",
    "litecl.delegate.plan.memory": "Arena Usage",
    "litecl.delegate.plan.plan": "Plan",
    "litecl.delegate.plan.steps": "Branch Loop Slot State Within Work",
    "litecl.interpreter.schema": "TensorType",
    "litecl.interpreter.tensor": "DimensionMetadata Quantization Sparsity TensorSpec",
    "builtins": "frozenset",
    "numpy": "dtype",
    "numpy._core.multiarray": "scalar",
    "numpy.core.multiarray": "scalar",
}
"""What entries may create, by module."""


class _NotKept(Exception):
    """Raised for a plan that no entry can hold."""


class KeptPlans:
    """The partitionings and plans of one model, read from the cache, or noted to be kept there.

    folder: the cache. name: the entry's; None keeps nothing. constants: the model's, in an order that the name
    determines: entries refer to them. is_read: whether there was an entry.
    """

    def __init__(self, folder: Path | None, name: str | None, constants: Sequence[Array]) -> None:
        self._folder, self._name, self._constants = folder, name, constants
        self._partitionings: dict[int, Partitioning] = {}
        self._plans: dict[Region, bytes] = {}
        self._blocks: dict[bytes, int] = {}  # arrays to write, with their offsets
        self._end = 0
        self._arrays = _NONE
        content = None if name is None else binaries.sealed(folder, name)
        self.is_read = content is not None and self._open(content)

    def partitioning(self, index: int) -> Partitioning | None:
        """Return the kept partitioning of a subgraph; None without one."""
        return self._partitionings.get(index) if self.is_read else None

    def plan(self, region: Region) -> Plan | None:
        """Return the kept plan of a region; None without one."""
        if not self.is_read or region not in self._plans:
            return None
        return _decoded(self._plans[region], self._constants, self._arrays)

    def note(self, index: int, parts: Partitioning) -> None:
        """Note a partitioning to keep."""
        if not self.is_read:
            self._partitionings[index] = parts

    def note_plan(self, planned: Plan) -> None:
        """Note a plan to keep, before a device is bound to it, which releases its constants."""
        if self._name is None or self.is_read:
            return
        try:
            self._plans[planned.region] = self._encoded(planned)
        except (pickle.PickleError, TypeError, AttributeError, RecursionError, _NotKept):
            self.drop()

    def drop(self) -> None:
        """Keep nothing, and hold no memory."""
        self._name, self._blocks, self._plans, self._partitionings = None, {}, {}, {}
        self._constants, self._arrays = (), _NONE

    def keep(self) -> None:
        """Write what was noted, and hold no memory."""
        if self._name is not None and not self.is_read and self._plans and own_code.is_unchanged():
            records = pickle.dumps((self._partitionings, self._plans), protocol=5)
            head = len(records).to_bytes(_LENGTH_BYTES, "little") + records
            binaries.keep(self._folder, self._name, b"".join(map(_padded, (head, *self._blocks))))
        self.drop()

    def _open(self, content: Array) -> bool:
        """Read the records of an entry; return whether it has the expected ones."""
        end = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES], "little")
        try:
            partitionings, plans = _Unpickler(io.BytesIO(content[_LENGTH_BYTES:end].data), (), self._arrays).load()
            kinds = {*map(type, partitionings.values()), *map(type, plans), *map(type, plans.values())}
        except Exception:  # an entry of another program
            return False
        if kinds != {Partitioning, Region, bytes}:
            return False
        self._partitionings, self._plans = partitionings, plans
        self._arrays = content[align(end, _ALIGNMENT) :].view(Constants)
        return True

    def _encoded(self, planned: Plan) -> bytes:
        memory = io.BytesIO()
        _Pickler(memory, self._constants, self._offset).dump(planned)
        encoded = memory.getvalue()
        if _decoded(encoded, self._constants, None) is None:
            raise _NotKept
        return encoded

    def _offset(self, array: Array) -> int:
        """Add an array's bytes to the blocks to write; return their offset."""
        block = array.tobytes()
        if block not in self._blocks:
            self._blocks[block] = self._end
            self._end = align(self._end + len(block), _ALIGNMENT)
        if self._end > _MOST_BYTES:
            raise _NotKept
        return self._blocks[block]


def _padded(block: bytes) -> bytes:
    return block.ljust(align(len(block), _ALIGNMENT), b"\0")


def _decoded(encoded: bytes, constants: Sequence[Array], arrays: Constants | None) -> Plan | None:
    """Return a plan; None if it names a record that entries may not. arrays: None leaves their content open."""
    try:
        planned = _Unpickler(io.BytesIO(encoded), constants, arrays).load()
    except Exception:
        return None
    return planned if isinstance(planned, Plan) else None


class _Pickler(pickle.Pickler):
    """Writes arrays in the model's memory by their position in it, and others by their offset among the blocks."""

    def __init__(self, file: io.BytesIO, constants: Sequence[Array], offset: Callable[[Array], int]) -> None:
        super().__init__(file, protocol=5)
        dense = [(x.ctypes.data, i) for i, x in enumerate(constants) if x.nbytes and _is_dense(x)]
        self._constants, self._starts, self._offset = constants, sorted(dense), offset
        self._numbers: dict[int, int] = {}  # of arrays, by identity

    def persistent_id(self, obj: Any) -> Any:
        """Return what stands for an array; None for anything else."""
        if not isinstance(obj, np.ndarray):
            return None
        if type(obj) is not np.ndarray or obj.dtype.hasobject:
            raise _NotKept
        number, within = self._numbers.setdefault(id(obj), len(self._numbers)), self._within(obj)
        position, offset = (None, self._offset(obj)) if within is None else within
        return number, position, offset, obj.dtype, obj.shape, obj.flags.writeable

    def _within(self, array: Array) -> tuple[int, int] | None:
        """Return the position of the constant in whose memory an array lies, and its offset there; None if apart."""
        start = array.ctypes.data
        before = bisect(self._starts, (start, len(self._constants))) - 1
        if before < 0 or not _is_dense(array):
            return None
        first, position = self._starts[before]
        return (position, start - first) if start + array.nbytes <= first + self._constants[position].nbytes else None


def _is_dense(array: Array) -> bool:
    return array.flags.c_contiguous and not array.dtype.hasobject


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, constants: Sequence[Array], arrays: Constants | None) -> None:
        super().__init__(file)
        self._constants, self._arrays = constants, arrays
        self._by_number: dict[int, Array] = {}

    def persistent_load(self, pid: Any) -> Array:
        """Return a view of one of the model's arrays, a read-only one of the entry, or a copy."""
        number, *source = pid
        if number not in self._by_number:
            self._by_number[number] = self._array(*source)
        return self._by_number[number]

    def _array(
        self, position: int | None, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...], writeable: bool
    ) -> Array:
        size = math.prod(shape) * dtype.itemsize
        if position is not None:
            whole = self._constants[position]
            if offset == 0 and (whole.dtype, whole.shape) == (dtype, shape):
                return whole
            return whole.reshape(-1).view(np.uint8)[offset : offset + size].view(dtype).reshape(shape)
        if self._arrays is None or size <= _COPIED_BYTES:
            memory = aligned(size)[:size]
            if self._arrays is not None:
                memory[...] = self._arrays[offset : offset + size]
        else:
            memory, writeable = self._arrays[offset : offset + size].view(np.ndarray), False
        array = memory.view(dtype).reshape(shape)
        array.flags.writeable = writeable
        return array

    def find_class(self, module_name: str, global_name: str) -> Any:
        """Return a record's class. Raises UnpicklingError for anything else."""
        if global_name in _RECORDS.get(module_name, "").split():
            return super().find_class(module_name, global_name)
        raise pickle.UnpicklingError(f"{module_name}.{global_name} is no record of a plan")
