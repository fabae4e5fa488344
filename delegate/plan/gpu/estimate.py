"""Estimates of a plan's launches on a profiled GPU, from their operations and bytes."""

from collections.abc import Iterator, Sequence
from math import prod
from typing import Literal, Protocol

from litecl.delegate.cl_op import Arg, Const, Operand, Scratch
from litecl.delegate.gpu import schedules
from litecl.delegate.gpu.profiles import Profile
from litecl.delegate.plan.steps import Loop, OneGroup, Steps, Work, inside, works_of
from litecl.delegate.tuning import Tiled
from litecl.interpreter.dataclass import dataclass


class Planned(Protocol):
    """A ``Plan``, as far as launches are estimated by it."""

    @property
    def steps(self) -> Steps: ...


@dataclass(frozen=True)
class LaunchRow:
    """A launch as planned. Those of a loop's body count once; what one group runs is one launch of ``region.cl``.

    groups, work_items: of the launch; group: work-items of a group. flops: of loops within it as often as they run, or
    once where the model does not tell. bytes: of all that it is given, each array once.
    roofline_us: the time that its arithmetic or its bytes take at the GPU's peak, whichever is longer; bound: which.
    busy: the share of the places for groups (``Gpu.cores``) that get one. matrix, halves: whether matrix units do its
    arithmetic, or vector units in halves. tiled: the tile of a product, and whether it was measured, or follows from
    the family of GPUs or from an estimate.
    """

    partition: int
    subgraph: int
    node: int
    kernel: str
    entry: str
    groups: int
    work_items: int
    group: int
    flops: int
    bytes: int
    bound: Literal["arithmetic", "memory"]
    roofline_us: float
    busy: float
    matrix: bool = False
    halves: bool = False
    tiled: Tiled | None = None


def launch_rows(plans: Sequence[Planned], profile: Profile) -> tuple[LaunchRow, ...]:
    """Return every launch of some regions, in order."""
    return tuple(_row(number, part, profile) for number, plan in enumerate(plans) for part in _launched(plan.steps))


def host_waits(plans: Sequence[Planned]) -> int:
    """Return how often the host waits for the device at least: once for each region, and for each loop that is queued
    without knowing how often it runs.
    """
    return len(plans) + sum(_unknown(plan.steps) for plan in plans)


def _unknown(steps: Steps) -> int:
    around = [part for part in steps if not isinstance(part, Work | OneGroup)]
    own = sum(isinstance(part, Loop) and part.trips is None for part in around)
    return own + sum(_unknown(inner) for part in around for inner in inside(part))


def _launched(steps: Steps) -> Iterator[Work | OneGroup]:
    for part in steps:
        if isinstance(part, Work | OneGroup):
            yield part
        else:
            for inner in inside(part):
                yield from _launched(inner)


def _row(partition: int, part: Work | OneGroup, profile: Profile) -> LaunchRow:
    works = list(works_of([part]))
    if isinstance(part, Work):
        launch = part.launch
        named, items, group = (launch.kernel, launch.entry), prod(launch.global_size), prod(launch.local_size)
    else:
        items = group = min(schedules.DEFAULTS["region"].group, profile.max_work_group_size)
        named = "region", "run"
    flops, touched = _flops([part]), sum(map(_size_bytes, {arg for work in works for arg in work.launch.args}))
    unit = part.launch.unit if isinstance(part, Work) else ""
    tflops = {"matrix": profile.matrix_tflops, "halves": profile.half_tflops}.get(unit) or profile.tflops
    arithmetic_us, memory_us = flops / tflops / 1e6, touched / profile.gb_per_s / 1e3
    return LaunchRow(
        *(partition, works[0].subgraph, works[0].node),
        *named,
        groups=items // group,
        work_items=items,
        group=group,
        flops=flops,
        bytes=touched,
        bound="arithmetic" if arithmetic_us > memory_us else "memory",
        roofline_us=max(arithmetic_us, memory_us),
        busy=min(1.0, items // group / profile.cores),
        matrix=unit == "matrix",
        halves=unit == "halves",
        tiled=part.launch.tiled if isinstance(part, Work) else None,
    )


def _flops(steps: Steps) -> int:
    """Return the operations of steps, of loops as often as the model says that they run."""
    return sum(
        part.launch.flops
        if isinstance(part, Work)
        else (part.trips or 1 if isinstance(part, Loop) else 1) * sum(map(_flops, inside(part)))
        for part in steps
    )


def _size_bytes(arg: Arg) -> int:
    if isinstance(arg, Const):
        return 0 if arg.data is None else arg.data.nbytes
    return arg.size_bytes if isinstance(arg, Operand | Scratch) else 0
