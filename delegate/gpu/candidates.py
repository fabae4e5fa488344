"""The few tiles worth measuring for a GPU's products, by an estimate of their time."""

from collections.abc import Sequence
from functools import partial

from litecl.delegate.gpu.groups import LocalShare
from litecl.delegate.gpu.pixel_groups import READS, pixel_candidates
from litecl.delegate.gpu.target import GpuTarget
from litecl.delegate.gpu.tiles import estimated_share, possible_shares
from litecl.delegate.tuning import GroupTile, Products

_MOST = 6
_FULL = 256  # work-items of a compute unit that hide each other's latency
_BEGIN = 32  # elements of the depth that take as long as a group's beginning and end
_LOAD = 2.0  # multiply-adds that take as long as loading an element from local memory


def candidates(target: GpuTarget, products: Products) -> Sequence[GroupTile]:
    """Return the tiles to measure: first the estimate's, then those expected to be fastest."""
    if products.reads == READS:
        return pixel_candidates(target, products)
    usual = estimated_share(target, products)
    others = sorted(possible_shares(target, products), key=partial(_expected, target))
    return list(dict.fromkeys(share.tiled.tile for share in (usual, *others)))[:_MOST]


def _expected(target: GpuTarget, share: LocalShare) -> float:
    """Return the busiest compute unit's time, in multiply-adds of a work-item: good enough to rank tiles."""
    tile, own = share.tile, share.tile.sums
    loads = _LOAD * own * (1 / tile.own_rows + 1 / tile.own_columns)
    item = (own + loads) * (share.part_depth + _BEGIN) + (own * share.parts if share.parts > 1 else 0)
    groups = -(-share.tiles * share.parts // target.compute_units)
    return item * max(1.0, groups * tile.items / _FULL)
