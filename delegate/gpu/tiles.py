"""The choice of tiles in which a GPU computes products: as measured, else by an estimate."""

import itertools
from collections.abc import Iterator, Mapping, Sequence

from litecl.delegate.gpu import schedules
from litecl.delegate.gpu.groups import STEP, LocalShare, LocalTile, tiles_in
from litecl.delegate.gpu.properties import Vendor
from litecl.delegate.gpu.target import GpuCall, GpuTarget
from litecl.delegate.tuning import Products, Source

_LEAST_STEPS, _FEWEST_STEPS = 4, 2  # of a group that shares the depth; of one where units would be idle
_MUCH = 1e6  # operations that take longer than adding up parts
_MOST_PARTS = 16
_PARTS = (1, 2, 4, 8, 16)  # worth measuring
_LONG = 32  # steps that take as long as several launches
GROUPS_PER_UNIT = 2
WITHOUT_PARTS = ("arm", "qualcomm")  # vendors on whose GPUs no way is known for groups to see each other's results

TILES = (LocalTile(64, 64, 8, 8), LocalTile(64, 64, 8, 4), LocalTile(32, 32, 4, 4))  # the largest first
_SMALL = LocalTile(16, 32, 4, 4)  # where half of the units would be idle otherwise
_FAMILIES: Mapping[tuple[Vendor, int], Sequence[LocalTile]] = {
    ("nvidia", 32): (LocalTile(128, 64, 8, 8), *TILES[:2], LocalTile(32, 64, 4, 4), TILES[-1]),
    ("qualcomm", 64): (LocalTile(64, 128, 8, 8), *TILES),
}
"""Other tiles of GPU families, by vendor and work-items in lockstep: those that CLBlast's tuner found fastest for
large products on an RTX 4090, an A100 and an Adreno 740, and those of all GPUs.
"""
_MEASURED = (
    LocalTile(128, 128, 8, 8),
    LocalTile(64, 64, 4, 4),
    LocalTile(64, 32, 4, 4),
    LocalTile(16, 64, 4, 4),
    _SMALL,
)
"""More tiles, which only a measurement chooses."""


def arithmetic(call: GpuCall) -> str:
    """Return the arithmetic of a product of floats; see ``Products``."""
    return "fp16" if call.halves else "fp32"


def local_share(
    target: GpuTarget,
    slices: int,
    rows: int,
    columns: int,
    depth: int,
    *,
    reads: str = "rows",
    arithmetic: str = "fp32",
) -> LocalShare | None:
    """Return how a GPU computes ``slices`` products of ``rows`` x ``depth`` and ``depth`` x ``columns``.

    As measured (``Tuning.tiles``), else by an estimate. None if the device has too little local memory, or its groups
    are too small. reads, arithmetic: see ``Products``.
    """
    if not _usual_tiles(target):
        return None
    products = Products(slices, rows, columns, depth, reads, arithmetic)
    kept = target.tuning.tiles.get(str(products))
    measured = (share for share in possible_shares(target, products) if share.tiled.tile == kept)
    return (next(measured, None) if kept else None) or estimated_share(target, products)


