"""Distribution of inverted residuals to a GPU's groups: tiles of the image, and parts of the hidden channels."""

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from litecl.delegate.cl_op import Arg, Launch, Local
from litecl.delegate.gpu.groups import groups, padded, tiles_in
from litecl.delegate.gpu.target import GpuTarget
from litecl.delegate.gpu.tiles import GROUPS_PER_UNIT, TILES, WITHOUT_PARTS, most_sums
from litecl.interpreter.dataclass import dataclass

_HIDDEN = 32  # channels of an inverted residual that a group computes at once
_BLOCK_ITEMS, _BLOCK_PIXELS = 128, (32, 16)  # work-items of a group; pixels of its tile, the most first
_BLOCK_PARTS, _MOST_BLOCK_PARTS = 16, 32  # at most, added up by the last group; with the smallest tile
# Operations per core that tiles may repeat where separate convolutions would keep the device busy: at its peak half a
# launch's time, or less. By whether the GPU is integrated: launches take longer there.
MOST_AGAIN = {False: 2.5e5, True: 1e6}
_BLOCK_COLUMNS = {64: (16, 1), 128: (32, 1), 256: (32, 2)}  # by the most columns: lanes, and fours per lane


@dataclass(frozen=True)
class BlockShare:
    """How groups compute an inverted residual: in each image ``down`` x ``across`` tiles of ``height`` x ``width``, at
    most ``pixels``, and parts of the hidden channels. span: height and width of a tile's input.
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
        """The hidden channels, rounded up to whole chunks."""
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
    def groups(self) -> int:
        """One group per tile and part."""
        return self.tiles * self.parts

    @property
    def parts_bytes(self) -> int:
        """Bytes of the sums of all parts of all tiles."""
        return 4 * self.parts * self.tiles * self.pixels * self.lanes * self.fours * 4

    @property
    def sums(self) -> int:
        """Sums of a work-item."""
        return self.pixels * self.lanes * self.fours * 4 // _BLOCK_ITEMS

    @property
    def local(self) -> Local:
        """Local memory of a group: a chunk of channels of its input, and of weights."""
        return Local(4 * _HIDDEN * (_HIDDEN + prod(self.span)))

    def launch(self, args: Sequence[Arg], defines: Mapping[str, str | int | float], flops: int) -> Launch:
        """Return the launch of one group per tile and part."""
        own = {"TILE": self.pixels, "ACROSS": self.lanes, "COLUMNS": self.fours}
        parts = {"PARTS": 1} if self.parts > 1 else {}
        kernel = "inverted_residual"
        return groups(kernel, kernel, self.groups, _BLOCK_ITEMS, args, {**own, **parts, **defines}, flops)


@dataclass(frozen=True)
class Block:
    """An inverted residual of ``images``: ``depth`` channels, hidden ones [height, width, hidden], then ``columns``
    channels of ``out`` [height, width]. Output pixels read ``reach`` rows and columns, ``strides`` apart.
    """

    images: int
    depth: int
    height: int
    width: int
    hidden: int
    out: tuple[int, int]
    columns: int
    strides: tuple[int, int]
    reach: tuple[int, int]


def block_share(target: GpuTarget, block: Block, *, halves: bool) -> BlockShare | None:
    """Return how a GPU computes an inverted residual.

    None if separate convolutions keep the device busy and tiles would repeat much work, if fewer than half of its cores
    would get a group, or if it has no room. halves: whether large weights are stored as fp16.
    """
    wide = next((wide for most, wide in _BLOCK_COLUMNS.items() if block.columns <= most), None)
    if wide is None:
        return None
    most = _most_sums(target, halves)
    every = (_share(target, block, wide, pixels, most) for pixels in _BLOCK_PIXELS)
    shares = [share for share in every if share is not None and _pays(target, block, share)]
    busy = (share for share in shares if 2 * share.groups >= target.compute_units)
    best = next(busy, max(shares, key=lambda share: share.groups, default=None))
    return best if best is not None and 2 * best.groups >= target.cores else None


def _share(target: GpuTarget, block: Block, wide: tuple[int, int], pixels: int, most_sums: int) -> BlockShare | None:
    """Return the share with tiles of at most ``pixels``; None if the device has no room for them. most_sums: of a
    work-item.
    """
    height, width = _tile_of(pixels, block)
    down, across = -(-block.out[0] // height), -(-block.out[1] // width)
    tiles, chunks = block.images * down * across, -(-block.hidden // _HIDDEN)
    most = _BLOCK_PARTS if pixels > _BLOCK_PIXELS[-1] else _MOST_BLOCK_PARTS
    shared = target.gpu.vendor not in WITHOUT_PARTS
    parts = min(chunks, most, -(-target.compute_units // tiles)) if shared else 1
    parts = -(-chunks // -(-chunks // parts))  # none of them empty
    rows, columns = ((n - 1) * stride + seen for n, stride, seen in _by_side((height, width), block))
    own = (pixels, height, width, down, across, block.images, (rows, columns), parts, block.hidden)
    share = BlockShare(*own, *wide)
    return share if share.sums <= most_sums and target.has_room(_BLOCK_ITEMS, share.local) else None


def _by_side(tile: tuple[int, int], block: Block) -> Iterator[tuple[int, int, int]]:
    return zip(tile, block.strides, block.reach, strict=True)


def _pays(target: GpuTarget, block: Block, share: BlockShare) -> bool:
    """Return whether separate convolutions would leave cores idle, or tiles repeat little work."""
    pixels = block.images * block.height * block.width
    if tiles_in(TILES[-1], pixels, block.hidden) <= target.compute_units * GROUPS_PER_UNIT:
        return True
    return _again(block, share) <= MOST_AGAIN[target.gpu.integrated] * target.cores


def _again(block: Block, share: BlockShare) -> int:
    """Return the operations of the first convolution that tiles repeat."""
    sides = zip((block.height, block.width), (share.down, share.across), strict=True)
    spans = zip(share.span, (share.height, share.width), block.strides, strict=True)
    seen = prod(
        n + (tiles - 1) * max(0, span - own * stride)
        for (n, tiles), (span, own, stride) in zip(sides, spans, strict=True)
    )
    return 2 * block.images * (seen - block.height * block.width) * block.depth * block.hidden


def _most_sums(target: GpuTarget, halves: bool) -> int:
    """Return how many sums a work-item keeps; where registers are few, converting fp16 weights needs some of them."""
    few = target.gpu.few_registers and halves
    return most_sums(target) // 2 if few else most_sums(target)


def _tile_of(pixels: int, block: Block) -> tuple[int, int]:
    """Return the tile of at most ``pixels`` pixels whose tiles together read the fewest pixels of an image."""

    def seen(tile: tuple[int, int]) -> int:
        counts = (-(-n // own) for n, own in zip(block.out, tile, strict=True))
        return prod(counts) * prod((own - 1) * stride + reach for own, stride, reach in _by_side(tile, block))

    widths = range(1, min(pixels, block.out[1]) + 1)
    return min(((min(pixels // width, block.out[0]), width) for width in widths), key=seen)
