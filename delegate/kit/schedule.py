"""Work distribution: how many work-items a launch has, what each computes, and how they are grouped.

It follows from each kernel's ``Schedule``, which tuning may replace, and from the target: a CPU gets a few long shares,
each a group of its own; a GPU gets many short ones, neighbours side by side along the first dimension.
"""

from math import prod

from litecl.delegate.cl_op import Target
from litecl.delegate.launch import Chunks as Chunks
from litecl.delegate.launch import Grid as Grid
from litecl.delegate.launch import Tile as Tile


def chunks(kernel: str, n: int, target: Target, *, step: int = 1, work: int = 1) -> Chunks:
    """Distribute ``n`` items: long runs to few work-items on a CPU, ``step`` items to each of many on a GPU.

    step: items that a work-item handles at once (the vector width where an item is an element).
    work: the number of elements in an item.
    """
    return target.chunks(kernel, n, step, work)


def elements(kernel: str, n: int, target: Target, work: int = 1) -> Chunks:
    """Distribute the elements of an array, in whole vectors."""
    return target.chunks(kernel, n, target.vector_width, work)


def pixels(kernel: str, n: int, channels: int, target: Target, work: int) -> Chunks:
    """Distribute ``n`` pixels: on a CPU in runs with all channels, on a GPU by vectors of channels, in the dimensions
    (channels, pixels). work: operations per pixel.
    """
    return target.pixels(kernel, n, channels, work)


def groups(kernel: str, target: Target, count: int, share: int) -> Grid:
    """Return a launch of one group for every ``share`` of ``count`` items; a group's work-items wait for each other."""
    size = target.group_size(kernel)
    return Grid(kernel, (size, count), (1, share), local=(size, 1), apart=False)


def aligned(target: Target, *steps: int) -> dict[str, int]:
    """Return the macro that lets a GPU move whole vectors, if all steps (elements from pixel to pixel) are multiples
    of a vector.
    """
    return target.special(ALIGNED=not any(step % target.vector_width for step in steps))


def pieces(kernel: str, target: Target, lines: int, length: int) -> int:
    """Return how many pieces to split each of ``lines`` into, to get enough work-items."""
    schedule = target.schedule(kernel)
    return max(1, min(target.pieces(kernel, lines), schedule.pieces, int(length / schedule.least)))


def rows_of(kernel: str, target: Target, count: int) -> int:
    """Return how many of ``count`` rows, or of a row's pixels, a work-item computes at once."""
    tiles = target.schedule(kernel).tiles or target.batches
    return min(tiles, key=lambda tile: -(-count // tile.rows) * tile.rows / tile.share).rows


def width_of(target: Target, channels: int) -> int:
    """Return the vector width for this many channels, at most their number."""
    return next(width for width in (16, 8, 4, 1) if width <= min(channels, target.vector_width))


def flops(*dims: int) -> int:
    """Return the arithmetic operations of products of these dimensions: a multiplication and an addition each."""
    return 2 * prod(dims)
