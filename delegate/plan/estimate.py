"""Estimates of a plan's launches on a GPU of the table of profiles, from what they compute and touch."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

from litecl.delegate.cl_op import Arg, Const, Launch, Operand, Scratch
from litecl.delegate.gpu import Profile
from litecl.delegate.plan.plan import Plan


@dataclass(frozen=True)
class LaunchRow:
    """A launch as planned. Those of a loop's body count once.

    groups, work_items: of the launch; group: work-items of a group. bytes: of all that it is given, each array once.
    roofline_us: the time that its arithmetic or its bytes take at the GPU's peak, whichever is longer; bound: which.
    busy: the share of the compute units that get a group.
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


def launch_rows(plans: Sequence[Plan], profile: Profile) -> tuple[LaunchRow, ...]:
    """Return every launch of some regions, in order."""
    return tuple(
        _row((number, work.subgraph, work.node), work.launch, profile)
        for number, plan in enumerate(plans)
        for work in plan.works
    )


def _row(place: tuple[int, int, int], launch: Launch, profile: Profile) -> LaunchRow:
    items, group = prod(launch.global_size), prod(launch.local_size)
    touched = sum(map(_size_bytes, {*launch.args}))
    arithmetic_us, memory_us = launch.flops / profile.tflops / 1e6, touched / profile.gb_per_s / 1e3
    return LaunchRow(
        *place,
        kernel=launch.kernel,
        entry=launch.entry,
        groups=items // group,
        work_items=items,
        group=group,
        flops=launch.flops,
        bytes=touched,
        bound="arithmetic" if arithmetic_us > memory_us else "memory",
        roofline_us=max(arithmetic_us, memory_us),
        busy=min(1.0, items // group / profile.compute_units),
    )


def _size_bytes(arg: Arg) -> int:
    if isinstance(arg, Const):
        return 0 if arg.data is None else arg.data.nbytes
    return arg.size_bytes if isinstance(arg, Operand | Scratch) else 0
