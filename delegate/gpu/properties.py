"""The properties of GPUs that lowerings for them may know."""

from typing import Literal

from litecl.interpreter.dataclass import dataclass

Vendor = Literal["nvidia", "amd", "intel", "arm", "qualcomm", "other"]


_LANES = 128  # of an Intel GPU's core, in all of its vector engines


@dataclass(frozen=True)
class Gpu:
    """The properties of a GPU beyond a CPU's, or that kernels for GPUs need.

    subgroup: work-items that run in lockstep; of Intel's the fewest that its compiler may choose. integer_dot: whether
        one instruction multiplies four bytes by four and adds up. integrated: whether its memory is the host's.
    """

    vendor: Vendor = "other"
    subgroup: int = 32
    integer_dot: bool = False
    integrated: bool = False

    @property
    def few_registers(self) -> bool:
        """Return whether a work-item has half as many registers as on other GPUs."""
        return self.vendor in ("intel", "arm")

    def cores(self, compute_units: int) -> int:
        """Return how many cores a GPU has: its compute units; on Intel's GPUs, which count vector engines, the sets of
        engines that share local memory.
        """
        return max(1, compute_units * self.subgroup // _LANES) if self.vendor == "intel" else compute_units

    @property
    def macros(self) -> dict[str, str | int | float]:
        """Return the macros of all programs. Where subgroups have at least 16 work-items, Intel's compiler would choose
        32, which have half as many registers each.
        """
        flags = {"LITECL_DOTS": self.integer_dot, "LITECL_FEW_REGISTERS": self.few_registers}
        macros: dict[str, str | int | float] = {name: 1 for name, on in flags.items() if on}
        return macros | ({"LITECL_SUBGROUP": 16} if (self.vendor, self.subgroup) == ("intel", 16) else {})
