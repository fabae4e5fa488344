"""The state store: variable tensors and resources, which outlive an invoke and an executor."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, Shape, TensorSpec
from litecl.interpreter.schema import TensorType

VariableKey = tuple[int, int] | str
"""A variable tensor by its subgraph and number, or a resource variable by its name."""


class Held(Protocol):
    """A variable whose newest value is elsewhere, on a device."""

    @property
    def shape(self) -> Shape: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    def fetch(self) -> Array:
        """Return the newest value."""


class Variables:
    """The state store: variable tensors by (subgraph, tensor), resource variables by name.

    resources: other things kept by name: tables, and marks of completed one-time work. changes: how often variables
    were stored.
    """

    def __init__(self, budget: limits.Budget | None = None) -> None:
        self._budget = budget
        self._values: dict[VariableKey, Array | Held] = {}
        self._before: dict[VariableKey, Array | Held | None] | None = None  # in an invoke, the old values of changes
        self._resources_before: dict[str, Any] = {}
        self.resources: dict[str, Any] = {}
        self.changes = 0

    def begin(self) -> None:
        """Remember the old values of whatever changes from now on: an invoke starts so, and ends in ``commit`` or
        ``rollback``.
        """
        self.rollback()  # in case an interrupt left an earlier one unfinished
        self._before, self._resources_before = {}, dict(self.resources)

    def commit(self) -> None:
        """Forget the old values. An invoke does this last, since no interrupt can come later."""
        if self._budget is not None:
            for value in (self._before or {}).values():
                self._count(value, None)
        self._before = None

    def rollback(self) -> None:
        """Restore variables and resources as of ``begin``, if an invoke has begun."""
        if self._before is None:
            return
        before = self._before
        for key in before:
            self._count(self._values.get(key), None)
        values = {key: value for key, value in {**self._values, **before}.items() if value is not None}
        self._values, self.resources, self._before = values, self._resources_before, None
        self.changes += 1

    def get(self, key: VariableKey, spec: TensorSpec) -> Array:
        """Return the value of a variable tensor; initially zeros, or INT8's zero point, as in TFLite."""
        value = self._on_host(key)
        if value is None:
            limits.check(spec)
            limits.temporary(f"variable {spec.name!r}", spec.static_shape, spec.dtype.itemsize)
            value = np.full(spec.static_shape, _initial(spec), spec.dtype)
            self.move({key: value})
        return value

    def read(self, name: str) -> Array:
        """Return the value of a resource variable. Raises ModelError if it was never assigned."""
        value = self._on_host(name)
        if value is None:
            raise ModelError(f"variable {name!r} was never assigned")
        return value

    def _on_host(self, key: VariableKey) -> Array | None:
        """Return a value, if there is one, after moving it to the host."""
        value = self._values.get(key)
        if value is None or isinstance(value, np.ndarray):
            return value
        array = value.fetch()
        self.move({key: array})
        return array

    def set(self, key: VariableKey, value: Array | Held) -> None:
        """Store a value, or its holder."""
        self.update({key: value})

    def update(self, values: Mapping[VariableKey, Array | Held]) -> None:
        """Store several values at once: an interrupt sees all of them stored, or none.

        Between invokes no call follows the store. Python handles signals at function calls and in loops: so it handles
        none until the caller of this function calls another.
        """
        if self._before is not None or self._budget is not None:
            self._remember(values)
        if self._before is None:
            self._values = {**self._values, **values}
        else:
            self._values.update(values)  # an interrupt leads to ``rollback``
        self.changes += 1

    def _remember(self, values: Mapping[VariableKey, Array | Held]) -> None:
        """Count values that are about to be stored, and during an invoke keep the values that they replace."""
        for key, value in values.items():
            before = self._values.get(key)
            if self._before is None or key in self._before:
                self._count(before, value)
            else:  # the old value stays alive
                self._before[key] = before
                self._count(None, value)

    def move(self, values: Mapping[VariableKey, Array | Held]) -> None:
        """Store the same values elsewhere, or record their new holder."""
        for key, value in values.items():
            self._count(self._values.get(key), value)
        self._values.update(values)
        self.changes += 1

    def keep(self, key: VariableKey, holders: Sequence[Held]) -> None:
        """Fetch the values that ``rollback`` would need from holders whose memory is about to be overwritten."""
        for holder in holders:
            if self._before is not None and self._before.get(key) is holder:
                value = holder.fetch()
                self._count(None, value)
                self._before[key] = value

    def _count(self, before: Array | Held | None, now: Array | Held | None) -> None:
        """Count a value as alive in place of another one, if memory is limited."""
        if self._budget is not None and isinstance(now, np.ndarray):
            self._budget.hold(now)
        if self._budget is not None and isinstance(before, np.ndarray):
            self._budget.drop(before)

    def newest(self, key: VariableKey) -> Array | Held | None:
        """Return the value of a variable, or its holder; None if it has none yet."""
        return self._values.get(key)

    def unchanged(self, since: int) -> bool:
        """Return whether nothing was stored since ``changes`` had this value, nor in this invoke."""
        return self.changes == since and not self._before

    def held_by(self, key: VariableKey, holder: Held) -> bool:
        """Return whether ``holder`` still holds the newest value of a variable."""
        return self._values.get(key) is holder

    def fits(self, key: VariableKey, spec: TensorSpec) -> bool:
        """Return whether a variable has no value yet, or one of the type and shape of a spec."""
        value = self._values.get(key)
        return value is None or (value.shape == spec.shape and value.dtype == spec.dtype)

    def reset(self, *, resources: bool = False) -> None:
        """Reset every variable tensor to its initial value; with ``resources`` these too, as if it had not run."""
        kept: dict[VariableKey, Array | Held] = {
            key: value for key, value in self._values.items() if isinstance(key, str) and not resources
        }
        for key, value in self._values.items():
            if key not in kept:
                self._count(value, None)
        done = {} if resources else self.resources
        self._values, self.resources = kept, done
        self.changes += 1


def _initial(spec: TensorSpec) -> int:
    if spec.type != TensorType.INT8 or spec.quantization is None or not spec.quantization.zero_point.size:
        return 0
    return int(spec.quantization.zero_point.reshape(-1)[0])
