"""Chooses a compiled model's delegate by the accelerators that it may use."""

from typing import Any

from litecl.delegate import CLDelegate
from litecl.delegate.devices import NATIVE, devices, gpus
from litecl.delegate.opencl_drivers import may_have_gpus
from litecl.hardware_accelerator import HardwareAccelerator
from litecl.interpreter.errors import ArgumentError, DeviceNotFound, ModelError
from litecl.options import CpuKernelMode, Options


def resolved(options: Options | None, accelerators: Any) -> Options:
    """Return the options from either argument. Raises ModelError if both are given."""
    if options is None:
        return Options(HardwareAccelerator.CPU if accelerators is None else _flags(accelerators))
    if accelerators is not None:
        raise ModelError("Pass either options or hardware_accel, not both.")
    return options


def delegates(options: Options, context: Any = None) -> list[CLDelegate]:
    """Return the delegate for the options, if any. Raises DeviceNotFound for a GPU or NPU that doesn't exist.

    context: the user's; its device is then used, whatever its type.
    """
    wanted, threads = _flags(options.hardware_accelerators), options.cpu_options.num_threads or None
    on_device = options.cpu_options.kernel_mode in (None, CpuKernelMode.DELEGATE)
    if context is not None and wanted & (HardwareAccelerator.GPU | HardwareAccelerator.CPU) and on_device:
        return [CLDelegate(context, num_threads=threads)]
    if wanted & HardwareAccelerator.GPU and (devices := gpus()):
        return [CLDelegate(devices[0])]
    if not wanted & HardwareAccelerator.CPU:
        raise DeviceNotFound(f"no device is a {wanted.name}; add HardwareAccelerator.CPU to fall back to the CPU")
    return _on_processor(threads) if on_device else []


def _on_processor(threads: int | None) -> list[CLDelegate]:
    """Return the CPU's delegate: the default one without a GPU; else the native back end's, or OpenCL's; none if all
    devices are GPUs.
    """
    if not may_have_gpus() or not gpus():
        return [CLDelegate(num_threads=threads)]
    others = [device for device in devices() if device.describe().type != "GPU"]
    others.sort(key=lambda device: device.name != NATIVE)
    return [CLDelegate(NATIVE if device.name == NATIVE else device, num_threads=threads) for device in others[:1]]


def _flags(given: Any) -> HardwareAccelerator:
    """Convert to flags. Raises ArgumentError for anything else, ModelError for no flag at all."""
    try:
        chosen = HardwareAccelerator(int(given))
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"hardware_accel: expected a HardwareAccelerator, got {given!r}") from error
    if not chosen:
        raise ModelError("hardware_accel: expected CPU, GPU or both, got none")
    return chosen
