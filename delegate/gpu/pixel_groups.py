"""The choice of how a GPU's groups share a depthwise convolution: as measured for its sizes, else by the schedule."""

from collections.abc import Iterator, Sequence
from itertools import product

from litecl.delegate.gpu.target import GpuTarget
from litecl.delegate.kit.schedule import rows_of, width_of
from litecl.delegate.tuning import GroupTile, Products, Source, Tiled
from litecl.interpreter.dataclass import dataclass

READS = "depthwise windows"
_KERNEL = "depthwise_conv_2d"
_PIXELS = (1, 4)  # of a line, per work-item
_GROUPS = (32, 64, 128, 256)
_MOST = 6  # candidates


@dataclass(frozen=True)
class PixelShare:
    """How a GPU computes a depthwise convolution: a work-item takes ``width`` channels of ``pixels`` of a line, a group
    ``wide`` work-items side by side in each of ``high`` lines. source: see ``Tiled``.
    """

    products: Products
    width: int
    pixels: int
    wide: int
    high: int
    source: Source = "measured"

    @property
    def local(self) -> tuple[int, int, int]:
        """The work-items of a group, in dimensions of channels, lines and pixels."""
        return self.wide, self.high, 1

    @property
    def tiled(self) -> Tiled:
        """The same as a ``Tiled``: the pixels and channels of a group, and of a work-item."""
        tile = GroupTile(self.high * self.pixels, self.wide * self.width, self.pixels, self.width)
        return Tiled(self.products, tile, self.source)


def pixel_share(target: GpuTarget, lines: int, pixels: int, channels: int, taps: int) -> PixelShare:
    """Return how a GPU computes ``lines`` of ``pixels`` with ``channels``, each from ``taps`` of an image."""
    products = Products(lines, pixels, channels, taps, READS)
    kept = target.tuning.tiles.get(str(products)) if target.tuning.tiles else None
    if kept is None:
        return _usual(target, products)
    measured = (share for share in _possible(target, products) if share.tiled.tile == kept)
    return next(measured, None) or _usual(target, products)


def pixel_candidates(target: GpuTarget, products: Products) -> Sequence[GroupTile]:
    """Return the tiles to measure: the schedule's, then other group sizes, then other shapes."""
    usual = _usual(target, products)
    items = usual.wide * usual.high
    others = sorted(_possible(target, products), key=lambda share: (share.wide != usual.wide, share.pixels))
    ordered = (usual, *(one for one in others if one.wide * one.high != items), *others)
    return list(dict.fromkeys(share.tiled.tile for share in ordered))[:_MOST]


def _usual(target: GpuTarget, products: Products) -> PixelShare:
    width, group = width_of(target, products.columns), target.group_size(_KERNEL)
    pixels = _pixels(target, products)
    wide = min(group, target.schedule(_KERNEL).wide, 1 << (-(-products.columns // width) - 1).bit_length())
    return PixelShare(products, width, pixels, wide, group // wide, "estimate")


def _pixels(target: GpuTarget, products: Products) -> int:
    """Return the pixels of a work-item: one if units would otherwise be idle."""
    pixels = rows_of(_KERNEL, target, products.rows)
    lines = products.slices * -(-products.columns // target.vector_width)
    is_few = -(-products.rows // pixels) * lines < target.compute_units * target.group_size(_KERNEL)
    return 1 if lines and is_few else pixels


def _possible(target: GpuTarget, products: Products) -> Iterator[PixelShare]:
    width = width_of(target, products.columns)
    groups = [group for group in _GROUPS if group <= target.max_work_group_size]
    for pixels, group in product(_PIXELS, groups):
        wides = (1 << n for n in range(group.bit_length()))
        for wide in (wide for wide in wides if wide < 2 * -(-products.columns // width)):
            yield PixelShare(products, width, pixels, wide, group // wide)
