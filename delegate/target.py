"""What a lowering may ask of a device: a ``CpuTarget`` (delegate/cpu) or a ``GpuTarget`` (delegate/gpu).

They differ in how they distribute work. No lowering tests the kind of a target: its methods decide, and ``own`` picks
a kind's own way of doing something.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol, TypeVar, cast

from litecl.delegate.launch import Chunks, Grid, Tile
from litecl.delegate.tuning import Schedule, TileShape, Tuning

Macros = dict[str, str | int | float]
Own = Mapping[Callable[..., Any], Callable[..., Any]]
"""Shared functions, each with a kind of device's own, which takes its place."""
TilesByWidth = Mapping[int, Sequence[TileShape]]
"""Tiles of a work-item by vector width."""

PLAIN = Schedule()
"""The schedule of kernels without one of their own."""
ONE_ROW = (TileShape(1, 1, 1.0),)
"""The only tile of kernels that compute one row at a time."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Target(Protocol):
    """The device properties that a lowering may use; a frozen dataclass.

    vector_width: elements per load and store, the macro VW: floats in a register of a CPU, 4 on a GPU.
    compute_units: how many work-groups run at once. float64: whether kernels can compute in float64.
    max_work_group_size, local_mem_bytes: the largest work-group, and its local memory.
    tuning: the device's measured settings.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def vector_width(self) -> int: ...

    @property
    def compute_units(self) -> int: ...

    @property
    def float64(self) -> bool: ...

    @property
    def max_work_group_size(self) -> int: ...

    @property
    def local_mem_bytes(self) -> int: ...

    @property
    def tuning(self) -> Tuning: ...

    @property
    def own(self) -> Own:
        """What this kind of device does in its own way."""

    @property
    def lanes(self) -> int:
        """The floats that one work-item computes at once: a vector on a CPU; 1 on a GPU, whose lanes are work-items."""

    @property
    def memory(self) -> Literal["host", "integrated", "own"]:
        """The device's memory: a CPU's ("host"), a GPU's that is shared with the host, or a GPU's own."""

    @property
    def macros(self) -> Macros:
        """The macros for all kernels."""

    def schedule(self, kernel: str) -> Schedule:
        """Return the schedule of a kernel file: the tuned one, or else the default for this device."""

    def group_size(self, kernel: str) -> int:
        """Return the work-items of a kernel's group."""

    def grid(self, kernel: str, counts: tuple[int, ...], shares: tuple[int, ...], order: tuple[int, ...] = ()) -> Grid:
        """Return a launch (see ``Grid``) of independent work-items, in groups of the scheduled size."""

    def chunks(self, kernel: str, n: int, step: int, work: int) -> Chunks:
        """Distribute ``n`` items; a work-item handles ``step`` at once. work: the elements of an item."""

    def pixels(self, kernel: str, n: int, channels: int, work: int) -> Chunks:
        """Distribute ``n`` pixels. work: the operations of a pixel."""

    def pieces(self, kernel: str, lines: int) -> int:
        """Return how many pieces to split each of ``lines`` into, so that there are enough work-items."""

    @property
    def batches(self) -> Sequence[TileShape]:
        """The tiles of batch rows that a work-item may compute at once, sharing weights."""

    def tile_for(
        self, kernel: str, rows: int, columns: int, *, narrow: bool = False, among: TilesByWidth | None = None
    ) -> Tile:
        """Return the tile that computes a product of ``rows`` x ``columns`` with the least waste.

        narrow: allow vectors narrower than the device's, for few columns. among: the tiles to choose from; None means
        those of any product.
        """

    def tile_across(self, rows: int, columns: int, depth: int) -> Tile | None:
        """Return the tile for ``rows`` of bytes times ``columns`` whose vectors hold parts of a row, if summing across
        vectors costs less than padding the columns; else None.
        """

    @property
    def byte_pairs(self) -> bool:
        """Whether bytes are multiplied two at a time, as words or as signed bytes, not four at a time: then a single
        row is multiplied fastest as signed bytes, which excludes weights of -128, and 3x3 windows by Winograd's
        algorithm.
        """

    @property
    def line_tiles(self) -> Mapping[str, TilesByWidth]:
        """Tiles, by kernel, whose rows are adjacent pixels of an image line, which share reads; empty where that gains
        nothing.
        """

    def product(self, kernel: str, tile: Tile, size: tuple[int, int, int], products: int = 1) -> Grid:
        """Distribute ``products`` of ``size`` (rows, columns, depth) over the dimensions rows, columns and products."""

    def gathered(self, kernel: str, tile: Tile, size: tuple[int, int, int], products: int = 1) -> Grid:
        """Distribute the same to work-items that need memory for the rows that each gathers."""

    def special(self, **flags: bool) -> dict[str, int]:
        """Return macros that specialize a kernel for simpler launches; none where another build isn't worth it."""


def own(target: Target, shared: _Function) -> _Function:
    """Return a device's own function in place of a shared one, or the shared one where it has none."""
    return cast(_Function, target.own.get(shared, shared)) if isinstance(shared, Hashable) else shared
