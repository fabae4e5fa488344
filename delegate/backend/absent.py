"""A GPU that this machine lacks: models are planned for it as for any device, and nothing can run."""

from collections.abc import Sequence
from dataclasses import field
from pathlib import Path

from litecl.delegate.backend.protocols import AtOnce, Description
from litecl.delegate.cl_op import Const, Operand
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.gpu.profiles import PROFILES, Profile
from litecl.delegate.gpu.target import GpuTarget
from litecl.delegate.plan.plan import Plan
from litecl.delegate.plan.steps import Loop, Work
from litecl.delegate.report import Counters, LaunchTime, Manner
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.graph import Array


@dataclass(eq=False)
class AbsentDevice:
    """A GPU by its name in the table of profiles: ``CLDelegate(device=AbsentDevice("sm_90"))``.

    plans: of the regions that were bound to it, by number. Raises DelegateError for a name that is not in the table.
    """

    name: str
    plans: list[Plan] = field(default_factory=list)
    needs_runtime: bool = False
    needs_threads: bool = False

    def __post_init__(self) -> None:
        if self.name not in PROFILES:
            raise DelegateError(f"a GPU to plan for: expected one of {', '.join(PROFILES)}, got {self.name!r}")

    @property
    def profile(self) -> Profile:
        """Return its row of the table."""
        return PROFILES[self.name]

    @property
    def identity(self) -> Sequence[str]:
        """See ``Identified``."""
        return ("absent", self.name)

    def describe(self) -> Description:
        """See ``FoundDevice``."""
        return Description("none", "none", "GPU", self.profile.compute_units, 0, 0)

    def target(self, directory: Path | None = None) -> GpuTarget:
        """See ``FoundDevice``."""
        profile = self.profile
        return GpuTarget(
            vector_width=4,
            compute_units=profile.compute_units,
            max_work_group_size=profile.max_work_group_size,
            local_mem_bytes=profile.local_mem_bytes,
            float64=profile.float64,
            gpu=profile.gpu,
        )

    def open(self, *, profile: bool, directory: Path | None) -> "_Open":
        """See ``FoundDevice``."""
        return _Open(self)


@dataclass(eq=False)
class _Open:
    """The same, open as far as it goes."""

    found: AbsentDevice
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
