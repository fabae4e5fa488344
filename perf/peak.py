"""Measures a device's peaks: multiply-adds of floats and integers, and memory bandwidth."""

import time
from collections.abc import Hashable
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from litecl.delegate.backend.protocols import Device, Memory
from litecl.delegate.cl_op import Launch, Operand, Scratch, Target
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.claim.region import Region
from litecl.delegate.plan.memory import Arena, align
from litecl.delegate.plan.plan import Plan
from litecl.delegate.plan.steps import Work
from litecl.delegate.report import Counters
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.schema import TensorType

READ_BYTES = (256 << 10, 4 << 20, 256 << 20)
"""Memory sizes for measuring bandwidth: within a core's caches, within shared caches, and beyond."""
INTEGERS = {"int8": 4, "int16": 2}
"""Kinds of integer products that kernels sum, with the number per vector element."""
_STEPS = 20_000
_RUNS = 12
_READ_AT_ONCE = 32 << 20  # least bytes per launch: smaller memory is read repeatedly
_FLOAT_BYTES = 4


class Peak(IntEnum):
    """CHAINS: independent multiply-adds in flight in peak.cl; STREAMS: independent reads."""

    CHAINS = 12
    STREAMS = 8


def flops(device: Device) -> float:
    """Return a device's peak float32 operations per second. A multiply-add counts as two."""
    launch = _multiply(device.target)
    return launch.flops / _least_s(device, launch)


def operations(device: Device, kind: str) -> float:
    """Return a device's peak operations per second. A multiply-add counts as two.

    kind: "float32", or one of ``INTEGERS``, multiplied as the device's kernels do.
    """
    if kind == "float32":
        return flops(device)
    launch = _multiply_integers(device.target, kind)
    return launch.flops / _least_s(device, launch)


def bandwidth(device: Device, size_bytes: int) -> float:
    """Return a device's peak read bandwidth in bytes per second, for memory of a size, with all compute units."""
    launch, read = _read(device.target, size_bytes)
    return read / _least_s(device, launch)


def _least_s(device: Device, launch: Launch) -> float:
    plan = _plan(launch, device.alignment)
    execution = device.bind(plan, CLOptions())
    for operand in plan.inputs:  # unwritten memory may all map to one page
        _fill(execution.memory, operand)
    execution.finish()
    times_s = []
    for _ in range(_RUNS):
        start_s = time.perf_counter()
        execution.run(Counters())
        execution.finish()
        times_s.append(time.perf_counter() - start_s)
    return min(times_s)


def _fill(memory: Memory, operand: Operand) -> None:
    view = memory.view(operand)
    if view is None:
        memory.upload(operand, np.ones(operand.shape, np.float32))
    else:
        view[...] = 1


def _multiply(target: Target) -> Launch:
    items, steps = _work(target)
    args = Scratch(4 * items), np.int32(steps), np.float32(0.5), np.float32(1.0)
    return Launch("peak", "peak", args, (items,), flops=2 * items * steps * Peak.CHAINS * target.vector_width)


def _multiply_integers(target: Target, kind: str) -> Launch:
    items, steps = _work(target)
    count = 2 * items * steps * Peak.CHAINS * target.vector_width * INTEGERS[kind]
    args = Scratch(4 * items), np.int32(steps), np.int32(0x01020304)
    defines = {"WORDS": 1} if kind == "int16" else {}
    return Launch("peak_integers", "peak_integers", args, (items,), defines=defines, flops=count)


class _Items(NamedTuple):
    """Work-items per compute unit. multiply: for arithmetic, with ``steps`` each. read: for bandwidth. side_by_side:
    whether neighbours read adjacent memory.
    """

    multiply: int
    steps: int
    read: int
    side_by_side: bool


def _items(target: Target) -> _Items:
    if target.memory == "host":
        return _Items(64, _STEPS, 4, False)
    return _Items(4096, _STEPS // 10, 1024, True)


def _work(target: Target) -> tuple[int, int]:
    """Return the number of work-items that multiply, and the steps of each."""
    items = _items(target)
    return target.compute_units * items.multiply, items.steps


def _read(target: Target, size_bytes: int) -> tuple[Launch, int]:
    """Return a launch that reads memory of a size, and its total bytes. On a GPU, neighbours read adjacent memory."""
    of_unit = _items(target)
    items = target.compute_units * of_unit.read
    vector_bytes = _FLOAT_BYTES * target.vector_width
    steps = max(Peak.STREAMS, size_bytes // (vector_bytes * items) // Peak.STREAMS * Peak.STREAMS)
    size = vector_bytes * items * steps
    times = max(1, _READ_AT_ONCE // size)
    own, after = (1, items) if of_unit.side_by_side else (steps, 1)
    x = Operand(TensorSpec(TensorType.FLOAT32, (size // _FLOAT_BYTES,)))
    numbers = (np.int32(n) for n in (steps, own, after, times))
    return Launch("peak", "read_all", (x, Scratch(_FLOAT_BYTES * items), *numbers), (items,)), size * times


def _plan(launch: Launch, alignment: int) -> Plan:
    """Return a plan of one launch. Its operands are inputs, its other memory is scratch."""
    work, end = Work(0, launch), 0
    inputs = tuple(arg for arg in launch.args if isinstance(arg, Operand))
    scratch = tuple(arg for arg in launch.args if isinstance(arg, Scratch))
    offsets: dict[Hashable, int] = {}
    items: tuple[Operand | Scratch, ...] = (*inputs, *scratch)
    for item in items:
        offsets[item] = end
        end = align(end + item.size_bytes, alignment)
    return Plan(Region(0, (), (), ()), (work,), (work,), inputs, (), (), {}, {}, (), Arena(offsets, end))
