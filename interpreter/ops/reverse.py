"""REVERSE_V2 and REVERSE_SEQUENCE: elements in opposite order along axes, or along the start of one."""

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError, ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import MOVING, MOVING_WORDS
from litecl.interpreter.kit import lowest, require, types
from litecl.interpreter.op import Inputs, NoOptions, Op, Specs
from litecl.interpreter.schema import TensorType


@dataclass(frozen=True)
class ReverseSequenceOptions:
    seq_dim: int = 0
    batch_dim: int = 0


def _infer_reverse(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    x, axes = require.present(inputs, 2)
    require.rank(axes, exactly=1)
    rank = require.rank(x)
    for value in require.integers(axes) or ():
        require.axis(value, rank)
    return [TensorSpec(x.type, x.shape)]


def _run_reverse(options: NoOptions, inputs: Inputs) -> list[Array]:
    x, axes = require.arrays(inputs, 2)
    return [np.flip(x, tuple(axes.tolist())).copy()]


def _infer_sequence(options: ReverseSequenceOptions, inputs: Specs) -> list[TensorSpec]:
    x, lengths = require.present(inputs, 2)
    require.types(lengths, types.INDEX)
    rank = require.rank(x, at_least=1)
    if not (0 <= options.seq_dim < rank and 0 <= options.batch_dim < rank and options.seq_dim != options.batch_dim):
        raise ShapeError(f"{options} does not fit rank {rank}")
    if lengths.static_shape != (x.static_shape[options.batch_dim],):
        raise ShapeError(f"lengths {list(lengths.static_shape)} for shape {list(x.static_shape)}")
    return [TensorSpec(x.type, x.shape)]


def _run_sequence(options: ReverseSequenceOptions, inputs: Inputs) -> list[Array]:
    x, lengths = require.arrays(inputs, 2)
    size = x.shape[options.seq_dim]
    if lengths.size and not 0 <= lengths.min() <= lengths.max() <= size:
        raise ModelError(f"lengths {lengths.min()} to {lengths.max()} for a dimension of {size}")
    wide = [1] * x.ndim
    positions = np.arange(size).reshape([*wide[: options.seq_dim], -1, *wide[options.seq_dim + 1 :]])
    ends = lengths.reshape([*wide[: options.batch_dim], -1, *wide[options.batch_dim + 1 :]])
    return [np.take_along_axis(x, np.where(positions < ends, ends - 1 - positions, positions), options.seq_dim)]


REVERSE_V2 = Op(
    "REVERSE_V2",
    options=NoOptions,
    infer=_infer_reverse,
    run=_run_reverse,
    versions=range(1, 5),
    integers=MOVING,
    lowest=lowest.most(lowest.by_type({TensorType.BOOL: 2}), lowest.integers(3)),
)
REVERSE_SEQUENCE = Op(
    "REVERSE_SEQUENCE", options=ReverseSequenceOptions, infer=_infer_sequence, run=_run_sequence, integers=MOVING_WORDS
)
