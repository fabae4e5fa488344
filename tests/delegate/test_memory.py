"""Placing tensors in an arena."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litecl.delegate.plan.memory import Usage, place

_usages = st.lists(
    st.tuples(st.integers(1, 5000), st.integers(0, 20), st.integers(0, 20)).map(
        lambda t: (t[0], min(t[1:]), max(t[1:]))
    ),
    max_size=40,
)


@settings(deadline=None)
@given(_usages, st.sampled_from([1, 64, 128]))
def test_tensors_alive_together_never_share_memory(usages: list[tuple[int, int, int]], alignment: int) -> None:
    needs = [Usage(i, *usage) for i, usage in enumerate(usages)]
    arena = place(needs, alignment)
    for need in needs:
        start = arena.offsets[need.key]
        assert start % alignment == 0
        assert start + need.size_bytes <= arena.size_bytes
        for other in needs[: need.key]:
            apart = other.last < need.first or need.last < other.first
            begin = arena.offsets[other.key]
            assert apart or start + need.size_bytes <= begin or begin + other.size_bytes <= start


def test_a_chain_needs_the_two_largest_neighbours() -> None:
    sizes = [100, 400, 200, 300]
    arena = place([Usage(i, size, i, i + 1) for i, size in enumerate(sizes)], 1)
    assert arena.size_bytes == 600


def _plainly_placed(usages: list[Usage], alignment: int) -> dict[object, int]:
    """Return the offsets of the plain greedy rule: every usage is compared with all that have been placed."""
    placed: list[tuple[int, int, Usage]] = []
    for usage in sorted(usages, key=lambda u: (-u.size_bytes, u.first)):
        offset = 0
        for start, end, other in sorted(placed, key=lambda item: item[0]):
            together = other.first <= usage.last and usage.first <= other.last
            if together and start < offset + usage.size_bytes and offset < end:
                offset = -(-end // alignment) * alignment
        placed.append((offset, offset + usage.size_bytes, usage))
    return {usage.key: offset for offset, _, usage in placed}


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 400), st.sampled_from([0, 1, 5, 70, 300])), max_size=40),
    st.sampled_from([1, 64]),
)
def test_places_are_those_of_the_plain_rule(usages: list[tuple[int, int, int]], alignment: int) -> None:
    needs = [Usage(i, size, first, first + length) for i, (size, first, length) in enumerate(usages)]
    assert place(needs, alignment).offsets == _plainly_placed(needs, alignment)


@pytest.mark.parametrize(
    "lifetime",
    [
        pytest.param(lambda i, count: (i, i + 3), id="a few steps"),
        pytest.param(lambda i, count: (0, count), id="all steps"),
        pytest.param(lambda i, count: (i, count), id="until the end"),
        pytest.param(lambda i, count: (min(i, count - i), max(i, count - i)), id="one within another"),
    ],
)
def test_the_work_grows_with_the_number_of_tensors_only(lifetime: Callable[[int, int], tuple[int, int]]) -> None:
    """What is looked at one by one doubles with the number of tensors, however long each of them lives."""

    class Counted(Usage):
        looks = 0

        def __getattribute__(self, name: str) -> object:
            Counted.looks += 1
            return super().__getattribute__(name)

    looks = []
    for count in (2500, 5000):
        Counted.looks = 0
        place([Counted(i, 64 + i % 7, *lifetime(i, count)) for i in range(count)], 64)
        looks.append(Counted.looks)
    assert looks[1] < 2.2 * looks[0]
