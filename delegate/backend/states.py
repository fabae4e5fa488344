"""A variable tensor whose newest value is in device memory."""

import numpy as np

from litecl.delegate.backend import fork
from litecl.delegate.backend.errors import no_host_memory
from litecl.delegate.backend.protocols import Device, Execution
from litecl.delegate.cl_op import Operand
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.graph import Array


class DeviceState:
    """Holds a variable in an execution's memory, in ``operand``."""

    def __init__(self, execution: Execution, operand: Operand, device: Device) -> None:
        self._execution, self._operand, self._device = execution, operand, device
        self._view = execution.memory.view(operand)

    def fetch(self) -> Array:
        """Read the newest value, which exists nowhere else: a failed read is tried once more.

        Raises DelegateError, after which the value is still in device memory, or lost with the device.
        """
        if self._view is not None:
            return self._view.copy()
        if fork.lost(self._device.needs_threads):
            raise fork.lost_error(self._device.name)
        try:
            return self._read()
        except DelegateError:
            return self._read()

    def copy_to(self, other: "DeviceState") -> None:
        """Copy the value into the memory of another holder of the same variable in the same execution."""
        if self._view is not None and other._view is not None:
            other._view[...] = self._view
        else:
            self._execution.memory.copy(self._operand, other._operand)

    def write(self, value: Array) -> None:
        """Copy a value from the host into the memory."""
        if self._view is not None:
            self._view[...] = value
        else:
            self._execution.memory.upload(self._operand, value)

    def _read(self) -> Array:
        spec = self._operand.spec
        doing = f"reading variable {spec.name!r}"
        try:
            value = np.empty(spec.static_shape, spec.dtype)
            self._execution.memory.download(self._operand, value)
            self._execution.finish()
        except MemoryError as error:
            raise no_host_memory(doing) from error
        except DelegateError as error:
            raise type(error)(f"{doing}: {error}") from error
        return value
