"""LiteRT's options for a ``CompiledModel``. Options that mean nothing here are accepted and ignored."""

import enum
from dataclasses import dataclass, field

from litecl.hardware_accelerator import HardwareAccelerator


class CpuKernelMode(enum.IntEnum):
    """Which kernels run on the CPU: OpenCL's (DELEGATE, XNNPACK) or the numpy interpreter's."""

    DELEGATE = 0
    XNNPACK = 0  # LiteRT's older name
    REFERENCE = 1
    BUILTIN = 2


@dataclass
class CpuOptions:
    """Options for the CPU. XNNPACK and YNNPACK options are ignored.

    num_threads: for the OpenCL device and numpy; 0 lets litecl decide. kernel_mode: None is DELEGATE.
    """

    num_threads: int = 0
    kernel_mode: CpuKernelMode | None = None
    enable_ynnpack: bool = False
    xnnpack_flags: int | None = None
    xnnpack_weight_cache_path: str = ""


@dataclass
class GpuOptions:
    """Options for the GPU. All are ignored: litecl computes in float32 as with ``enforce_f32``."""

    enforce_f32: bool = False
    constant_tensor_sharing: bool = False
    infinite_float_capping: bool = False
    benchmark_mode: bool = False
    allow_src_quantized_fc_conv_ops: bool = False
    hint_waiting_for_completion: bool = False


@dataclass
class Options:
    """The options of a ``CompiledModel``, without LiteRT's options for vendors' NPUs."""

    hardware_accelerators: HardwareAccelerator = HardwareAccelerator.CPU
    cpu_options: CpuOptions = field(default_factory=CpuOptions)
    gpu_options: GpuOptions = field(default_factory=GpuOptions)

    def __post_init__(self) -> None:
        self.cpu_options = self.cpu_options or CpuOptions()
        self.gpu_options = self.gpu_options or GpuOptions()

    @classmethod
    def create(cls) -> "Options":
        """Return the defaults."""
        return cls()
