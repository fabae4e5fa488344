"""The cost of an invoke: launches, waits, and bytes that are copied."""

from dataclasses import field

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.delegation import Moved

_ENDED = -(1 << 62)  # no invoke has this number


@dataclass
class Counters:
    """The cost of the last invoke, counted while it runs.

    bytes_to_device, bytes_to_host: copied for regions. bytes_on_device: copied between tensors that stay on the device.
    bytes_given, bytes_returned: copied from the arguments of a signature call, and to its results.
    """

    kernel_launches: int = 0
    host_syncs: int = 0
    bytes_to_device: int = 0
    bytes_to_host: int = 0
    bytes_on_device: int = 0
    bytes_given: int = 0
    bytes_returned: int = 0
    invocation: int = field(default=-1, repr=False)

    @property
    def any(self) -> bool:
        """Return whether the invoke ran a region, which always launches or waits."""
        return bool(self.kernel_launches or self.host_syncs)

    def begin(self, invocation: int) -> None:
        """Start from zero for a new invoke; keep counting the same one."""
        if invocation != self.invocation:
            self.clear()
            self.invocation = invocation

    def end(self, moved: Moved) -> None:
        """Add the copies of a signature call; the next invoke starts from zero."""
        self.bytes_given, self.bytes_returned, self.invocation = moved.given, moved.returned, _ENDED
        self.bytes_on_device += moved.within

    def clear(self) -> None:
        """Start from zero."""
        self.kernel_launches = self.host_syncs = self.bytes_to_device = self.bytes_to_host = 0
        self.bytes_on_device = self.bytes_given = self.bytes_returned = 0
