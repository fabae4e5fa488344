"""A tensor as frozen data: type, shape, quantization and, for a constant, the value."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.schema import TensorType

Array = npt.NDArray[Any]
Shape = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Quantization:
    """Affine quantization, ``real = scale * (q - zero_point)``, per tensor (one scale) or along one dimension.

    With ``block_size``, scales form an array of the tensor's rank whose ``quantized_dimension`` is divided by it.
    """

    scale: Array
    zero_point: Array
    quantized_dimension: int = 0
    min: Array | None = None
    max: Array | None = None
    block_size: int = 0

    def same(self, other: "Quantization") -> bool:
        """Return whether the same integers represent the same numbers in both."""
        return (
            np.array_equal(self.scale, other.scale)
            and np.array_equal(self.zero_point, other.zero_point)
            and (self.scale.size < 2 or self.quantized_dimension == other.quantized_dimension)
            and self.block_size == other.block_size
        )


@dataclass(frozen=True, eq=False)
class DimensionMetadata:
    """Storage of one traversed dimension of a sparse tensor: dense (``dense_size``) or sparse (segments, indices)."""

    dense_size: int = 0
    segments: Array | None = None
    indices: Array | None = None


@dataclass(frozen=True, eq=False)
class Sparsity:
    """The layout of a sparse constant: TACO's traversal order, the blocked dimensions, and one entry per level."""

    traversal_order: tuple[int, ...]
    block_map: tuple[int, ...]
    dimensions: tuple[DimensionMetadata, ...]


@dataclass(frozen=True, eq=False)
class TensorSpec:
    """The properties of a tensor before it is computed.

    ``shape`` is None if only running the operator determines it. ``data`` is the value of a constant, an array of
    ``shape`` and ``type.dtype`` (for a sparse constant, the flat stored values).
    ``shape_signature`` is the declared shape with -1 for every dimension that a caller may resize.
    """

    type: TensorType
    shape: Shape | None
    name: str = ""
    data: Array | None = None
    quantization: Quantization | None = None
    sparsity: Sparsity | None = None
    shape_signature: Shape | None = None
    is_variable: bool = False

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The numpy type of the elements."""
        return self.type.dtype

    @property
    def static_shape(self) -> Shape:
        """The shape; the caller ensures that it is known."""
        assert self.shape is not None, f"shape of {self.name!r} is not known before run time"
        return self.shape

    @property
    def size(self) -> int:
        """The number of elements of a tensor of known shape."""
        return math.prod(self.static_shape)
