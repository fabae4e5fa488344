"""The device memory of a plan."""

import copy
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyopencl as cl

from litecl.delegate.backend.layout import Layout, part_of
from litecl.delegate.cl_op import Arg, Local, Operand
from litecl.delegate.opencl.devices.device import Device
from litecl.delegate.opencl.errors import FAULTS, RUNNING, typed
from litecl.delegate.opencl.memory.shared import host_memory
from litecl.delegate.opencl.memory.transfers import Copies, Mappings, Transfers
from litecl.delegate.opencl.memory.user_buffer import CLUserBuffer
from litecl.delegate.plan.memory import align
from litecl.delegate.plan.plan import Plan
from litecl.delegate.plan.region_tables import RegionSize, Shift
from litecl.interpreter.graph import Array

_HOSTS = "the host's memory"  # its key in ``Memory.own``


class Memory:
    """An arena for what changes, and one buffer for all constants.

    host: the host's view of the arena, if they share memory. own: the buffers used instead of the arena: an integrated
    GPU has inputs and outputs in host memory, which kernels may access more slowly than the arena. users: those of them
    that may be replaced: the user's, and those of operands that lie apart (``plan.apart``), which share one until
    ``use`` gives each its own. under_way: events of transfers, kept until the queue has finished, as dropping one waits
    with the GIL held.
    """

    def __init__(self, plan: Plan, device: Device) -> None:
        self._plan, self._device, self._turns = plan, device, plan.turns
        self._layout = Layout(plan, device.alignment)
        self.under_way: list[Any] = []
        self.own: dict[Any, CLUserBuffer] = {}
        self.users: dict[Any, CLUserBuffer] = {}
        self._within: dict[Any, tuple[Any, int]] = {}  # operands in own buffers: the buffer's key, and the offset
        self._seen: Array | None = None
        self.arena, self.host = device.shared_buffer(plan.arena.size_bytes)
        if plan.apart:
            room = CLUserBuffer(device.buffer(max(operand.size_bytes for operand in plan.apart)))
            self.use(dict.fromkeys(sorted(plan.apart, key=[*plan.inputs].index), room))
        if device.is_integrated:
            self._place_with_the_host()
        self.constant_bytes = self._layout.constant_bytes
        self.constants = device.buffer(self.constant_bytes)
        self._send()
        named = [(operand, False) for operand in (*plan.inputs, *plan.outputs)]
        named += [(state.before, turned) for state in plan.states for turned in (False, True)]
        copied = {key: None for key in named if self.view(*key) is None}
        stays = [key for key in copied if self._stays(key[0])]
        self._copied = {key: self.argument(key[0], self._swapped(key[1])) for key in stays}
        sizes = ((key, key[0].spec.size * key[0].spec.dtype.itemsize) for key in copied)
        self._transfers: Transfers = (
            Mappings(device, self.under_way)
            if device.is_integrated
            else Copies(device, self.under_way, sizes if device.has_own_memory else ())
        )

    def with_own(self, buffers: Mapping[Operand, CLUserBuffer]) -> "Memory":
        """Return a copy with some operands in the user's buffers."""
        other = copy.copy(self)
        other.use(buffers)
        return other

    def use(self, buffers: Mapping[Operand, CLUserBuffer]) -> None:
        """Place operands in the user's buffers: the same ones as before, or any if there were none."""
        self.users = dict(buffers)
        self.own = {**self.own, **buffers}
        self._within = {**self._within, **{root: (root, 0) for root in buffers}}

    def fill(self, operand: Operand, source: CLUserBuffer) -> None:
        """Queue a copy of a buffer to an operand's memory."""
        try:
            part = source.part(0, operand.size_bytes)
            self.under_way.append(cl.enqueue_copy(self._device.queue, self.buffer(operand), part))
        except FAULTS as error:
            raise typed(error, f"copying {operand.spec.name!r}") from error

    @property
    def own_shifts(self) -> range:
        """Return the indices of own buffers' shifts in region.cl, after those of all sets."""
        first = Shift.SETS + 2 * (self._turns + 1)
        return range(first, first + len(self.own))

    def region_address(self, arg: Arg) -> int:
        """Return an argument's address for region.cl (``Layout.address``), with a shift if it has its own buffer."""
        root, start = self._layout.root(arg)
        if root not in self._within:
            return self._layout.address(arg)
        key, at = self._within[root]
        return (at + start) | self.own_shifts[[*self.own].index(key)] << RegionSize.OFFSET_BITS

    def argument(self, arg: Arg, swapped: Collection[int] = ()) -> Any:
        """Return a kernel's argument: a scalar, local memory or a sub-buffer. swapped: loops with swapped sets."""
        if isinstance(arg, np.generic):
            return arg
        if isinstance(arg, Local):
            return cl.LocalMemory(arg.size_bytes)
        root, _ = self._layout.root(arg)
        if root in self._layout.constants:
            offset, size = self._layout.constants[root]
            return self.constants.get_sub_region(offset, max(1, size))
        return self.buffer(arg, swapped)

    def buffer(self, item: Any, swapped: Collection[int] = ()) -> Any:
        """Return the sub-buffer of an operand or scratch memory, in the arena or its own buffer."""
        root, start = self._layout.root(item)
        if root in self._within:
            key, at = self._within[root]
            return self.own[key].part(at + start, max(1, item.size_bytes))
        return self.arena.get_sub_region(self._layout.start(root, swapped) + start, max(1, item.size_bytes))

    def view(self, operand: Operand, turned: bool = False) -> Array | None:
        """Return the host's view of an operand's memory; None if it isn't shared."""
        root, offset = self._layout.root(operand)
        if self._seen is not None and root in self._within:
            return part_of(self._seen, self._within[root][1] + offset, operand)
        if self.host is None or (root not in self._plan.arena.offsets and root not in self._plan.slots):
            return None
        start = self._layout.start(root, self._swapped(turned)) + offset
        return part_of(self.host, start, operand)

    def upload(self, operand: Operand, value: Array, turned: bool = False) -> None:
        """Move an array from the host, at once or by queueing a copy."""
        key = operand, turned
        try:
            self._transfers.upload(key, self._copied.get(key) or self.argument(operand), value)
        except FAULTS as error:
            raise typed(error, f"transferring {operand.spec.name!r}") from error

    def download(self, operand: Operand, into: Array, turned: bool = False) -> None:
        """Queue a transfer of an operand to the host; ``landed`` completes it."""
        key = operand, turned
        try:
            self._transfers.download(key, self._copied.get(key) or self.argument(operand), into)
        except FAULTS as error:
            raise typed(error, f"transferring {operand.spec.name!r}") from error

    def landed(self) -> None:
        """Complete the transfers that the queue has finished."""
        self.under_way.clear()
        try:
            self._transfers.land()
        except FAULTS as error:
            raise typed(error, RUNNING) from error

    def copy(self, state: Operand, turned: bool) -> None:
        """Queue a copy of a state from the other set."""
        try:
            cl.enqueue_copy(self._device.queue, self._copied[state, turned], self._copied[state, not turned])
        except FAULTS as error:
            raise typed(error, f"copying {state.spec.name!r}") from error

    def is_own(self, arg: Arg) -> bool:
        """Return whether an argument lies in a replaceable buffer (``users``)."""
        return self._layout.root(arg)[0] in self.users

    def _stays(self, operand: Operand) -> bool:
        """Return whether an operand's place is fixed: it doesn't lie apart."""
        return self._layout.root(operand)[0] not in self._plan.apart

    def _swapped(self, turned: bool) -> Collection[int]:
        return (self._turns,) if turned else ()

    def loops_of(self, arg: Arg) -> set[int]:
        """Return the number of the loop whose sets contain an argument, as a set; empty if none does."""
        root, _ = self._layout.root(arg)
        return {self._plan.slots[root].loop} if root in self._plan.slots else set()

    def _place_with_the_host(self) -> None:
        """Place inputs and outputs in host memory, except for those in sets of loops."""
        end = 0
        for operand in (*self._plan.inputs, *self._plan.outputs):
            root, _ = self._layout.root(operand)
            if root in self._plan.arena.offsets and root not in self._within:
                self._within[root] = _HOSTS, end
                end = align(end + max(1, root.size_bytes), self._device.alignment)
        if end:
            buffer, self._seen = host_memory(self._device, end)
            self.own[_HOSTS] = CLUserBuffer(buffer)

    def _send(self) -> None:
        """Copy constants to the device."""
        for data, offset in self._layout.released():
            if data.nbytes:  # OpenCL before 2.1 rejects empty copies
                cl.enqueue_copy(self._device.queue, self.constants, np.ascontiguousarray(data), dst_offset=offset)
