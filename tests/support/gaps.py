"""Gaps between a region's tensors in memory, which kernels may neither write nor depend on: ``pytest --gaps``.

No two tensors then share memory, and after every tensor, constant and loop variable comes a gap of bytes that are NaN
as floats. The gaps are checked after each test.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np

_GAP = 1024  # bytes: more than the widest vector, and than a row of most tiles
_FILLED = 0xFF
_live: list[Any] = []


def leave() -> None:
    """Leave gaps, for the rest of this process."""
    if find_spec("pyopencl") is None:
        return
    from litecl.delegate.backend import places
    from litecl.delegate.opencl.memory import memory
    from litecl.delegate.plan import memory as planned
    from litecl.delegate.plan import plan
    from litecl.delegate.plan.memory import Arena, Usage, align, place

    def apart(usages: Sequence[Usage], alignment: int) -> Arena:
        last = max((usage.last for usage in usages), default=0)
        return place([replace(u, first=0, last=last) for u in usages], alignment)

    def aligned(value: int, alignment: int) -> int:
        return align(value + _GAP, alignment)

    init, send = memory.Memory.__init__, memory.Memory._send

    def made(self: Any, *arguments: Any) -> None:
        init(self, *arguments)
        _live.append(self)
        for start, end in _gaps(self):
            _fill(self, self.arena, start, end)

    def sent(self: Any, *arguments: Any) -> None:
        _fill(self, self.constants, 0, self.constant_bytes)
        send(self, *arguments)

    for place_, name, value in (
        (plan, "place", apart),
        *((module, "align", aligned) for module in (memory, places, planned)),
        (memory.Memory, "__init__", made),
        (memory.Memory, "_send", sent),
    ):
        setattr(place_, name, value)


def written() -> list[str]:
    """Return what was written into gaps of any region since the last call."""
    import pyopencl as cl

    faults = []
    while _live:
        memory = _live.pop()
        for start, end in _gaps(memory):
            found = np.empty(end - start, np.uint8)
            cl.enqueue_copy(memory._device.queue, found, memory.arena, src_offset=start)
            changed = np.flatnonzero(found != _FILLED)
            if changed.size:
                faults.append(f"{changed.size} bytes were written, from {changed[0]} bytes behind a tensor on")
    return faults


def _fill(memory: Any, buffer: Any, start: int, end: int) -> None:
    import pyopencl as cl

    if end > start:
        cl.enqueue_fill_buffer(memory._device.queue, buffer, np.uint8(_FILLED), start, end - start)
        memory._device.queue.finish()


def _gaps(memory: Any) -> Iterator[tuple[int, int]]:
    """Yield the start and end of every gap in an arena: after its tensors, then after the variables in sets."""
    plan = memory._plan
    sizes = {usage.key: usage.size_bytes for usage in plan.usages}
    ordered = sorted(plan.arena.offsets.items(), key=lambda item: item[1])
    ends = [*(at for _, at in ordered[1:]), plan.arena.size_bytes]
    yield from ((at + sizes[key], end) for (key, at), end in zip(ordered, ends, strict=True))
    for operand, slot in plan.slots.items():
        end = plan.arena.offsets[slot.sets] + slot.offset + operand.size_bytes
        yield from ((end + shift, end + shift + _GAP) for shift in (0, slot.set_bytes))
