"""Binary heaps that order equal elements like libstdc++: its push_heap, pop_heap and partial_sort.

LiteRT's kernels take elements of equal score in that order. ``less`` is a strict comparison; a heap is a list whose
first element is less than no other.
"""

from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")
Less = Callable[[_T, _T], bool]


def push(heap: list[_T], value: _T, less: Less[_T]) -> None:
    """Add an element."""
    heap.append(value)
    _rise(heap, len(heap) - 1, 0, value, less)


def pop(heap: list[_T], less: Less[_T]) -> _T:
    """Remove the first element and return it."""
    first, last = heap[0], heap.pop()
    if heap:
        _sink(heap, 0, len(heap), last, less)
    return first


def partial_sort(values: list[_T], count: int, less: Less[_T]) -> list[_T]:
    """Return the ``count`` first elements by ``less``, in order."""
    heap = values[:count]
    for hole in reversed(range(count // 2)):
        _sink(heap, hole, count, heap[hole], less)
    for value in values[count:]:
        if less(value, heap[0]):
            _sink(heap, 0, count, value, less)
    for end in reversed(range(1, count)):
        last, heap[end] = heap[end], heap[0]
        _sink(heap, 0, end, last, less)
    return heap


def _rise(heap: list[_T], hole: int, top: int, value: _T, less: Less[_T]) -> None:
    """Put a value at a hole or above it, moving parents down."""
    while hole > top and less(heap[parent := (hole - 1) // 2], value):
        heap[hole] = heap[parent]
        hole = parent
    heap[hole] = value


def _sink(heap: list[_T], hole: int, size: int, value: _T, less: Less[_T]) -> None:
    """Move the hole down to a leaf along the greater child, the right one of equals; then let the value rise."""
    top = hole
    while (child := 2 * hole + 2) <= size:
        if child == size or less(heap[child], heap[child - 1]):
            child -= 1
        heap[hole] = heap[child]
        hole = child
    _rise(heap, hole, top, value, less)
