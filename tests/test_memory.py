"""Placing tensors in an arena."""

from hypothesis import given
from hypothesis import strategies as st

from litecl.delegate.memory import Usage, place

_usages = st.lists(
    st.tuples(st.integers(1, 5000), st.integers(0, 20), st.integers(0, 20)).map(
        lambda t: (t[0], min(t[1:]), max(t[1:]))
    ),
    max_size=40,
)


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
