"""Deals out the work of GPUs whose groups share local memory: the GPU's half of the schedule."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from litecl.delegate.cl_op import Arg, Launch, Local, Target
from litecl.delegate.gpu import HalfUnit, MatrixUnit
from litecl.delegate.kit.schedule import schedule_of

_STEP = 16  # of the depth, that a group loads at once
_APART = 8  # halves between lines in local memory
_LEAST_STEPS, _FEWEST_STEPS = 4, 2  # of a group that shares the depth with others; where units would be idle
_MUCH = 1e6  # operations, that take longer than adding up parts
_MOST_PARTS = 16
_LONG = 32  # steps that take as long as some launches
GROUPS_PER_UNIT = 2
WITHOUT_PARTS = ("arm", "qualcomm")  # vendors of GPUs on which it is not known how groups learn of each other
_LEAST_ITEMS, _MOST_ITEMS = 32, 256
_LANES, _DEPTHS = (4, 8, 16, 32, 64), (4, 8, 16)  # of an LSTM's unit, and of each of its work-items


@dataclass(frozen=True)
class LocalTile:
    """A tile of a group: ``rows`` x ``columns``, of which a work-item adds up ``own_rows`` x ``own_columns``.

    unit: what multiplies halves; a matrix unit deals sums out to work-items in another way, as many to each.
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


TILES = (LocalTile(64, 64, 8, 8), LocalTile(64, 64, 8, 4), LocalTile(32, 32, 4, 4))  # the largest first
_HALF_TILES = (*TILES[:2], LocalTile(64, 64, 4, 4), TILES[2])
_MATRIX_TILES = (LocalTile(128, 128, 8, 8), LocalTile(64, 64, 8, 4), LocalTile(32, 32, 4, 4))
_SMALL = LocalTile(16, 32, 4, 4)  # where half of the units would be idle otherwise


@dataclass(frozen=True)
class LocalShare:
    """How a GPU computes products: in which tiles, and into how many parts of the depth each is cut."""

    tile: LocalTile
    slices: int
    rows: int
    columns: int
    depth: int
    parts: int

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
        macros, by = {**self.defines, **defines}, "" if tile.unit is None else tile.unit.kind
        return Launch(kernel, entry, tuple(args), size, (tile.items, 1, 1), macros, flops, unit=by)

    @property
    def tiles(self) -> int:
        """Tiles of all slices."""
        return self.slices * tiles_in(self.tile, self.rows, self.columns)

    @property
    def parts_bytes(self) -> int:
        """What the sums of all parts of all tiles take."""
        return 4 * self.parts * self.tiles * self.tile.rows * self.tile.columns


def local_share(
    target: Target, slices: int, rows: int, columns: int, depth: int, unit: MatrixUnit | HalfUnit | None = None
) -> LocalShare | None:
    """Return how a GPU computes ``slices`` products of ``rows`` x ``depth`` and ``depth`` x ``columns``.

    The largest tile that keeps every unit busy, or the smallest one. None where the device has not enough local memory,
    or groups are too small. unit: what multiplies halves, if there is room for what it needs.
    """
    by_unit = _HALF_TILES if isinstance(unit, HalfUnit) else _MATRIX_TILES
    by_units = () if unit is None else tuple(replace(tile, unit=unit) for tile in by_unit)
    tiles = tiles_with_room(target, by_units) or tiles_with_room(target, TILES)
    if not tiles:
        return None
    wanted = _enough(target)
    tile = next((tile for tile in tiles if slices * tiles_in(tile, rows, columns) >= wanted), tiles[-1])
    share = _shared(target, tile, slices, rows, columns, depth)
    small, is_idle = replace(_SMALL, unit=tile.unit), 2 * share.tiles * share.parts < target.compute_units
    if is_idle and not (tile.unit and tile.unit.lanes) and tiles_with_room(target, [small]):
        return _shared(target, small, slices, rows, columns, depth)
    return share


def _shared(target: Target, tile: LocalTile, slices: int, rows: int, columns: int, depth: int) -> LocalShare:
    parts = _parts(target, tile, slices * tiles_in(tile, rows, columns), depth)
    return LocalShare(tile, slices, rows, columns, depth, parts)


def _enough(target: Target) -> int:
    """Return how many groups keep a GPU busy."""
    return target.compute_units * schedule_of("product_local", target).items_per_unit