def possible_shares(target: GpuTarget, products: Products) -> Iterator[LocalShare]:
    """Yield every tile and split with which a device can compute products; stored choices must be among them."""
    every = (*_usual_tiles(target), *itertools.chain(*_FAMILIES.values()), *_MEASURED)
    for tile in tiles_with_room(target, [*dict.fromkeys(every)]):
        steps, groups = -(-products.depth // STEP), _groups(products, tile)
        most = min(_MOST_PARTS, steps // _FEWEST_STEPS) if _shares_depth(target) else 1
        estimated = {_parts(target, tile, groups, products.depth, fewest) for fewest in (1, _FEWEST_STEPS)}
        parts = {_even(steps, n) for n in _PARTS if n <= most} | estimated
        yield from (LocalShare(products, tile, n) for n in sorted(parts))


def estimated_share(target: GpuTarget, products: Products) -> LocalShare:
    """Return how a GPU that has room for tiles computes unmeasured products: with the largest tile of its family (else
    of all GPUs) that keeps every unit busy, or else the smallest.
    """
    tiles, wanted = _usual_tiles(target), _enough(target)
    busy = (tile for tile in tiles if _groups(products, tile) >= wanted and _is_filled(products, tile))
    share = _shared(target, products, next(busy, tiles[-1]))
    small = tiles_with_room(target, [_SMALL])
    if _leaves_idle(target, share) and small:
        share = _shared(target, products, small[0])
    return _shared(target, products, share.tile, fewest=1) if _leaves_idle(target, share) else share


def _groups(products: Products, tile: LocalTile) -> int:
    return products.slices * tiles_in(tile, products.rows, products.columns)


def _is_filled(products: Products, tile: LocalTile) -> bool:
    """Return whether more than half of the computed elements are needed."""
    computed = tiles_in(tile, products.rows, products.columns) * tile.rows * tile.columns
    return 2 * products.rows * products.columns > computed


def _usual_tiles(target: GpuTarget) -> Sequence[LocalTile]:
    """Return the tiles to estimate with, the largest first: the family's, if it has any."""
    return tiles_with_room(target, _FAMILIES.get(_family(target), TILES))


def _shared(target: GpuTarget, products: Products, tile: LocalTile, fewest: int = _FEWEST_STEPS) -> LocalShare:
    source: Source = "family" if _is_known(target) else "estimate"
    return LocalShare(products, tile, _parts(target, tile, _groups(products, tile), products.depth, fewest), source)


def _leaves_idle(target: GpuTarget, share: LocalShare) -> bool:
    """Return whether more than half of a GPU's units would be idle."""
    return 2 * share.tiles * share.parts < target.compute_units


def _family(target: GpuTarget) -> tuple[Vendor, int]:
    return target.gpu.vendor, target.gpu.subgroup


def _is_known(target: GpuTarget) -> bool:
    """Return whether the GPU's family determines the choice: by its tiles, or by how many groups it needs."""
    return _family(target) in _FAMILIES or "product_local" in schedules.FAMILIES.get(_family(target), {})


def _enough(target: GpuTarget) -> int:
    """Return how many groups keep a GPU busy."""
    return target.compute_units * target.schedule("product_local").items_per_unit


def _parts(target: GpuTarget, tile: LocalTile, groups: int, depth: int, fewest: int = _FEWEST_STEPS) -> int:
    """Return how many groups share each depth.

    One if half the units are busy and the depth is short. If half of them would be idle for long, parts may be shorter
    than usual: ``fewest`` steps.
    """
    if not _shares_depth(target):
        return 1
    steps = -(-depth // STEP)
    if 2 * groups >= target.compute_units and (steps < _LONG or groups >= target.compute_units):
        return 1
    wanted = -(-_enough(target) // groups)
    parts = max(1, min(wanted, steps // _LEAST_STEPS, _MOST_PARTS))
    if 2 * groups * tile.rows * tile.columns * depth > _MUCH:
        most = min(steps // fewest, _MOST_PARTS)
        enough = (n for n in range(parts, most + 1) if 2 * groups * _even(steps, n) >= target.compute_units)
        parts = next(enough, max(parts, most))
    return _even(steps, parts)


def _even(steps: int, parts: int) -> int:
    """Return the number of parts, at most ``parts``, that steps are split into with none empty."""
    return -(-steps // -(-steps // parts))


def _shares_depth(target: GpuTarget) -> bool:
    return target.gpu.vendor not in WITHOUT_PARTS


def tiles_with_room(target: GpuTarget, tiles: Sequence[LocalTile]) -> Sequence[LocalTile]:
    """Return the tiles for which a device has registers, work-items and local memory."""
    fit = (tile for tile in tiles if tile.sums <= most_sums(target))
    return [tile for tile in fit if target.has_room(tile.items, tile.local)]


def most_sums(target: GpuTarget) -> int:
    """Return how many sums a work-item of a GPU keeps in registers, beside its operands."""
    return 32 if target.gpu.few_registers else 64
