"""Variables whose newest values are on a device: single ones, and all those of a region."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from litecl.delegate.backend import fork
from litecl.delegate.backend.errors import no_host_memory
from litecl.delegate.backend.protocols import Device, Execution
from litecl.delegate.cl_op import Operand
from litecl.delegate.plan.steps import State
from litecl.delegate.report import Counters
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.graph import Array, Shape
from litecl.interpreter.run.variables import Held, VariableKey, Variables


class DeviceState:
    """Holds a variable in an execution's memory, at the place of ``operand`` in one of its two turns."""

    def __init__(self, execution: Execution, operand: Operand, device: Device, turned: bool) -> None:
        self._execution, self._operand, self._device, self._turned = execution, operand, device, turned
        self._view = execution.memory.view(operand, turned)

    @property
    def shape(self) -> Shape:
        """Return the shape of the value."""
        return self._operand.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the element type."""
        return self._operand.spec.dtype

    def fetch(self) -> Array:
        """Read the newest value. As no other copy exists, retry a failed read once.

        Raises DelegateError; the value is then still in device memory, or lost with the device.
        """
        if self._view is not None:
            return self._view.copy()
        if fork.lost(self._device):
            raise fork.lost_error(self._device.name)
        try:
            return self._read()
        except DelegateError:
            return self._read()

    def take(self, value: "Array | Held", other: "DeviceState") -> int:
        """Copy a value into this memory; return the bytes that come from the host.

        other: the same state of the same execution, in the other turn.
        """
        if value is other and self._view is None:
            self._execution.memory.copy(self._operand, self._turned)
            return 0
        seen = value._view if isinstance(value, DeviceState) else None
        array = value if isinstance(value, np.ndarray) else value.fetch() if seen is None else seen
        if self._view is not None:
            self._view[...] = array
        else:
            self._execution.memory.upload(self._operand, array, self._turned)
        return 0 if value is other else array.nbytes

    def _read(self) -> Array:
        spec = self._operand.spec
        doing = f"reading variable {spec.name!r}"
        try:
            value = np.empty(spec.static_shape, spec.dtype)
            self._execution.memory.download(self._operand, value, self._turned)
            self._execution.finish()
        except MemoryError as error:
            raise no_host_memory(doing) from error
        except DelegateError as error:
            raise type(error)(f"{doing}: {error}") from error
        return value


class NotAsPlanned(Exception):
    """Raised if a variable has no value, or not the planned type and shape. The CPU then runs the region."""


class States:
    """The variables of a region, double-buffered: a run reads one place and writes the other, and then they swap.

    Variables that no run changes have one place, and also stay in the store. turned: which of the two places is read.
    seen: the store's ``changes`` when all states were last in the places to read.
    """

    def __init__(self, execution: Execution, states: Sequence[State], device: Device) -> None:
        self._execution, self._states, self.turned = execution, states, False
        self._holders = [
            [DeviceState(execution, state.before, device, turned and state.after is not None) for state in states]
            for turned in (False, True)
        ]
        self._changed = [
            {s.key: holder for s, holder in zip(states, holders, strict=True) if s.after is not None}
            for holders in self._holders
        ]
        self.seen = -1
        self._uploaded: dict[VariableKey, Array] = {}

    def __len__(self) -> int:
        return len(self._states)

    def restore(self, variables: Variables, counters: Counters) -> None:
        """Put every state where a run reads it. Raises NotAsPlanned if a value doesn't fit."""
        if self._changed[0]:
            self._execution.turn(self.turned)
        if variables.unchanged(self.seen):
            return
        here, there = self._holders[self.turned], self._holders[not self.turned]
        for state, *holders in zip(self._states, here, there, strict=True):
            variables.keep(state.key, holders)
            if not variables.held_by(state.key, holders[0]):
                counters.bytes_to_device += self._take(state, holders[0], holders[1], variables)
        self.seen = variables.changes

    def _take(self, state: State, here: DeviceState, there: DeviceState, variables: Variables) -> int:
        """Copy a state to where it is read, from the store or its other place; return the bytes from the host."""
        key, spec = state.key, state.before.spec
        if variables.newest(key) is None and isinstance(key, tuple):
            variables.get(key, spec)
        value = variables.newest(key)
        if not variables.fits(key, spec) or (value is None and state.read):
            raise NotAsPlanned
        if value is None or value is self._uploaded.get(key):
            return 0
        copied = here.take(value, there)
        if value is there:
            variables.move({key: here})
        elif state.after is None and isinstance(value, np.ndarray):  # a holder's content may change
            self._uploaded[key] = value
        return copied

    def forget(self) -> None:
        """Forget what a failed run copied."""
        self.seen = -1
        self._uploaded.clear()

    def keep(self, variables: Variables) -> None:
        """Tell the store that the last run wrote the newest values; swap the places.

        Nothing is called after ``Variables.update``, neither here nor by callers, so that no interrupt comes between.
        """
        if newest := self._changed[not self.turned]:
            variables.update(newest)
            self.turned = not self.turned
            self.seen = variables.changes
