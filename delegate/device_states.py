"""Variable tensors whose newest value lies in device memory."""


import numpy as np
import pyopencl as cl

from litecl.delegate import fork
from litecl.delegate.device import Device, typed_errors
from litecl.delegate.device_memory import Memory
from litecl.delegate.scope import State
from litecl.interpreter.graph import Array


class DeviceState:
    """A state of a region: memory for the value that a run reads, ``before``, and for the one that it leaves.

    view: ``before`` as the host sees it, None where it does not.
    """

    def __init__(self, device: Device, memory: Memory, state: State) -> None:
        self._device = device
        self.spec = state.before.spec
        self.before, self._after = memory.buffer(state.before), memory.buffer(state.after)
        self.view, self._view_after = memory.view(state.before), memory.view(state.after)

    def fetch(self) -> Array:
        """Reads the newest value back. Raises DelegateError where it was lost with the device."""
        if self.view is not None:
            return self.view.copy()
        if fork.lost(self._device.needs_threads):
            raise fork.lost_error(self._device.name)
        value = np.empty(self.spec.static_shape, self.spec.dtype)
        with typed_errors(f"reading variable {self.spec.name!r}"):
            cl.enqueue_copy(self._device.queue, value, self.before, is_blocking=True)
        return value

    def queue_update(self) -> None:
        """Queues that the new value becomes the one that is read, where the host does not see them."""
        if self.view is None:
            cl.enqueue_copy(self._device.queue, self.before, self._after)

    def update(self) -> None:
        """Does it where the host sees them, once the run is done."""
        if self.view is not None and self._view_after is not None:
            self.view[...] = self._view_after
