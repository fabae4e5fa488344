"""Reads StridedSlice's masks: which bound belongs to which dimension."""

from collections.abc import Mapping

MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def axis_bounds(count: int, rank: int, masks: Mapping[str, int]) -> list[int | None]:
    """Return the position in the bounds for every dimension of the operand, None for those an ellipsis covers."""
    new = _new_positions(count, masks)
    result: list[int | None] = []
    for i in range(count):
        if masks["ellipsis_mask"] >> i & 1:
            result += [None] * (rank - (count - 1 - len(new)))
        elif i not in new:
            result.append(i)
    return result


def new_axes(count: int, rank: int, masks: Mapping[str, int]) -> list[int]:
    """Return the new dimensions of the result."""
    result, axis, new = [], 0, _new_positions(count, masks)
    for i in range(count):
        if masks["ellipsis_mask"] >> i & 1:
            axis += rank - (count - 1 - len(new))
        elif i in new:
            result.append(axis)
            axis += 1
        elif not masks["shrink_axis_mask"] >> i & 1:
            axis += 1
    return result


def _new_positions(count: int, masks: Mapping[str, int]) -> list[int]:
    return [i for i in range(count) if masks["new_axis_mask"] >> i & 1 and not masks["ellipsis_mask"] >> i & 1]
