"""SPACE_TO_DEPTH and DEPTH_TO_SPACE: blocks of pixels to channels, and back. Layout NHWC."""

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import MOVING_BYTES
from litecl.interpreter.kit import lowest, require
from litecl.interpreter.op import Inputs, Op, Specs


@dataclass(frozen=True)
class SpaceToDepthOptions:
    block_size: int = 0


@dataclass(frozen=True)
class DepthToSpaceOptions:
    block_size: int = 0


def _infer_to_depth(options: SpaceToDepthOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present(inputs, 1)
    require.rank(x, exactly=4)
    batches, height, width, depth = x.static_shape
    block = options.block_size
    if block < 1 or height % block or width % block:
        raise ShapeError(f"shape {list(x.static_shape)} does not divide into blocks of {block}")
    return [TensorSpec(x.type, (batches, height // block, width // block, depth * block * block))]


def _run_to_depth(options: SpaceToDepthOptions, inputs: Inputs) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    batches, height, width, depth = x.shape
    block = options.block_size
    rows, columns = height // block, width // block
    blocks = x.reshape(batches, rows, block, columns, block, depth).transpose(0, 1, 3, 2, 4, 5)
    return [blocks.reshape(batches, rows, columns, block * block * depth)]


def _infer_to_space(options: DepthToSpaceOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present(inputs, 1)
    require.rank(x, exactly=4)
    batches, rows, columns, depth = x.static_shape
    block = options.block_size
    if block < 1 or depth % (block * block):
        raise ShapeError(f"shape {list(x.static_shape)} does not divide into blocks of {block}")
    return [TensorSpec(x.type, (batches, rows * block, columns * block, depth // (block * block)))]


def _run_to_space(options: DepthToSpaceOptions, inputs: Inputs) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    batches, rows, columns, depth = x.shape
    block = options.block_size
    channels = depth // (block * block)
    pixels = x.reshape(batches, rows, columns, block, block, channels).transpose(0, 1, 3, 2, 4, 5)
    return [pixels.reshape(batches, rows * block, columns * block, channels)]


SPACE_TO_DEPTH = Op(
    "SPACE_TO_DEPTH",
    options=SpaceToDepthOptions,
    infer=_infer_to_depth,
    run=_run_to_depth,
    versions=range(1, 3),
    integers=MOVING_BYTES,
    lowest=lowest.integers(2),
)
DEPTH_TO_SPACE = Op(
    "DEPTH_TO_SPACE",
    options=DepthToSpaceOptions,
    infer=_infer_to_space,
    run=_run_to_space,
    versions=range(1, 3),
    integers=MOVING_BYTES,
    lowest=lowest.integers(2),
)
