"""Bands of matrices whose sizes, rank or bounds are known only when the model runs."""

import itertools
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from support.conversion import converter_of, invoke, runtimes  # noqa: E402

_SHAPES: tuple[tuple[Any, tuple[int, ...]], ...] = (
    ((3, 4, 5), (3, 4, 5)),
    ((1, 2), (1, 2)),
    ((None, None), (6, 4)),
    ((None, 4), (7, 4)),
    ((3, None, 4), (3, 2, 4)),
    (None, (4, 6)),
    (None, (2, 1, 2, 1, 1, 5, 4)),
    ((None, None), (0, 3)),
)
_BOUNDS = (-1, 0, 1, 3, np.iinfo(np.int32).min)


def _matrices(shape: tuple[int, ...]) -> Any:
    """Return numbers of which some are infinite: those beyond the band are 0, not products with 0."""
    values = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    values[..., :1] = np.inf
    return values


@pytest.mark.parametrize("index", [tf.int32, tf.int64], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize(("spec", "shape"), _SHAPES, ids=str)
def test_computed_bounds(spec: Any, shape: tuple[int, ...], index: Any) -> None:
    specs = [tf.TensorSpec(spec, tf.float32), tf.TensorSpec((), index), tf.TensorSpec((), index)]
    content, x = converter_of(tf.linalg.band_part, *specs).convert(), _matrices(shape)
    for runtime in runtimes(content):
        for bounds in itertools.product(_BOUNDS, repeat=2):
            lower, upper = (
                # TensorFlow refuses bounds beyond the size.
                np.array(min(bound, size), index.as_numpy_dtype)
                for bound, size in zip(bounds, shape[-2:], strict=True)
            )
            (got,) = invoke(runtime, [x, lower, upper])
            np.testing.assert_array_equal(got, tf.linalg.band_part(x, lower, upper).numpy(), str(bounds))


@pytest.mark.parametrize("bounds", [(0, 0), (0, -1), (-1, 0)], ids=str)
@pytest.mark.parametrize(("spec", "shape"), _SHAPES, ids=str)
def test_known_bounds(spec: Any, shape: tuple[int, ...], bounds: tuple[int, int]) -> None:
    converter = converter_of(lambda x: tf.linalg.band_part(x, *bounds), tf.TensorSpec(spec, tf.float32))
    content, x = converter.convert(), _matrices(shape)
    for runtime in runtimes(content):
        (got,) = invoke(runtime, [x])
        np.testing.assert_array_equal(got, tf.linalg.band_part(x, *bounds).numpy())
