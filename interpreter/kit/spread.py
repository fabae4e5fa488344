"""Padding between the elements of a tensor as well as around them."""

from collections.abc import Sequence

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.graph import Array
from litecl.interpreter.kit import require


def spread(x: Array, value: Array, low: Sequence[int], high: Sequence[int], steps: Sequence[int]) -> Array:
    """Return ``x`` with ``value`` between its elements, ``steps`` apart, and around them; negative borders crop."""
    spans = [max(0, (size - 1) * step + 1) if size else 0 for size, step in zip(x.shape, steps, strict=True)]
    shape = [max(0, a + span + b) for a, span, b in zip(low, spans, high, strict=True)]
    require.elements(shape)
    limits.temporary("a padded tensor", shape, x.dtype.itemsize)
    result = np.full(shape, value.reshape(()), x.dtype)
    source, target = [], []
    for size, step, first, length in zip(x.shape, steps, low, shape, strict=True):
        begin = max(0, -(first // step)) if first < 0 else 0
        end = min(size, max(begin, -(-(length - first) // step)))
        source.append(slice(begin, end))
        start = first + begin * step
        target.append(slice(start, start + (end - begin) * step, step) if end > begin else slice(0, 0))
    result[tuple(target)] = x[tuple(source)]
    return result
