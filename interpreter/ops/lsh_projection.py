"""LSH_PROJECTION: similar bits for similar inputs, from hashes of their rows (Ravi, 2017)."""

from collections.abc import Iterator

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.arithmetic.farmhash import fingerprint64
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require, types
from litecl.interpreter.op import Inputs, Op, Specs
from litecl.interpreter.schema import TensorType

_SPARSE, _DENSE = 1, 2
_MOST_BITS = 32


@dataclass(frozen=True)
class LSHProjectionOptions:
    type: int = 0


def _infer(options: LSHProjectionOptions, inputs: Specs) -> list[TensorSpec]:
    seeds, x = require.present(inputs, 2)
    require.types(seeds, types.FLOAT)
    require.rank(seeds, exactly=2)
    hashes, bits = seeds.static_shape
    if require.rank(x, at_least=1) and not x.static_shape[0]:
        raise ShapeError("expected at least one row, got none")
    if bits > _MOST_BITS or x.type == TensorType.STRING:
        raise ShapeError(f"expected at most {_MOST_BITS} bits of plain elements, got {bits}")
    weights = inputs[2] if len(inputs) > 2 else None
    if weights is not None and (weights.type not in types.FLOAT or weights.shape != x.static_shape[:1]):
        raise ShapeError(f"weights {weights.shape} for input {list(x.static_shape)}")
    if options.type not in (_SPARSE, _DENSE):
        raise ShapeError(f"expected type 1 (sparse) or 2 (dense), got {options.type}")
    return [TensorSpec(TensorType.INT32, (hashes if options.type == _SPARSE else hashes * bits,))]


def _run(options: LSHProjectionOptions, inputs: Inputs) -> list[Array]:
    """Compute each bit as the sign of the weighted sum of the rows' hashes with its seed."""
    seeds, x = require.arrays(inputs, 2)
    weights = inputs[2] if len(inputs) > 2 else None
    rows = np.ascontiguousarray(x).reshape(len(x), -1)
    limits.temporary("hashes of rows", (4, len(rows)), np.dtype(np.float64).itemsize)
    factors = 1.0 if weights is None else weights.astype(np.float64)
    bits = np.array([np.cumsum(_hashes(seed.tobytes(), rows) * factors)[-1] > 0 for seed in seeds.reshape(-1)], bool)
    if options.type == _DENSE:
        return [bits.astype(np.int32)]
    count, width = seeds.shape
    powers = np.int64(1) << np.arange(width, dtype=np.int64)[::-1]
    signatures = bits.reshape(count, width) @ powers + np.arange(count) * (1 << width)
    return [signatures.astype(np.int32)]


def _hashes(seed: bytes, rows: Array) -> Array:
    """Return the hash of a seed and each row, as a signed number."""

    def hashed() -> Iterator[int]:
        for row in rows:
            limits.tick()
            yield fingerprint64(seed + row.tobytes())

    return np.fromiter(hashed(), np.uint64, len(rows)).view(np.int64).astype(np.float64)


LSH_PROJECTION = Op("LSH_PROJECTION", options=LSHProjectionOptions, infer=_infer, run=_run)
