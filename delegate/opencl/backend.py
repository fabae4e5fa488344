"""The OpenCL back end: every device of every platform, per ``delegate/backend/protocols.py``."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyopencl as cl

from litecl.delegate.backend.protocols import Description, FoundDevice
from litecl.delegate.backend.stack import on_ample_stack
from litecl.delegate.cl_op import Target
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.opencl.devices import device as opencl
from litecl.delegate.opencl.errors import RUNNING, typed_errors
from litecl.delegate.opencl.identity import identity
from litecl.delegate.opencl.memory.shared import host_memory
from litecl.delegate.opencl.memory.user_buffer import CLUserBuffer
from litecl.delegate.opencl.runs.execution import CLExecution
from litecl.delegate.plan.plan import Plan
from litecl.delegate.tuning import Demand, Tuning
from litecl.interpreter.buffers import Buffer
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import DeviceNotFound

_TYPES = {cl.device_type.CPU: "CPU", cl.device_type.GPU: "GPU", cl.device_type.ACCELERATOR: "accelerator"}

_ASKING = typed_errors("asking a device")


@dataclass(frozen=True)
class CLFoundDevice:
    """A pyopencl Device that is not open yet. context: the user's context to use, if any."""

    device: Any
    context: Any = None

    needs_runtime = True

    @property
    @_ASKING
    def name(self) -> str:
        """Return the device's name."""
        return str(self.device.name)

    @property
    @_ASKING
    def identity(self) -> Sequence[str]:
        """See ``FoundDevice``."""
        return identity(self.device)

    @property
    @_ASKING
    def needs_threads(self) -> bool:
        """See ``FoundDevice``."""
        return opencl.needs_threads(self.device)

    @_ASKING
    def describe(self) -> Description:
        """Return its description for people."""
        device = self.device
        return Description(
            platform=device.platform.name,
            driver=device.driver_version,
            type=next((name for bit, name in _TYPES.items() if device.type & bit), "other"),
            compute_units=device.max_compute_units,
            memory_bytes=device.global_mem_size,
            max_buffer_bytes=device.max_mem_alloc_size,
            version=device.version,
            platform_version=device.platform.version,
        )

    @_ASKING
    def target(self, directory: Path | None = None) -> Target:
        """See ``FoundDevice``."""
        return opencl.target_of(self.device, directory)

    def open(self, *, profile: bool, directory: Path | None) -> "CLDevice":
        """See ``FoundDevice``."""
        return CLDevice(self.device, profile, directory, self.context)


class CLDevice(opencl.Device):
    """An open device, to which plans are bound."""

    @property
    def cache_hits(self) -> int:
        """Return the number of programs loaded rather than built."""
        return self.programs.cache_hits

    @on_ample_stack
    def bind(self, plan: Plan, options: CLOptions) -> CLExecution:
        """See ``Device`` in ``delegate/backend/protocols.py``."""
        return CLExecution(plan, self, options)

    @on_ample_stack
    def new_buffer(self, size_bytes: int) -> CLUserBuffer:
        """See ``KeepsTensors``."""
        return CLUserBuffer(*(host_memory(self, size_bytes) if self.is_integrated else self.shared_buffer(size_bytes)))

    def takes(self, buffer: Buffer) -> bool:
        """See ``KeepsTensors``."""
        return isinstance(buffer, CLUserBuffer) and bool(buffer.buffer.context == self.context)

    @typed_errors(RUNNING)
    def check(self) -> None:
        """Raise DelegateError if PoCL has no disk space for the kernels that it compiles when they run."""
        self.programs.check_room()

    @on_ample_stack
    def save(self) -> None:
        """Write new binaries to the cache."""
        self.programs.save()


def _platform(device: Any) -> str:
    """Return a platform's name and version in lower case, such as "portable computing language ... pocl 3.0"."""
    return f"{device.platform.name} {device.platform.version}".lower()


@dataclass(frozen=True)
class OpenCL:
    """The back end. gpus: whether for GPUs alone or for all other devices."""

    gpus: bool

    def devices(self, directory: Path | None = None) -> list[FoundDevice]:
        """Return the back end's devices on every platform. Raises DelegateError if OpenCL is missing or lost."""
        return [CLFoundDevice(device) for device in opencl.devices(gpus=self.gpus)]

    def candidates(
        self,
        demand: Demand,
        tuned: Callable[[FoundDevice], Tuning],
        directory: Path | None = None,
        platform: str = "",
    ) -> Iterator[FoundDevice]:
        """Yield the device that suits a model, then those to try if it cannot be used."""
        with typed_errors("choosing a device"):
            own = lambda device: tuned(CLFoundDevice(device))  # noqa: E731
            devices = [device for device in opencl.devices(gpus=self.gpus) if platform.lower() in _platform(device)]
            for choice in opencl.gpus(devices) if self.gpus else opencl.processors(devices, demand, own, directory):
                yield CLFoundDevice(choice)

    def of(self, device: object) -> FoundDevice | None:
        """Return the device for a pyopencl Device, or for a Context of one; None for any other object."""
        if isinstance(device, cl.Device):
            return CLFoundDevice(device)
        if not isinstance(device, cl.Context):
            return None
        if len(device.devices) != 1:
            raise DeviceNotFound(f"device: expected a context of one device, got one of {len(device.devices)}")
        return CLFoundDevice(device.devices[0], device)

    def buffer(self, handle: object) -> Buffer | None:
        """Return the buffer for a pyopencl Buffer; None for any other object."""
        return CLUserBuffer(handle) if isinstance(handle, cl.Buffer) else None