def _parts(target: Target, tile: LocalTile, groups: int, depth: int) -> int:
    """Return among how many groups each depth is shared out.

    One where half the units are busy and the depth is short. Where half of them would be idle for long, parts are
    shorter than they are otherwise.
    """
    if target.gpu is not None and target.gpu.vendor in WITHOUT_PARTS:
        return 1
    steps = -(-depth // tile.step)
    if 2 * groups >= target.compute_units and (steps < _LONG or groups >= target.compute_units):
        return 1
    wanted = -(-_enough(target) // groups)
    parts = max(1, min(wanted, steps // _LEAST_STEPS, _MOST_PARTS))
    if 2 * groups * tile.rows * tile.columns * depth > _MUCH:
        parts = max(parts, min(-(-target.compute_units // (2 * groups)), steps // _FEWEST_STEPS, _MOST_PARTS))
    return -(-steps // -(-steps // parts))  # none of them empty


def tiles_with_room(target: Target, tiles: Sequence[LocalTile]) -> Sequence[LocalTile]:
    """Return those for which a device has registers, work-items and local memory."""
    fit = (tile for tile in tiles if tile.sums <= min(most_sums(target), tile.most_sums))
    return [tile for tile in fit if has_room(target, tile.items, tile.local)]


def most_sums(target: Target) -> int:
    """Return how many sums a work-item of a GPU keeps in registers, beside what it adds to them."""
    return 32 if target.gpu is not None and target.gpu.few_registers else 64


def has_room(target: Target, items: int, local: Local) -> bool:
    """Return whether a group of so many work-items, with so much local memory, runs on a device."""
    return target.kind == "gpu" and items <= target.max_work_group_size and local.size_bytes <= target.local_mem_bytes


def items_for(target: Target, length: int, each: int = 1) -> int:
    """Return the work-items of a group that shares ``length`` elements, ``each`` at a time: a power of two."""
    most = min(_MOST_ITEMS, 1 << (max(1, target.max_work_group_size).bit_length() - 1))
    wanted = 1 << max(0, (-(-length // each) - 1).bit_length())
    return max(min(_LEAST_ITEMS, most), min(most, wanted))


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


@dataclass(frozen=True)
class CellShare:
    """How groups share an LSTM's units: ``lanes`` work-items for each unit, ``depth`` outputs for each of these.

    at_once: whether all groups are sure to run at the same time, so that they may wait for each other.
    """

    lanes: int
    depth: int
    items: int
    groups: int
    batch: int
    at_once: bool

    @property
    def units(self) -> int:
        """Units of a group."""
        return self.items // self.lanes

    @property
    def local(self) -> Local:
        """Local memory of a group: sums of four gates, and the outputs of all units."""
        return Local(16 * self.items + 4 * self.lanes * self.depth)

    @property
    def defines(self) -> dict[str, str | int | float]:
        """The macros of lstm_local.cl."""
        return {"UNITS": self.units, "ITEMS_PER_UNIT": self.lanes, "DEPTH": self.depth}

    def launch(self, args: Sequence[Arg], defines: Mapping[str, str | int | float], flops: int) -> Launch:
        """Return a launch of these groups for every batch entry."""
        size, group = (self.groups * self.items, self.batch), (self.items, 1)
        return Launch("lstm_local", "lstm_local", tuple(args), size, group, {**self.defines, **defines}, flops)


def cell_share(target: Target, units: int, batch: int) -> CellShare | None:
    """Return how a GPU computes an LSTM with its weights in registers; None where these do not suffice."""
    lanes = next((n for n in _LANES if n * _DEPTHS[-1] >= units), None)
    if lanes is None:
        return None
    depth = next(n for n in _DEPTHS if n * lanes >= units)
    items = min(_MOST_ITEMS, lanes << (units - 1).bit_length())
    groups = -(-units // (items // lanes))
    share = CellShare(lanes, depth, items, groups, batch, groups * batch <= _surely_at_once(target))
    return share if has_room(target, items, share.local) else None


def _surely_at_once(target: Target) -> int:
    """Return how many groups of a kernel are sure to run at the same time.

    Half of those that have a unit of their own, so that two models side by side do not wait for each other for ever.
    What is known of GPUs' schedulers is not known of runtimes that compute on a CPU.
    """
    known = target.gpu is not None and target.gpu.vendor in ("nvidia", "amd", "intel")
    return target.compute_units // 2 if known else 0


def tiles_in(tile: LocalTile, rows: int, columns: int) -> int:
    """Return how many tiles a matrix has."""
    return prod((-(-rows // tile.rows), -(-columns // tile.columns)))


def padded(n: int, multiple: int) -> int:
    """Return the least multiple that is not less than ``n``."""
    return -(-n // multiple) * multiple
