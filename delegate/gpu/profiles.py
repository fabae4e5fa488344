"""A table of GPUs to plan for without having them."""

from collections.abc import Mapping

from litecl.delegate.gpu.properties import MATRIX_UNITS, Gpu
from litecl.interpreter.dataclass import dataclass


@dataclass(frozen=True)
class Profile:
    """A GPU to plan for: what a device of the kind reports, and the peaks that its data sheet names.

    product: the one that the figures are of. compute_units: as OpenCL counts them. tflops: float32, by the vector
    units; half_tflops: of halves. gb_per_s: of its memory. matrix_tflops: of halves with float32 sums, by the matrix
    units, without sparsity. launch_us: a launch after another one in the same queue, an estimate.
    """

    product: str
    gpu: Gpu
    compute_units: int
    local_mem_bytes: int
    tflops: float
    gb_per_s: float
    float64: bool = False
    max_work_group_size: int = 1024
    launch_us: float = 3.0
    matrix_tflops: float = 0.0
    half_tflops: float = 0.0

    @property
    def cores(self) -> int:
        """Return how many places for groups it has."""
        return self.gpu.cores(self.compute_units)


_KIB = 1024
_NVIDIA = Gpu("nvidia", 32, integer_dot=True, matrix=MATRIX_UNITS["mma"])  # its OpenCL does not report cl_khr_fp16

PROFILES: Mapping[str, Profile] = {
    "sm_80": Profile("NVIDIA A100 40 GB", _NVIDIA, 108, 48 * _KIB, 19.5, 1555, float64=True, matrix_tflops=312),
    "sm_90": Profile("NVIDIA H100 SXM", _NVIDIA, 132, 48 * _KIB, 66.9, 3350, float64=True, matrix_tflops=989),
    "gfx90a": Profile(
        "AMD Instinct MI210",
        Gpu("amd", 64, fp16=True, integer_dot=True, matrix=MATRIX_UNITS["mfma"]),
        *(104, 64 * _KIB, 22.6, 1638),
        float64=True,
        max_work_group_size=256,
        matrix_tflops=181,
    ),
    "gfx1100": Profile(
        "AMD Radeon RX 7900 XTX",
        Gpu("amd", 32, fp16=True, integer_dot=True, matrix=MATRIX_UNITS["wmma"]),
        *(48, 64 * _KIB, 61.4, 960),
        float64=True,
        max_work_group_size=256,
        matrix_tflops=122.8,
    ),
    "xe_lp": Profile(
        "Intel Iris Xe, 96 units",
        Gpu("intel", 8, fp16=True, integer_dot=True, integrated=True),
        *(96, 64 * _KIB, 2.1, 68),
        max_work_group_size=512,
        launch_us=10.0,
        half_tflops=4.2,
    ),
    "xe_hpg": Profile(
        "Intel Arc A770",
        Gpu("intel", 8, fp16=True, integer_dot=True, matrix=MATRIX_UNITS["dpas of 8"]),
        *(512, 64 * _KIB, 19.7, 560),
        matrix_tflops=137.6,
    ),
    "xe2_hpg": Profile(
        "Intel Arc B580",
        Gpu("intel", 16, fp16=True, integer_dot=True, matrix=MATRIX_UNITS["dpas of 16"]),
        *(160, 128 * _KIB, 14.6, 456),
        matrix_tflops=116.5,
    ),
    "xe_hpc": Profile(
        "Intel Data Center GPU Max 1100",
        Gpu("intel", 16, fp16=True, integer_dot=True, matrix=MATRIX_UNITS["dpas of 16"]),
        *(448, 128 * _KIB, 22.2, 1229),
        float64=True,
        matrix_tflops=352,
    ),
    "mali": Profile(
        "Arm Mali-G710 MC10",
        Gpu("arm", 16, fp16=True, integer_dot=True, integrated=True),
        *(10, 32 * _KIB, 1.1, 51),
        launch_us=20.0,
        half_tflops=2.2,
    ),
    "adreno": Profile(
        "Qualcomm Adreno 740",
        Gpu("qualcomm", 64, fp16=True, integer_dot=True, integrated=True),
        *(12, 32 * _KIB, 2.1, 67),
        launch_us=20.0,
        half_tflops=4.2,
    ),
}
"""GPUs by the name of their architecture."""
