"""Deals out the work of inverted residuals to a GPU's groups: tiles of the image, and parts of the hidden channels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from litecl.delegate.cl_op import Arg, Launch, Local, Target
from litecl.delegate.kit.groups import groups, has_room, padded, tiles_in
from litecl.delegate.kit.tiles import GROUPS_PER_UNIT, TILES, WITHOUT_PARTS, most_sums

_HIDDEN = 32  # channels of an inverted residual that a group computes at once
_BLOCK_ITEMS, _BLOCK_PIXELS = 128, (32, 16)  # of a group, and of its tile: the most first
_BLOCK_PARTS, _MOST_BLOCK_PARTS = 16, 32  # that the last group adds up: as many as wanted, and where tiles are few
_BLOCK_COLUMNS = {64: (16, 1), 128: (32, 1), 256: (32, 2)}  # lanes, and fours of each, for as many columns


@dataclass(frozen=True)
class BlockShare:
    """How groups compute an inverted residual: tiles of ``height`` x ``width`` out of ``pixels``, of which there are
    ``down`` x ``across`` in each image, and parts of the hidden channels. span: height and width of what a tile sees.
    """

    pixels: int
    height: int
    width: int
    down: int
    across: int
    images: int
    span: tuple[int, int]
    parts: int
    hidden: int
    lanes: int
    fours: int

    @property
    def padded_hidden(self) -> int:
        """The hidden channels in whole chunks."""
        return padded(self.hidden, _HIDDEN)

    @property
    def part_hidden(self) -> int:
        """The hidden channels of a part."""
        return padded(-(-self.hidden // self.parts), _HIDDEN)

    @property
    def tiles(self) -> int:
        """Tiles of all images."""
        return self.images * self.down * self.across

    @property
    def parts_bytes(self) -> int:
        """What the sums of all parts of all tiles take."""
        return 4 * self.parts * self.tiles * self.pixels * self.lanes * self.fours * 4

    @property
    def sums(self) -> int:
        """Sums of a work-item."""
        return self.pixels * self.lanes * self.fours * 4 // _BLOCK_ITEMS

    @property
    def local(self) -> Local:
        """Local memory of a group: a chunk of all that it sees, and of weights."""
        return Local(4 * _HIDDEN * (_HIDDEN + prod(self.span)))

    def launch(self, args: Sequence[Arg], defines: Mapping[str, str | int | float], flops: int) -> Launch:
        """Return the launch of a group for every tile and part."""
        own = {"TILE": self.pixels, "ACROSS": self.lanes, "COLUMNS": self.fours}
        parts = {"PARTS": 1} if self.parts > 1 else {}
        count, kernel = self.tiles * self.parts, "inverted_residual"
        return groups(kernel, kernel, count, _BLOCK_ITEMS, args, {**own, **parts, **defines}, flops)


def block_share(
    target: Target, image: Sequence[int], out: Sequence[int], columns: int, strides: Sequence[int], reach: Sequence[int]
) -> BlockShare | None:
    """Return how a GPU computes an inverted residual from hidden channels [images, height, width, channels] to ``out``
    [height, width]. reach: rows and columns of the image that an output pixel sees.

    None where its convolutions keep the device busy one by one, or where it has no room.
    """
    wide = next((wide for most, wide in _BLOCK_COLUMNS.items() if columns <= most), None)
    units, (images, *_, hidden) = target.compute_units, image
    if wide is None or tiles_in(TILES[-1], prod(image[:3]), hidden) > units * GROUPS_PER_UNIT:
        return None
    shared = target.gpu is None or target.gpu.vendor not in WITHOUT_PARTS
    for pixels in _BLOCK_PIXELS:
        height, width = _tile_of(pixels, out, strides, reach)
        down, across = -(-out[0] // height), -(-out[1] // width)
        tiles, chunks = images * down * across, -(-hidden // _HIDDEN)
        most = _BLOCK_PARTS if pixels > _BLOCK_PIXELS[-1] else _MOST_BLOCK_PARTS
        parts = min(chunks, most, -(-units // tiles)) if shared else 1
        parts = -(-chunks // -(-chunks // parts))  # none of them empty
        span = ((height - 1) * strides[0] + reach[0], (width - 1) * strides[1] + reach[1])
        share = BlockShare(pixels, height, width, down, across, images, span, parts, hidden, *wide)
        fits = share.sums <= _most_sums(target) and has_room(target, _BLOCK_ITEMS, share.local)
        if 2 * tiles * parts >= units and fits:
            return share
    return None


def _most_sums(target: Target) -> int:
    """Return how many sums a work-item keeps: where registers are few, halves need some of them to become floats."""
    few = target.gpu is not None and target.gpu.few_registers and target.half_weights
    return most_sums(target) // 2 if few else most_sums(target)


def _tile_of(pixels: int, out: Sequence[int], strides: Sequence[int], reach: Sequence[int]) -> tuple[int, int]:
    """Return the tile of at most so many pixels whose tiles together see the least of an image."""

    def seen(tile: tuple[int, int]) -> int:
        counts = (-(-n // own) for n, own in zip(out, tile, strict=True))
        return prod(counts) * prod((own - 1) * strides[i] + reach[i] for i, own in enumerate(tile))

    widths = range(1, min(pixels, out[1]) + 1)
    return min(((min(pixels // width, out[0]), width) for width in widths), key=seen)
