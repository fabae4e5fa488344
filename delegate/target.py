"""The properties of a device that a lowering may use: a ``CpuTarget`` (delegate/cpu) or a ``GpuTarget`` (delegate/gpu).

They differ in how they distribute work. No code tests the kind of a target: its methods decide, and ``either`` picks
between two alternatives, such as an operator's lowerings.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Literal, TypeVar

import numpy as np

from litecl.delegate.launch import Arg, Chunks, Grid, Launch, Tile
from litecl.delegate.tuning import Schedule, TileShape, Tuning
from litecl.interpreter.dataclass import dataclass

_Way = TypeVar("_Way")
Macros = dict[str, str | int | float]
TilesByWidth = Mapping[int, Sequence[TileShape]]
"""Tiles of a work-item by vector width."""

PLAIN = Schedule()
"""The schedule of kernels without one of their own."""
_ONE_ROW = (TileShape(1, 1, 1.0),)


@dataclass(frozen=True, eq=False)
class Matrices:
    """``count`` matrices to transpose, of ``rows`` x ``columns`` elements of ``size_bytes``, of OpenCL type ``bits``.

    memory: source, destination and the table of the dimensions around them; sizes: the next arguments (transpose.cl).
    """

    count: int
    rows: int
    columns: int
    size_bytes: int
    bits: str
    memory: tuple[Arg, ...]
    sizes: tuple[np.int32, ...]


@dataclass(frozen=True)
class Target(ABC):
    """The device properties that a lowering may use.

    vector_width: elements per load and store, the macro VW: floats in a register of a CPU, 4 on a GPU.
    compute_units: how many work-groups run at once. float64: whether kernels can compute in float64.
    max_work_group_size, local_mem_bytes: the largest work-group, and its local memory.
    half_weights: whether weights of products are fp16; all else is float32.
    tuning: the device's measured settings.
    """

    vector_width: int
    compute_units: int
    float64: bool = True
    max_work_group_size: int = 1
    local_mem_bytes: int = 0
    half_weights: bool = False
    tuning: Tuning = field(default_factory=Tuning)

    @abstractmethod
    def either(self, cpu: _Way, gpu: _Way) -> _Way:
        """Return the alternative for this kind of device."""

    @property
    @abstractmethod
    def lanes(self) -> int:
        """The floats that one work-item computes at once: a vector on a CPU; 1 on a GPU, whose lanes are work-items."""

    @property
    @abstractmethod
    def memory(self) -> Literal["host", "integrated", "own"]:
        """The device's memory: a CPU's ("host"), a GPU's that is shared with the host, or a GPU's own."""

    @property
    @abstractmethod
    def macros(self) -> Macros:
        """The macros for all kernels."""

    @property
    def in_halves(self) -> str:
        """Describe the use of half precision in one line; "" without any."""
        return "fp16: large weights are halves, arithmetic is in float32" if self.half_weights else ""

    @abstractmethod
    def schedule(self, kernel: str) -> Schedule:
        """Return the schedule of a kernel file: the tuned one, or else the default for this device."""

    @property
    def apart(self) -> "Target":
        """The same device for launches with independent work-items, which use no local memory."""
        return self

    @abstractmethod
    def group_size(self, kernel: str) -> int:
        """Return the work-items of a kernel's group."""

    @abstractmethod
    def grid(self, kernel: str, counts: tuple[int, ...], shares: tuple[int, ...], order: tuple[int, ...] = ()) -> Grid:
        """Return a launch (see ``Grid``) of independent work-items, in groups of the scheduled size."""

    @abstractmethod
    def chunks(self, kernel: str, n: int, step: int, work: int) -> Chunks:
        """Distribute ``n`` items; a work-item handles ``step`` at once. work: the elements of an item."""

    @abstractmethod
    def pixels(self, kernel: str, n: int, channels: int, work: int) -> Chunks:
        """Distribute ``n`` pixels. work: the operations of a pixel."""

    @abstractmethod
    def pieces(self, kernel: str, lines: int) -> int:
        """Return how many pieces to split each of ``lines`` into, so that there are enough work-items."""

    @property
    def batches(self) -> Sequence[TileShape]:
        """The tiles of batch rows that a work-item may compute at once, sharing weights."""
        return _ONE_ROW

    @abstractmethod
    def tile_for(
        self, kernel: str, rows: int, columns: int, *, narrow: bool = False, among: TilesByWidth | None = None
    ) -> Tile:
        """Return the tile that computes a product of ``rows`` x ``columns`` with the least waste.

        narrow: allow vectors narrower than the device's, for few columns. among: the tiles to choose from; None means
        those of any product.
        """

    def tile_across(self, columns: int, depth: int) -> Tile | None:
        """Return the tile for one row of bytes times few ``columns``, if summing across vectors costs less than padding
        the columns; else None.
        """
        return None

    @property
    def line_tiles(self) -> Mapping[str, TilesByWidth]:
        """Tiles, by kernel, whose rows are adjacent pixels of an image line, which share reads; empty where that gains
        nothing.
        """
        return {}

    @abstractmethod
    def product(self, kernel: str, tile: Tile, size: tuple[int, int, int], products: int = 1) -> Grid:
        """Distribute ``products`` of ``size`` (rows, columns, depth) over the dimensions rows, columns and products."""

    def gathered(self, kernel: str, tile: Tile, size: tuple[int, int, int], products: int = 1) -> Grid:
        """Distribute the same to work-items that need memory for the rows that each gathers."""
        return self.product(kernel, tile, size, products)

    @abstractmethod
    def special(self, **flags: bool) -> dict[str, int]:
        """Return macros that specialize a kernel for simpler launches; none where another build isn't worth it."""

    def transposed(self, matrices: Matrices) -> Launch | None:
        """Return the launch that transposes matrices through local memory; None if the device can't."""
        return None
