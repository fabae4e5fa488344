"""Tiles of products in a group's local memory, and launches of groups."""

from collections.abc import Mapping, Sequence
from math import prod

from litecl.delegate.cl_op import Arg, Launch, Local
from litecl.delegate.gpu.properties import HalfUnit, MatrixUnit
from litecl.delegate.tuning import GroupTile, Products, Source, Tiled
from litecl.interpreter.dataclass import dataclass

_STEP = 16  # of the depth, that a group loads at once
_APART = 8  # halves between lines in local memory
LEAST_ITEMS, MOST_ITEMS = 32, 256
"""Work-items of a group, unless a device allows fewer."""


@dataclass(frozen=True)
class LocalTile:
    """A tile of a group: ``rows`` x ``columns``, of which a work-item adds up ``own_rows`` x ``own_columns``.

    unit: what multiplies halves; a matrix unit distributes sums to work-items differently, equally many to each.
    """

    rows: int
    columns: int
    own_rows: int
    own_columns: int
    unit: MatrixUnit | HalfUnit | None = None

    @property
    def sums(self) -> int:
        """Sums of a work-item."""
        return self.own_rows * self.own_columns

    @property
    def most_sums(self) -> int:
        """The most of them for which what multiplies has registers."""
        return self.unit.sums if isinstance(self.unit, HalfUnit) else self.sums

    @property
    def items(self) -> int:
        """Work-items of the group."""
        return self.rows * self.columns // self.sums

    @property
    def step(self) -> int:
        """The depth that the group loads at once; of halves no less than a load for each work-item."""
        if isinstance(self.unit, MatrixUnit):
            return self.unit.step
        return _STEP if self.unit is None else max(_STEP, 8 * self.items // min(self.rows, self.columns))

    @property
    def across(self) -> int:
        """Subgroups side by side: as many as make the part of each as square as may be."""
        assert isinstance(self.unit, MatrixUnit)
        unit, count = self.unit, self.items // self.unit.lanes
        shapes = ((count // n, n) for n in range(1, count + 1) if count % n == 0)
        parts = {n: (self.rows // down, self.columns // n) for down, n in shapes}
        whole = [n for n, (h, w) in parts.items() if h and w and h % unit.rows == 0 and w % unit.columns == 0]
        return min(whole, key=lambda n: (sum(parts[n]), -n))

    @property
    def local(self) -> Local:
        """The local memory of the group: a step of both operands, each line a little apart; of matrix units at another
        time sums of a line of their products.
        """
        unit = self.unit
        if not isinstance(unit, MatrixUnit):
            of_all, flag = (4, 0) if unit is None else (2, 16)
            return Local(of_all * self.step * (self.rows + 4 + self.columns + 4) + flag)
        subgroups = self.items // unit.lanes
        held = 2 * subgroups * (unit.rows + unit.columns) * 16 if unit.emulated else 0
        lines = 2 * (self.rows + self.columns) * (unit.step + _APART)
        return Local(max(lines + held, 4 * subgroups // self.across * unit.rows * self.columns))

    @property
    def defines(self) -> dict[str, str | int | float]:
        """The macros of local_tile.h, but for PARTS."""
        sizes = {"BM": self.rows, "BN": self.columns, "TM": self.own_rows, "TN": self.own_columns}
        if self.unit is None:
            return {**sizes}
        own = {"SUBGROUPS": self.across} if isinstance(self.unit, MatrixUnit) else {"BK": self.step // 2}
        return {**sizes, **self.unit.defines, **own}


@dataclass(frozen=True)
class LocalShare:
    """How a GPU computes products: in which tiles, and into how many parts of the depth each is cut. source: as in
    ``Tiled``.
    """

    products: Products
    tile: LocalTile
    parts: int
    source: Source = "measured"

    @property
    def tiled(self) -> Tiled:
        """The same as a record."""
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
        """Columns in whole tiles."""
        return padded(self.columns, self.tile.columns)

    @property
    def padded_depth(self) -> int:
        """The depth in whole steps."""
        return padded(self.depth, self.tile.step)

    @property
    def part_depth(self) -> int:
        """The depth of a part, in whole steps."""
        return padded(-(-self.depth // self.parts), self.tile.step)

    @property
    def defines(self) -> dict[str, str | int | float]:
        """The macros of local_tile.h."""
        return {**self.tile.defines, **({"PARTS": 1} if self.parts > 1 else {})}

    def launch(
        self, kernel: str, entry: str, args: Sequence[Arg], defines: Mapping[str, str | int | float], flops: int
    ) -> Launch:
        """Return the launch of a group for every tile and part."""
        tile = self.tile
        across, down = self.padded_columns // tile.columns, -(-self.rows // tile.rows)
        size = (across * tile.items, down, self.slices * self.parts)
        macros, unit = {**self.defines, **defines}, "" if tile.unit is None else tile.unit.kind
        return Launch(kernel, entry, tuple(args), size, (tile.items, 1, 1), macros, flops, unit=unit, tiled=self.tiled)

    @property
    def tiles(self) -> int:
        """Tiles of all slices."""
        return self.slices * tiles_in(self.tile, self.rows, self.columns)

    @property
    def parts_bytes(self) -> int:
        """The memory of the sums of all parts of all tiles."""
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
    """Return the least multiple that is not less than ``n``."""
    return -(-n // multiple) * multiple
