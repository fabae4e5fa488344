"""How fast a GPU is, by which a lowering chooses between ways that differ in arithmetic, memory and launches."""

from math import log

from litecl.delegate.gpu.profiles import PROFILES, Profile
from litecl.delegate.gpu.properties import Gpu
from litecl.delegate.gpu.target import GpuTarget
from litecl.interpreter.dataclass import dataclass

_OTHER_MEMORY = 0.5  # of a profile's bytes for each operation: most GPUs have less than those for servers


@dataclass(frozen=True)
class Rates:
    """The peaks of a GPU in float32, and what each launch adds."""

    tflops: float
    gb_per_s: float
    launch_us: float

    def us(self, flops: float, size_bytes: float) -> float:
        """Return the time of a launch: of its arithmetic or its bytes, whichever takes longer, and of launching it."""
        return max(flops / self.tflops / 1e6, size_bytes / self.gb_per_s / 1e3) + self.launch_us


def rates_of(target: GpuTarget) -> Rates | None:
    """Return the rates of a GPU; None of one whose vendor is not in the table of profiles.

    No driver tells them. A GPU has those of the profile that it is likest, by compute units; with as many it is taken
    for the same.
    """
    gpu, units = target.gpu, target.compute_units
    of_vendor = [profile for profile in PROFILES.values() if profile.gpu.vendor == gpu.vendor]
    if not of_vendor:
        return None
    likest = min(of_vendor, key=lambda profile: _unlikeness(profile, gpu, units))
    share = units / likest.compute_units
    memory = likest.gb_per_s * share * (1.0 if share == 1.0 else _OTHER_MEMORY)
    return Rates(likest.tflops * share, memory, likest.launch_us)


def _unlikeness(profile: Profile, gpu: Gpu, units: int) -> tuple[bool, bool, float]:
    known = profile.gpu
    return known.integrated != gpu.integrated, known.subgroup != gpu.subgroup, abs(log(units / profile.compute_units))
