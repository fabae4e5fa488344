"""Tiles of products in a group's local memory, and launches of groups."""

from collections.abc import Mapping, Sequence
from math import prod

from litecl.delegate.cl_op import Arg, Launch, Local
from litecl.delegate.tuning import GroupTile, Products, Source, Tiled
from litecl.interpreter.dataclass import dataclass

STEP = 16
"""The depth that a group loads at once."""
LEAST_ITEMS, MOST_ITEMS = 32, 256
"""Work-items of a group, unless a device allows fewer."""


@dataclass(frozen=True)
class LocalTile:
    """A group's tile of ``rows`` x ``columns``; each work-item adds up ``own_rows`` x ``own_columns`` of it."""

    rows: int
    columns: int
    own_rows: int
    own_columns: int

    @property
    def sums(self) -> int:
        """Sums of a work-item."""
        return self.own_rows * self.own_columns

    @property
    def items(self) -> int:
        """Work-items of the group."""
        return self.rows * self.columns // self.sums

    @property
    def local(self) -> Local:
        """The local memory of the group: a step of both operands, with padded lines."""
        return Local(4 * STEP * (self.rows + 4 + self.columns + 4))

    @property
    def defines(self) -> dict[str, str | int | float]:
        """The macros of local_tile.h, except PARTS."""
        return {"BM": self.rows, "BN": self.columns, "TM": self.own_rows, "TN": self.own_columns}


@dataclass(frozen=True)
class LocalShare:
    """How a GPU computes products: the tile, and the parts that the depth is split into. source: see ``Tiled``."""

    products: Products
    tile: LocalTile
    parts: int
    source: Source = "measured"

    @property
    def tiled(self) -> Tiled:
        """The same as a ``Tiled``."""
        tile = self.tile
        return Tiled(
            self.products,
            GroupTile(tile.rows, tile.columns, tile.own_rows, tile.own_columns, self.parts),
            self.source,
        )

    @property
    def slices(self) -> int:
        """The number of products."""
        return self.products.slices

    @property
    def rows(self) -> int:
        """Rows of a product."""
        return self.products.rows

    @property
    def columns(self) -> int:
        """Columns of a product."""
        return self.products.columns

    @property
    def depth(self) -> int:
        """The depth of a product."""
        return self.products.depth

    @property
    def padded_columns(self) -> int:
        """Columns, rounded up to whole tiles."""
        return padded(self.columns, self.tile.columns)

    @property
    def padded_depth(self) -> int:
        """The depth, rounded up to whole steps."""
        return padded(self.depth, STEP)

    @property
    def part_depth(self) -> int:
        """The depth of a part, rounded up to whole steps."""
        return padded(-(-self.depth // self.parts), STEP)

    @property
    def defines(self) -> dict[str, str | int | float]:
        """The macros of local_tile.h."""
        return {**self.tile.defines, **({"PARTS": 1} if self.parts > 1 else {})}

    def launch(
        self, kernel: str, entry: str, args: Sequence[Arg], defines: Mapping[str, str | int | float], flops: int
    ) -> Launch:
        """Return the launch of one group per tile and part."""
        tile = self.tile
        across, down = self.padded_columns // tile.columns, -(-self.rows // tile.rows)
        size = (across * tile.items, down, self.slices * self.parts)
        macros = {**self.defines, **defines}
        return Launch(kernel, entry, tuple(args), size, (tile.items, 1, 1), macros, flops, tiled=self.tiled)

    @property
    def tiles(self) -> int:
        """Tiles of all slices."""
        return self.slices * tiles_in(self.tile, self.rows, self.columns)

    @property
    def parts_bytes(self) -> int:
        """Bytes of the sums of all parts of all tiles."""
        return 4 * self.parts * self.tiles * self.tile.rows * self.tile.columns


def groups(
    kernel: str,
    entry: str,
    count: int,
    items: int,
    args: Sequence[Arg],
    defines: Mapping[str, str | int | float],
    flops: int,
) -> Launch:
    """Return a launch of ``count`` groups of ``items`` work-items."""
    return Launch(kernel, entry, tuple(args), (count * items,), (items,), {**defines, "ITEMS": items}, flops)


def tiles_in(tile: LocalTile, rows: int, columns: int) -> int:
    """Return how many tiles a matrix has."""
    return prod((-(-rows // tile.rows), -(-columns // tile.columns)))


def padded(n: int, multiple: int) -> int:
    """Round ``n`` up to a multiple."""
    return -(-n // multiple) * multiple
