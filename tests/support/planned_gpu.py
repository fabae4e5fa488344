"""GPUs to plan for: models are planned for them as for any device, and nothing can run."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from litecl.delegate.backend.protocols import AtOnce, Description
from litecl.delegate.cl_op import Const, Operand
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.gpu.properties import Gpu
from litecl.delegate.gpu.target import GpuTarget
from litecl.delegate.plan.plan import Plan
from litecl.delegate.plan.steps import Loop, Work
from litecl.delegate.report import Counters, LaunchTime, Manner
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.graph import Array


def _gpu(gpu: Gpu, units: int, local_kib: int, group: int = 1024, *, float64: bool = False) -> GpuTarget:
    return GpuTarget(4, units, float64, group, 1024 * local_kib, gpu=gpu)


GPUS: Mapping[str, GpuTarget] = {
    "nvidia": _gpu(Gpu("nvidia", 32, integer_dot=True), 132, 48, float64=True),
    "amd": _gpu(Gpu("amd", 32, integer_dot=True), 48, 64, 256, float64=True),
    "amd of 64": _gpu(Gpu("amd", 64, integer_dot=True), 104, 64, 256, float64=True),
    "intel": _gpu(Gpu("intel", 8, integer_dot=True), 512, 64),
    "intel, integrated": _gpu(Gpu("intel", 8, integer_dot=True, integrated=True), 96, 64, 512),
    "arm": _gpu(Gpu("arm", 16, integer_dot=True, integrated=True), 10, 32),
    "qualcomm": _gpu(Gpu("qualcomm", 64, integer_dot=True, integrated=True), 12, 32),
}
"""What lowerings may know of a GPU of each kind."""


@dataclass(eq=False)
class PlannedGpu:
    """A GPU of ``GPUS``: ``CLDelegate(device=PlannedGpu("large"))``. plans: of the regions that were bound to it."""

    name: str
    plans: list[Plan] = field(default_factory=list)
    needs_runtime: bool = False
    needs_threads: bool = False

    @property
    def identity(self) -> Sequence[str]:
        """See ``Identified``."""
        return ("planned", self.name)

    def describe(self) -> Description:
        """See ``FoundDevice``."""
        return Description("none", "none", "GPU", GPUS[self.name].compute_units, 0, 0)

    def target(self, directory: Path | None = None) -> GpuTarget:
        """See ``FoundDevice``."""
        return GPUS[self.name]

    def open(self, *, profile: bool, directory: Path | None) -> "_Open":
        """See ``FoundDevice``."""
        return _Open(self)


@dataclass(eq=False)
class _Open:
    """The same, open as far as it goes."""

    found: PlannedGpu
    alignment: int = 256
    cache_hits: int = 0
    needs_runtime: bool = False
    needs_threads: bool = False

    @property
    def name(self) -> str:
        return self.found.name

    @property
    def identity(self) -> Sequence[str]:
        return self.found.identity

    @property
    def target(self) -> GpuTarget:
        return self.found.target()

    def bind(self, plan: Plan, options: CLOptions) -> "_Planned":
        self.found.plans.append(plan)
        return _Planned(plan, self.name)

    def check(self) -> None:
        raise _not_there(self.name)

    def save(self) -> None:
        pass


class _Planned:
    """A plan that has no memory and cannot run; its execution and its memory in one."""

    manner = Manner("queued", "planned only")
    at_once: AtOnce | None = None

    def __init__(self, plan: Plan, name: str) -> None:
        self._name = name
        constants = {arg for work in plan.works for arg in work.launch.args if isinstance(arg, Const)}
        self.constant_bytes = sum(const.data.nbytes for const in constants if const.data is not None)

    @property
    def memory(self) -> "_Planned":
        return self

    def loop(self, loop: Loop) -> str:
        return "planned only"

    def turn(self, turned: bool) -> None:
        raise _not_there(self._name)

    def run(self, counters: Counters) -> None:
        raise _not_there(self._name)

    def finish(self) -> None:
        pass

    def times(self) -> Sequence[tuple[Work, LaunchTime]]:
        return ()

    def view(self, operand: Operand, turned: bool = False) -> Array | None:
        return None

    def upload(self, operand: Operand, value: Array, turned: bool = False) -> None:
        raise _not_there(self._name)

    def download(self, operand: Operand, into: Array, turned: bool = False) -> None:
        raise _not_there(self._name)

    def copy(self, state: Operand, turned: bool) -> None:
        raise _not_there(self._name)


def _not_there(name: str) -> DelegateError:
    return DelegateError(f"{name} is only planned for: this machine does not have it")
