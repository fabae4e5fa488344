"""A CPU that stands in for a GPU: replacements for parts of an OpenCL device."""

from typing import Any

from litecl.delegate.cl_op import Target
from litecl.delegate.gpu.target import GpuTarget
from litecl.delegate.opencl.devices import device
from litecl.delegate.opencl.devices.programs import Programs

# PoCL makes a loop over the work-items of a group of what is between two barriers. Where nothing but a branch follows a
# barrier, because what it depends on was moved out of a loop around both, PoCL decides it once for the whole group, by
# its last work-item (pocl/pocl, pull request 2281). So something stands between them: it emits no code and orders no
# accesses to memory, and what is wrong with a kernel stays wrong. Newer PoCLs crash on assembly in such groups.
_BARRIER = """#if defined(LITECL_ASSEMBLY) && __clang_major__ < 16
#define barrier(flags) do { barrier(flags); __asm__ volatile("" : : "i"(0)); } while (0)
#endif
"""


class _Programs(Programs):
    def _kernel(self, name: str, entry: str, source: str, options: tuple[str, ...]) -> Any:
        return super()._kernel(name, entry, _BARRIER + source, options)


def gpu_like(opened: Any, target: Target) -> GpuTarget:
    """Return a GPU with as many units, as large groups and as much memory for them as an opened device has."""
    if isinstance(target, GpuTarget):
        return target
    limits = {"max_work_group_size": opened.max_work_group_size, "local_mem_bytes": opened.local_mem_size}
    return GpuTarget(4, target.compute_units, target.float64, **limits)


def as_gpu() -> dict[str, Any]:
    """Return replacements for attributes of ``delegate/opencl/devices/device.py`` with which a CPU passes for a GPU."""
    real = device.target_of
    return {
        "target_of": lambda opened, *rest: gpu_like(opened, real(opened, *rest)),
        "Programs": _Programs,
    }
