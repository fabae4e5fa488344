"""Images of digits from a 4 by 6 pixel font, in random places and colours, with noise."""

from typing import NamedTuple

import numpy as np

from litecl.interpreter.graph import Array

SIDE = 8  # pixels
_NOISE = 0.08
_CONTRAST = 0.45  # smallest difference between ink and paper per channel
_FONT = """
.##. ..#. .##. ###. #..# #### .##. #### .##. .##.
#..# .##. #..# ...# #..# #... #... ...# #..# #..#
#..# ..#. ...# .##. #### ###. ###. ..#. .##. .###
#..# ..#. ..#. ...# ...# ...# #..# ..#. #..# ...#
#..# ..#. .#.. ...# ...# #..# #..# .#.. #..# ...#
.##. .### #### ###. ...# .##. .##. .#.. .##. .##.
"""


class Images(NamedTuple):
    """Images and their digits. pixels: float32 [n, 8, 8, 3] of 0 to 1. digits: int64 [n]."""

    pixels: Array
    digits: Array


def font() -> Array:
    """Return where each digit has ink: booleans [10, 6, 4]."""
    rows = [line.split() for line in _FONT.split("\n") if line]
    return np.array([[[dot == "#" for dot in row[digit]] for row in rows] for digit in range(10)])


def draw(count: int, seed: int) -> Images:
    """Draw ``count`` images, dark ink on bright paper or the other way round."""
    rng, shapes = np.random.default_rng(seed), font()
    digits = rng.integers(0, 10, count)
    paper = rng.uniform(0, 1 - _CONTRAST, (count, 1, 1, 3))
    ink = paper + _CONTRAST + rng.uniform(0, 1, paper.shape) * (1 - _CONTRAST - paper)
    masks = np.zeros((count, SIDE, SIDE, 1))
    _, height, width = shapes.shape
    tops, lefts = (rng.integers(0, SIDE - size + 1, count) for size in (height, width))
    for mask, digit, top, left in zip(masks, digits, tops, lefts, strict=True):
        mask[top : top + height, left : left + width, 0] = shapes[digit]
    bright = np.where(rng.integers(0, 2, count)[:, None, None, None], masks, 1 - masks)
    pixels = paper + bright * (ink - paper) + rng.normal(0, _NOISE, (count, SIDE, SIDE, 3))
    return Images(pixels.clip(0, 1).astype(np.float32), digits)
