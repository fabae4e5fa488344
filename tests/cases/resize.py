"""Cases of RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR."""

from dataclasses import replace
from typing import Any

import numpy as np

from litecl.cases import Case, rng
from litecl.interpreter.graph import Array
from litecl.interpreter.op import Op
from litecl.interpreter.ops.resize import (
    RESIZE_BILINEAR,
    RESIZE_NEAREST_NEIGHBOR,
    ResizeBilinearOptions,
    ResizeNearestNeighborOptions,
)

_random = rng(31)


def _f(*shape: int) -> Array:
    return _random.standard_normal(shape).astype(np.float32)


_SIZES = (
    ("double", (1, 4, 5, 3), (8, 10)),
    ("half", (1, 8, 6, 3), (4, 3)),
    ("one and a half", (2, 4, 6, 5), (6, 9)),
    ("a third more, a third less", (1, 9, 6, 2), (6, 8)),
    ("from one pixel", (1, 1, 1, 3), (4, 5)),
    ("to one pixel", (1, 5, 4, 3), (1, 1)),
    ("primes", (1, 7, 11, 2), (13, 5)),
    ("same size", (1, 5, 4, 3), (5, 4)),
)


def _table(op: Op, options: type) -> tuple[Case, ...]:
    forms: tuple[tuple[str, Any], ...] = (
        ("", options()),
        (", corners aligned", options(align_corners=True)),
        (", half pixels", options(half_pixel_centers=True)),
        (", both", options(True, True)),
    )
    sized = tuple(
        Case(name + form, op, chosen, [_f(*x), np.array(size, np.int32)], frozenset({1}), version=3)
        for form, chosen in forms
        for name, x, size in _SIZES
    )
    unknown = tuple(
        Case(
            f"size known at run time{form}",
            op,
            chosen,
            [_f(1, 4, 4, 2), np.array([6, 7], np.int32)],
            device="the output's shape is known only at run time",
        )
        for form, chosen in forms
    )
    # Of LiteRT's kernels only XNNPACK's interpolate to a constant size with both options.
    return tuple(_by_default(case) for case in sized) + unknown


def _by_default(case: Case) -> Case:
    both = case.options.align_corners and case.options.half_pixel_centers
    return replace(case, kernels="default") if both and case.op is RESIZE_BILINEAR else case


def _extreme(*shape: int) -> Array:
    """Numbers among which there are infinities, NaN and some that overflow where they are weighted by more than 1."""
    x = _f(*shape)
    places = _random.choice(x.size, x.size // 4, replace=False)
    x.reshape(-1)[places] = _random.choice(np.array([np.inf, -np.inf, np.nan, 3e38, -3e38], np.float32), len(places))
    return x


def _extremes() -> tuple[Case, ...]:
    options = ResizeBilinearOptions(), ResizeBilinearOptions(half_pixel_centers=True)
    return tuple(
        Case(
            f"{name}, extremes{', half pixels' if chosen.half_pixel_centers else ''}",
            RESIZE_BILINEAR,
            chosen,
            [_extreme(*x), np.array(size, np.int32)],
            frozenset({1}),
            version=3,
        )
        for chosen in options
        for name, x, size in (*_SIZES, ("many channels", (1, 6, 5, 40), (9, 8)))
    )


CASES = (
    *_table(RESIZE_BILINEAR, ResizeBilinearOptions),
    *_table(RESIZE_NEAREST_NEIGHBOR, ResizeNearestNeighborOptions),
    *_extremes(),
)
