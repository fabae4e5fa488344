"""The shape of a launch: how many work-items share the work, by the kind of device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from litecl.delegate.cl_op import Arg, Launch, Target

_ITEMS_PER_UNIT = 4  # on a CPU, so that a unit that is held up can be helped out
_LEAST_WORK = 4096  # elements that are worth a work-item of their own on a CPU
_GPU_GROUP = 64


@dataclass(frozen=True)
class Chunks:
    """``n`` items dealt out in runs: work-item i owns [i * per_item, min((i + 1) * per_item, n))."""

    n: int
    per_item: int
    global_size: tuple[int, ...]
    local_size: tuple[int, ...]

    @property
    def args(self) -> tuple[np.int32, np.int32]:
        """The kernel arguments ``n, per_item``."""
        return np.int32(self.n), np.int32(self.per_item)

    def launch(
        self, kernel: str, entry: str, args: Sequence[Arg], defines: Mapping[str, str | int | float], flops: int = 0
    ) -> Launch:
        """A launch of this shape."""
        return Launch(kernel, entry, tuple(args), self.global_size, self.local_size, defines, flops)


def chunks(n: int, target: Target, *, step: int = 1, work: int = 1) -> Chunks:
    """Deals out ``n`` items: long runs to few work-items on a CPU, ``step`` items to each of many on a GPU.

    step: items that a work-item handles at once (the vector width where an item is an element).
    work: elements that an item stands for.
    """
    if target.kind == "gpu":
        return _chunks(n, step, min(_GPU_GROUP, target.max_work_group_size))
    most = 1 if target.compute_units == 1 else target.compute_units * _ITEMS_PER_UNIT
    wanted = max(1, min(most, n * work // _LEAST_WORK))
    return _chunks(n, -(-n // (wanted * step)) * step, 1)


def elements(n: int, target: Target, work: int = 1) -> Chunks:
    """Deals out the elements of an array, in whole vectors."""
    return chunks(n, target, step=target.vector_width, work=work)


def _chunks(n: int, per_item: int, group: int) -> Chunks:
    items = -(-n // per_item)
    return Chunks(n, per_item, (-(-items // group) * group,), (group,))
