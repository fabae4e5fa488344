"""The properties of GPUs that lowerings for them may know, and what multiplies halves there."""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Literal

from litecl.interpreter.dataclass import dataclass

Vendor = Literal["nvidia", "amd", "intel", "arm", "qualcomm", "other"]


@dataclass(frozen=True)
class MatrixUnit:
    """An instruction by which a subgroup of ``lanes`` adds up a product of halves, [rows, 16] by [16, columns], in
    float32 (kernels_cl/matrix_unit.h).

    macro: says how its lanes hold the operands. step: of the depth, that a group loads at once. emulated: whether lanes
    exchange operands through local memory instead, for tests.
    """

    kind: ClassVar[Literal["matrix"]] = "matrix"
    name: str
    macro: str
    lanes: int
    rows: int
    columns: int
    step: int = 32
    emulated: bool = False

    @property
    def defines(self) -> dict[str, str | int | float]:
        """The macros of matrix_unit.h, the step, and of Intel's units the subgroup that the instruction is for."""
        sizes = {"UNIT_ROWS": self.rows, "UNIT_COLUMNS": self.columns, "UNIT_LANES": self.lanes, "BK": self.step}
        emulated = {"EMULATED": 1} if self.emulated else {}
        lockstep = {"LITECL_SUBGROUP": self.lanes} if self.macro == "MATRIX_DPAS" and not self.emulated else {}
        return {self.macro: 1, **sizes, **emulated, **lockstep}


MATRIX_UNITS: Mapping[str, MatrixUnit] = {
    unit.name: unit
    for unit in (
        MatrixUnit("mma", "MATRIX_MMA", 32, 16, 8),
        MatrixUnit("mfma", "MATRIX_MFMA", 64, 16, 16),
        MatrixUnit("wmma", "MATRIX_WMMA", 32, 16, 16),
        MatrixUnit("dpas of 8", "MATRIX_DPAS", 8, 8, 8, step=16),  # its lanes have the fewest registers
        MatrixUnit("dpas of 16", "MATRIX_DPAS", 16, 8, 16),
    )
}
"""NVIDIA's from sm_80 on, AMD's of gfx90a and of gfx11, Intel's with subgroups of 8 and of 16."""


_LANES = 128  # of an Intel GPU's core, in all of its vector engines


@dataclass(frozen=True)
class HalfUnit:
    """Vector units that multiply halves at a higher rate than floats, where no matrix unit is (kernels_cl/half_tile.h).

    Products are added up in halves, ``steps`` of the depth, and these sums in float32. With u = 2**-11, rounding
    changes a sum by at most (steps + 2) u of the sum of its products' magnitudes, half a percent. A sum of so few that
    exceeds 65504 is found, and computed again in float32. One that is less than 6e-5, of weights that were divided so
    that the largest is 8 to 16, has an error of 3e-8 for each product, or of 6e-5 where subnormals are made 0.

    lanes: work-items in lockstep that kernels are compiled for; 0 for as many as the compiler chooses. sums: the most
    that a work-item holds. flushes: whether subnormals are made 0. emulated: whether floats are rounded instead, for
    tests.
    """

    kind: ClassVar[Literal["halves"]] = "halves"
    name: ClassVar[str] = "halves"
    steps: int = 8
    lanes: int = 0
    sums: int = 64
    flushes: bool = False
    emulated: bool = False

    @property
    def defines(self) -> dict[str, str | int | float]:
        """The macros of half_tile.h and half_unit.h, but for BK."""
        emulated = {"EMULATED": 1} if self.emulated else {}
        lockstep = {"LITECL_SUBGROUP": self.lanes} if self.lanes and not self.emulated else {}
        return {"HALF_STEPS": self.steps, **emulated, **lockstep}


_HALVES = HalfUnit()
# By eights, Intel's units compute as many halves as floats at a time; sixteen have half as many registers each.
_INTEL_HALVES = HalfUnit(lanes=16, sums=16)


@dataclass(frozen=True)
class Gpu:
    """The properties of a GPU beyond a CPU's, or that kernels for GPUs need.

    subgroup: work-items that run in lockstep; of Intel's the fewest that its compiler may choose. fp16: whether kernels
        compute in halves (``cl_khr_fp16``), and are right; without_fp16: why they are not; flushes_halves: whether they
        make subnormals 0. integer_dot: whether one
        instruction multiplies four bytes by four and adds up. matrix: the unit that multiplies matrices of halves, if
        kernels can reach one; without_matrix: why what it has cannot be used. integrated: whether its memory is the
        host's. emulated: whether floats that are rounded take the place of halves, for tests.
    """

    vendor: Vendor = "other"
    subgroup: int = 32
    fp16: bool = False
    integer_dot: bool = False
    matrix: MatrixUnit | None = None
    integrated: bool = False
    without_matrix: str = ""
    without_fp16: str = ""
    flushes_halves: bool = False
    emulated: bool = False

    @property
    def unit(self) -> "MatrixUnit | HalfUnit | None":
        """Return what multiplies halves fastest; None where nothing is faster than floats."""
        if self.matrix is not None or not self.fp16:
            return self.matrix
        unit = _INTEL_HALVES if self.vendor == "intel" else _HALVES
        return replace(unit, flushes=self.flushes_halves, emulated=self.emulated)

    @property
    def few_registers(self) -> bool:
        """Return whether a work-item has half as many registers as those of other GPUs."""
        return self.vendor in ("intel", "arm")

    def cores(self, compute_units: int) -> int:
        """Return how many places for groups there are: compute units, but of Intel's GPUs, which count vector engines,
        those that have local memory together.
        """
        return max(1, compute_units * self.subgroup // _LANES) if self.vendor == "intel" else compute_units

    @property
    def macros(self) -> dict[str, str | int | float]:
        """Return the macros of all programs. Where 16 work-items in lockstep are the fewest, Intel's compiler takes 32,
        which have half as many registers each.
        """
        flags = {"LITECL_DOTS": self.integer_dot, "LITECL_FEW_REGISTERS": self.few_registers}
        macros: dict[str, str | int | float] = {name: 1 for name, on in flags.items() if on}
        return macros | ({"LITECL_SUBGROUP": 16} if (self.vendor, self.subgroup) == ("intel", 16) else {})
