"""3x3 convolutions of stride 1 on a GPU by Winograd's F(4x4, 3x3), in three launches: patches are transformed,
multiplied as 36 products, and transformed back (kernels_cl/winograd_patches.cl, product_local.cl).
"""

from math import prod

from litecl.delegate.cl_op import Activation, Arg, Const, Record, Scratch, Step
from litecl.delegate.cpu.winograd import SIDE, transformed
from litecl.delegate.gpu.groups import LocalShare, padded
from litecl.delegate.gpu.local_product import VECTOR, LocalOperands, Slice, in_tiles, local_product, padded_bias
from litecl.delegate.gpu.rates import rates_of
from litecl.delegate.gpu.target import GpuCall, GpuTarget
from litecl.delegate.gpu.tiles import estimated_share, local_share
from litecl.delegate.matmul.geometry import Geometry, matrix
from litecl.interpreter.dataclass import dataclass

_POINTS = (SIDE + 2) ** 2  # of a transformed patch, each of which is a product
_MOST_BYTES = 1 << 27  # of transformed patches
_CLEARLY = 0.8  # of the other way's estimate: the peaks that estimates are of are not reached alike
_READ_ROWS, _WRITE_ROWS = 3, 2  # work-items that share the rows of a patch, and of its output pixels


@dataclass(frozen=True)
class WinogradPatches(Record):
    """Arguments of winograd_patches.cl. tiles_y, tiles_x: patches of an image; patches: of all. padded_columns: of a
    row of products. aligned: whether four columns of a result are stored at once.
    """

    window: Geometry
    out_step: int
    tiles_y: int
    tiles_x: int
    patches: int
    padded_columns: int
    has_residual: int
    aligned: int


@dataclass(frozen=True)
class _Sizes:
    """A convolution as products of patches."""

    window: Geometry

    @property
    def tiles(self) -> tuple[int, int]:
        """Rows and columns of patches of an image."""
        return -(-self.window.out_height // SIDE), -(-self.window.out_width // SIDE)

    @property
    def patches(self) -> int:
        return self.window.images * prod(self.tiles)

    @property
    def padded_columns(self) -> int:
        return padded(self.window.columns, VECTOR)

    @property
    def patches_bytes(self) -> int:
        """Bytes of the transformed patches."""
        return 4 * _POINTS * self.patches * self.window.channels

    @property
    def products_bytes(self) -> int:
        return 4 * _POINTS * self.patches * self.padded_columns

    def share(self, target: GpuTarget) -> LocalShare | None:
        """Return how a GPU computes the products."""
        return local_share(target, _POINTS, self.patches, self.window.columns, self.window.channels)


def winograd(call: GpuCall, g: Geometry, direct: LocalShare) -> list[Step] | None:
    """Lower CONV_2D with constant weights [columns, 3, 3, channels] and bias; None where the direct way is faster.

    direct: how a GPU computes it as one product. Arithmetic is in float32: where weights are halves, and are multiplied
    as such where a GPU does that fast, the direct way is taken.
    """
    sizes, target = _Sizes(g), call.target
    share = None if target.half_weights or not g.is_3x3 else sizes.share(target)
    if share is None or not pays(target, sizes, share, direct):
        return None
    points = transformed(call.input(1).value)
    return None if points is None else _launches(call, sizes, share, in_tiles(points, share, halves=False))


def pays(target: GpuTarget, sizes: _Sizes, share: LocalShare, direct: LocalShare) -> bool:
    """Return whether three launches are clearly faster than the one of the direct way, by an estimate that counts what
    tiles compute beyond the edges, and all that launches hand on as if it went through memory.
    """
    g, rates = sizes.window, rates_of(target)
    few = min(g.channels, g.columns) < target.tuning.winograd_channels
    if rates is None or few or max(sizes.patches_bytes, sizes.products_bytes) > _MOST_BYTES:
        return False
    image, result = 4 * prod((g.images, g.height, g.width, g.channels)), 4 * g.pixels * g.columns
    one = rates.us(_flops(target, direct), image + result + 4 * g.depth * g.columns)
    handed_on = sizes.patches_bytes, sizes.products_bytes
    weights = 4 * _POINTS * g.channels * g.columns
    three = (0, image + handed_on[0]), (_flops(target, share), sum(handed_on) + weights), (0, handed_on[1] + result)
    return sum(rates.us(*launch) for launch in three) <= _CLEARLY * one


def _flops(target: GpuTarget, share: LocalShare) -> int:
    """Return the operations of whole tiles: those of the estimate, so that other tiles are measured in the same way."""
    usual = estimated_share(target, share.products)
    return 2 * usual.tiles * usual.tile.rows * usual.tile.columns * usual.depth


def _launches(call: GpuCall, sizes: _Sizes, share: LocalShare, weights: Const) -> list[Step]:
    g, out, target, patches, columns = sizes.window, call.outputs[0], call.target, sizes.patches, sizes.padded_columns
    x, m = Scratch(sizes.patches_bytes), Scratch(sizes.products_bytes)
    given = call.inputs[2] if len(call.inputs) > 2 else None
    nothing = padded_bias(None, share)
    bias = nothing if given is None else padded_bias(given.value, share)
    has_residual, aligned = call.residual is not None, out.step % VECTOR == 0
    shape = WinogradPatches(g, out.step, *sizes.tiles, patches, columns, int(has_residual), int(aligned))
    panel = share.padded_columns * share.padded_depth
    slices = [Slice(i * patches * g.channels, i * panel, 0, i * patches * columns) for i in range(_POINTS)]
    product = local_product(
        LocalOperands(x, weights, nothing, m, columns),
        share,
        matrix(patches, g.channels, g.columns),
        slices,
        Activation(),
        {},
    )
    reads: tuple[Arg, ...] = (call.input(0), x, shape)
    writes: tuple[Arg, ...] = (m, bias, call.residual or bias, out, shape, *call.activation.bounds)
    kernel = "winograd_patches"
    first = target.grid(kernel, (g.channels // VECTOR, patches, _READ_ROWS), (1, 1, 1))
    last = target.grid(kernel, (columns // VECTOR, patches, _WRITE_ROWS), (1, 1, 1))
    return [
        first.launch("read_patches", reads, {}),
        product,
        last.launch("write_patches", writes, call.activation.defines),
    ]
