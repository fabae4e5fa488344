"""The result of a lowering, as data: launches with their shapes and arguments, and copies that may become aliases.

``plan`` orders them, ``plan/memory`` assigns memory, and a back end binds them to a device.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

import numpy as np

from litecl.delegate.tuning import Tiled, TileShape
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, TensorSpec


@dataclass(frozen=True, eq=False)
class Operand:
    """A tensor in device memory, row-major as TFLite lays it out. Constants have ``spec.data``.

    row_step: elements from one row (the last dimension) to the next in a wider tensor; None if the operand is dense.
        Only operators with ``ClOp.reads_rows`` or ``ClOp.writes_rows`` get such operands.
    """

    spec: TensorSpec
    row_step: int | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, always static on the device."""
        return self.spec.static_shape

    @property
    def step(self) -> int:
        """The number of elements from one row to the next."""
        return self.shape[-1] if self.row_step is None else self.row_step

    @property
    def size_bytes(self) -> int:
        """The bytes from the first element to the end of the last."""
        skipped = 0 if self.row_step is None else (self.spec.size // self.shape[-1] - 1) * (self.step - self.shape[-1])
        return (self.spec.size + skipped) * self.spec.dtype.itemsize

    @property
    def data(self) -> Array | None:
        """The value of a constant."""
        return self.spec.data

    @property
    def value(self) -> Array:
        """The value of an operand that the claim guarantees is constant."""
        assert self.spec.data is not None, f"{self.spec.name!r} is not a constant"
        return self.spec.data


@dataclass(eq=False)
class Const:
    """An array that a program uploads once, when built, and then releases (None): packed weights, a table."""

    data: Array | None
    size_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        self.size_bytes = 0 if self.data is None else self.data.nbytes


@dataclass(frozen=True, eq=False)
class Scratch:
    """Device memory that lives from the first to the last launch that names it."""

    size_bytes: int


@dataclass(frozen=True, eq=False)
class Weights:
    """Constant weights of a product, which a plan may store as fp16. macro: tells the kernel that they are."""

    values: Const | Operand
    macro: str = "HALF_WEIGHTS"


@dataclass(frozen=True)
class Local:
    """Local memory of a GPU's work-group."""

    size_bytes: int


class Record:
    """Base of the frozen dataclasses that host and kernels share field by field (``delegate/kit/shared.py``)."""


Arg = Operand | Const | Weights | Scratch | Local | np.generic | Record | tuple[Record, ...]
"""An argument of a launch. A plan turns weights, records, and tuples of one kind of record, into constants."""


def is_users(kernel: str) -> bool:
    """Return whether a kernel file is a user's: its name is an absolute path."""
    return Path(kernel).is_absolute()


@dataclass(frozen=True, eq=False)
class Launch:
    """One kernel launch.

    kernel: the file, ``kernels_cl/<kernel>.cl``. entry: the ``__kernel`` function in it.
    args: in the order of the kernel's parameters; scalars are numpy scalars of the parameter's exact type
        (``np.int32(3)``, ``np.float32(0.5)``). global_size is a multiple of local_size in every dimension.
    defines: ``-D`` macros. Every distinct set is another program to build, so pass dimensions as arguments instead.
    flops: arithmetic operations, for the report. tiled: its tile, if it has one.
    apart: whether work-items are independent: they use ``ITEM_INDEX``, but neither barriers nor local memory.
    """

    kernel: str
    entry: str
    args: tuple[Arg, ...]
    global_size: tuple[int, ...]
    local_size: tuple[int, ...] = (1,)
    defines: Mapping[str, str | int | float] = field(default_factory=dict)
    flops: int = 0
    apart: bool = False
    tiled: Tiled | None = None

    @property
    def is_users(self) -> bool:
        """Return whether the kernel is a user's."""
        return is_users(self.kernel)

    @property
    def waits(self) -> bool:
        """True if work-items may wait for others of their group."""
        return not self.apart and math.prod(self.local_size) > 1

    @property
    def local_bytes(self) -> int:
        """The local memory that a group gets as arguments."""
        return sum(arg.size_bytes for arg in self.args if isinstance(arg, Local))


@dataclass(frozen=True, eq=False)
class Alias:
    """Places ``output`` in ``source``'s memory, ``offset`` bytes from its beginning: no launch, no copy. Kernels may
    write to a part, too.
    """

    output: Operand
    source: Operand
    offset: int = 0


@dataclass(frozen=True, eq=False)
class Move:
    """Copies the view ``at`` of ``source`` to the view ``to`` of ``into`` (kit/strided.py), without a launch if the
    elements are there already, or can be read in place.
    """

    source: Operand
    at: Array
    into: Operand
    to: Array


Step = Launch | Alias | Move


@dataclass(frozen=True)
class Grid:
    """A launch of a kernel file over ``counts`` items, of which each work-item owns ``shares``, by dimension.

    order: the dimensions in NDRange order; unchanged if empty.
    local: the local size; all ones if empty. apart: whether work-items are independent. tiled: the chosen tile, if any.
    """

    kernel: str
    counts: tuple[int, ...]
    shares: tuple[int, ...]
    order: tuple[int, ...] = ()
    local: tuple[int, ...] = ()
    apart: bool = True
    tiled: Tiled | None = None

    @property
    def needed(self) -> tuple[int, ...]:
        """The number of work-items needed, in the NDRange's dimensions."""
        return tuple(-(-self.counts[i] // self.shares[i]) for i in self.order or range(len(self.counts)))

    def launch(
        self, entry: str, args: Sequence[Arg], defines: Mapping[str, str | int | float], flops: int = 0
    ) -> Launch:
        """Return a launch of this shape, padded to whole groups."""
        needed = self.needed
        local = self.local or (1,) * len(needed)
        size = tuple(-(-n // own) * own for n, own in zip(needed, local, strict=True))
        return Launch(self.kernel, entry, tuple(args), size, local, defines, flops, apart=self.apart, tiled=self.tiled)


@dataclass(frozen=True)
class Chunks(Grid):
    """``n`` items in contiguous runs: work-item i owns [i * per_item, min((i + 1) * per_item, n))."""

    @property
    def n(self) -> int:
        """The number of items."""
        return self.counts[0]

    @property
    def args(self) -> tuple[np.int32, np.int32]:
        """The kernel arguments ``n, per_item``."""
        return np.int32(self.n), np.int32(self.shares[0])


@dataclass(frozen=True)
class Tile:
    """The accumulators of a work-item: ``rows`` x ``vectors`` vectors of ``width`` floats; weights are packed ``panel``
    wide.

    across: the lanes of a vector hold partial sums, not columns; of bytes (kernels_cl/patches.h).
    """

    rows: int
    vectors: int
    width: int
    panel: int
    across: bool = False

    @property
    def columns(self) -> int:
        """The number of columns."""
        return self.vectors * self.width

    @property
    def defines(self) -> dict[str, str | int | float]:
        """The macros of tile.h."""
        macros: dict[str, str | int | float] = {
            "MR": self.rows,
            "NV": self.vectors,
            "PANEL": self.panel,
            "WIDTH": self.width,
        }
        return macros | ({"ACROSS": 1} if self.across else {})


def least_waste(shapes: Sequence[tuple[int, TileShape]], rows: int, columns: int) -> tuple[int, TileShape]:
    """Return the vector width and tile that compute ``rows`` x ``columns`` at least cost: padded size over share."""

    def waste(shape: tuple[int, TileShape]) -> float:
        width, tile = shape
        padded = -(-rows // tile.rows) * tile.rows * -(-columns // (tile.vectors * width)) * tile.vectors * width
        return padded / tile.share

    return min(shapes, key=waste)
