"""GPTQ: rounds weights column by column; later columns compensate the error.

Algorithm: Frantar et al., "GPTQ" (2023), section 3, with columns ordered by their inputs' mean square.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from litecl.interpreter.graph import Array

_DAMPING = 0.01  # of the inputs' mean square, so that few samples don't weigh too much
_ABREAST = 128  # columns per block, after which the others are updated at once


@dataclass(frozen=True, eq=False)
class Moments:
    """The mean products of the inputs of weights [units, depth].

    products: [depth, depth], float64.
    """

    products: Array

    @cached_property
    def order(self) -> Array:
        """The columns, largest inputs first."""
        return np.argsort(-np.diag(self.products), kind="stable")

    @cached_property
    def factor(self) -> Array:
        """The upper Cholesky factor of the inverse of the damped products, in ``order``."""
        return _factor(self.products[np.ix_(self.order, self.order)])


def compensated(weights: Array, steps: Array, last: int, moments: Moments) -> Array:
    """Return the integers of ``weights`` [units, depth]: float64 whole numbers from ``-last`` to ``last``.

    steps: each weight's scale, in the same shape.
    """
    order, factor = moments.order, moments.factor
    left, steps = weights[:, order].copy(), steps[:, order]
    rounded = np.empty_like(left)
    for start in range(0, left.shape[1], _ABREAST):
        end = min(start + _ABREAST, left.shape[1])
        errors = np.empty((len(left), end - start))
        for column in range(start, end):
            rounded[:, column] = np.rint(left[:, column] / steps[:, column]).clip(-last, last)
            error = left[:, column] - rounded[:, column] * steps[:, column]
            errors[:, column - start] = error / factor[column, column]
            left[:, column + 1 : end] -= np.outer(errors[:, column - start], factor[column, column + 1 : end])
        left[:, end:] -= errors @ factor[start:end, end:]
    result = np.empty_like(rounded)
    result[:, order] = rounded
    return result


def _factor(products: Array) -> Array:
    damped = products.astype(np.float64).copy()
    diagonal = np.diag(damped).copy()
    mean = float(diagonal.mean()) or 1.0
    np.fill_diagonal(damped, np.where(diagonal > 0, diagonal, mean) + _DAMPING * mean)
    inverse = np.linalg.inv(damped)
    return np.linalg.cholesky((inverse + inverse.T) / 2).T
