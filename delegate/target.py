"""The facts of a device for lowerings: a ``CpuTarget`` (delegate/cpu) or a ``GpuTarget`` (delegate/gpu).

They differ in how they distribute work. No code asks for the kind of a target: it answers for itself, and
where there are two ways, an operator's lowerings for one, ``either`` picks the one for this kind of device.
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
"""Tiles of a work-item by the width of its vectors."""

PLAIN = Schedule()
"""The schedule of kernels that have no other."""
_ONE_ROW = (TileShape(1, 1, 1.0),)


@dataclass(frozen=True, eq=False)
class Matrices:
    """``count`` matrices of ``rows`` x ``columns`` elements of ``size_bytes``, of the type ``bits``, to be transposed.

    memory: source, destination and the table of the dimensions around them; sizes: what follows (transpose.cl).
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
    """The properties of a device that a lowering may know.

    vector_width: elements that kernels load and store at once, VW: floats in a register of a CPU, 4 on a GPU.
    compute_units: how many work-groups run at once. float64: whether kernels can compute in float64.
    max_work_group_size, local_mem_bytes: the most work-items of a group, and the memory that they share.
    half_weights: whether weights of products are fp16, and what a GPU's unit multiplies; all else is in float32.
    tuning: what was measured on the device.
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
        """Return that of two ways which is for this kind of device."""

    @property
    @abstractmethod
    def lanes(self) -> int:
        """Floats that one work-item computes at once: a vector of a CPU; one on a GPU, whose lanes are work-items."""

    @property
    @abstractmethod
    def memory(self) -> Literal["host", "integrated", "own"]:
        """Where a device's memory is: it is the host's, or the host's as a GPU uses it, or the GPU's own."""

    @property
    @abstractmethod
    def macros(self) -> Macros:
        """The macros that all kernels are compiled with."""

    @property
    def in_halves(self) -> str:
        """The arithmetic in halves, in a line; "" without any."""
        return "fp16: large weights are halves, arithmetic is in float32" if self.half_weights else ""

    @abstractmethod
    def schedule(self, kernel: str) -> Schedule:
        """Return the schedule of a kernel file: the one that was tuned, or else the default for this device."""

    @property
    def apart(self) -> "Target":
        """The same device for launches whose work-items need nothing of each other."""
        return self

    @abstractmethod
    def group_size(self, kernel: str) -> int:
        """Return the work-items of a group."""

    @abstractmethod
    def grid(self, kernel: str, counts: tuple[int, ...], shares: tuple[int, ...], order: tuple[int, ...] = ()) -> Grid:
        """Return a launch (see ``Grid``) whose work-items need nothing of each other, in groups of the schedule's."""

    @abstractmethod
    def chunks(self, kernel: str, n: int, step: int, work: int) -> Chunks:
        """Distribute ``n`` items, of which a work-item handles ``step`` at once. work: the elements in an item."""

    @abstractmethod
    def pixels(self, kernel: str, n: int, channels: int, work: int) -> Chunks:
        """Distribute ``n`` pixels. work: operations on a pixel."""

    @abstractmethod
    def pieces(self, kernel: str, lines: int) -> int:
        """Return into how many pieces each of ``lines`` may be split, so that there are enough work-items."""

    @property
    def batches(self) -> Sequence[TileShape]:
        """The rows of a batch that a work-item may compute at once, where they share weights."""
        return _ONE_ROW

    @abstractmethod
    def tile_for(
        self, kernel: str, rows: int, columns: int, *, narrow: bool = False, among: TilesByWidth | None = None
    ) -> Tile:
        """Return the tile with which a kernel computes a product of ``rows`` x ``columns`` with the least waste.

        narrow: its vectors may be narrower than the device's, if there are few columns. among: tiles to choose from, in
        place of those of any product.
        """

    def tile_across(self, columns: int, depth: int) -> Tile | None:
        """Return the tile for one row of bytes times few ``columns``, if sums across vectors cost less than columns
        that are computed in vain.
        """
        return None

    @property
    def line_tiles(self) -> Mapping[str, TilesByWidth]:
        """Tiles by kernel whose rows are pixels in one line of an image, which share what they read; none where that is
        no gain.
        """
        return {}

    @abstractmethod
    def product(self, kernel: str, tile: Tile, size: tuple[int, int, int], products: int = 1) -> Grid:
        """Distribute so many products of ``size`` (rows, columns, depth), in dimensions of rows, columns and
        products."""

    def gathered(self, kernel: str, tile: Tile, size: tuple[int, int, int], products: int = 1) -> Grid:
        """Distribute the same to work-items each of which has memory for the rows that it gathers."""
        return self.product(kernel, tile, size, products)

    @abstractmethod
    def special(self, **flags: bool) -> dict[str, int]:
        """Return the macros of kernels for launches that need less than others, where such kernels are worth it."""

    def transposed(self, matrices: Matrices) -> Launch | None:
        """Return the launch that transposes matrices by way of a group's memory; None where there is no such way."""
        return None
