"""What steps are fed: masks of full caches and of rings, as the exporter's caches are written."""

import numpy as np
import pytest

from litecl.generate.feeding import values
from litecl.generate.signatures import Entry, Role, Step
from litecl.interpreter.errors import ModelError


def step(width: int, *entries: Entry) -> Step:
    return Step("step", width, entries, (), None)


@pytest.mark.parametrize("dtype", [np.bool_, np.float32, np.float16])
@pytest.mark.parametrize("shape", [(1, 1, 3, 9), (1, 3, 1, 9)])
def test_masks(dtype: type, shape: tuple[int, ...]) -> None:
    """A token sees those before, and itself."""
    entry = Entry("mask", Role.MASK, shape, np.dtype(dtype))
    (made,) = values(step(3, entry), np.zeros(3), 4, 3, None).values()
    assert (made.shape, made.dtype) == (shape, dtype)
    seen = [[slot <= token for slot in range(9)] for token in (4, 5, 6)]
    if dtype is np.bool_:
        assert made.reshape(3, 9).tolist() == seen
    else:
        assert (made == 0).reshape(3, 9).tolist() == seen
        assert np.isfinite(made).all() and made.min() < -0.6 * float(np.finfo(dtype).max)


@pytest.mark.parametrize("start", [0, 1, 3, 7, 8, 9, 30, 31])
@pytest.mark.parametrize("window", [1, 4, 8])
@pytest.mark.parametrize("width", [1, 4])
def test_masks_of_rings(start: int, window: int, width: int) -> None:
    """A ring of eight slots is filled token by token; the mask shows those of the window, and no other."""
    ring: list[int | None] = [None] * 8
    for token in range(start):
        ring[token % 8] = token
    new = [*range(start, start + width)]
    if width == 1:  # decode writes first
        ring[start % 8] = start
        held = ring
    else:
        held = [*ring, *new]
    entry = Entry("local_mask", Role.LOCAL_MASK, (1, 1, width, len(held)), np.dtype(np.bool_))
    (made,) = values(step(width, entry), np.zeros(width), start, width, window).values()
    expected = [[key is not None and token - window < key <= token for key in held] for token in new]
    assert made.reshape(width, -1).tolist() == expected
    for token, row in zip(new, expected, strict=True):
        assert sum(row) == min(window, token + 1)  # none that it should see has been written over


def test_positions_and_ranges() -> None:
    entries = [
        Entry("tokens", Role.TOKENS, (1, 4), np.dtype(np.int32)),
        Entry("input_pos", Role.POSITIONS, (4,), np.dtype(np.int64)),
        Entry("param_tensor", Role.RANGE, (1, 1, 1, 7), np.dtype(np.int32)),
    ]
    made = values(step(4, *entries), np.array([9, 8, 7, 0]), 5, 3, None)
    assert {name: (value.tolist(), value.dtype.name) for name, value in made.items()} == {
        "tokens": ([[9, 8, 7, 0]], "int32"),
        "input_pos": ([5, 6, 7, 8], "int64"),
        "param_tensor": ([[[[5, 8, 8, 0, 0, 0, 0]]]], "int32"),
    }


def test_masks_that_cannot_be() -> None:
    local = Entry("local_mask", Role.LOCAL_MASK, (1, 1, 1, 8), np.dtype(np.bool_))
    with pytest.raises(ModelError, match="give sliding_window="):
        values(step(1, local), np.zeros(1), 0, 1, None)
    for entry in (
        Entry("mask", Role.MASK, (1, 2, 3, 9), np.dtype(np.bool_)),
        Entry("mask", Role.MASK, (1, 1, 1, 9), np.dtype(np.bool_)),
        Entry("mask", Role.MASK, (1, 1, 3, 9), np.dtype(np.int8)),
    ):
        with pytest.raises(ModelError, match=r"^input 'mask': expected a mask"):
            values(step(3, entry), np.zeros(3), 0, 3, None)
