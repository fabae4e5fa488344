"""Compiles the libraries of a pack: regions are planned for another machine, and nothing runs."""

from collections.abc import Sequence
from dataclasses import field
from pathlib import Path

from litecl.delegate.backend.protocols import Memory
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.native import features
from litecl.delegate.native.backend import NativeDevice, NativeFound
from litecl.delegate.native.clang import Compiler
from litecl.delegate.native.cross import compiler_for, require_processor
from litecl.delegate.native.execution import program_of
from litecl.delegate.native.kinds import Machine
from litecl.delegate.native.library import Libraries
from litecl.delegate.native.memory import ConstantPool, NativeMemory
from litecl.delegate.native.pack import Packed, digests
from litecl.delegate.plan.plan import Plan
from litecl.delegate.plan.steps import Loop, Work
from litecl.delegate.report import Counters, LaunchTime, Manner
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import DelegateError


@dataclass(frozen=True, eq=False)
class Target:
    """A machine to compile for. libraries: those compiled, by name. directory: the cache of objects, or None."""

    machine: Machine
    compiler: Compiler
    features: tuple[str, ...]
    directory: Path | None
    libraries: dict[str, bytes] = field(default_factory=dict)

    def device(self, threads: int) -> "PackingFound":
        """Return a device that compiles the regions bound to it."""
        return PackingFound(self.compiler, threads, target_=self)

    def packed(self) -> Packed:
        """Return the compiled libraries, adding the crew's. Raises KernelBuildError."""
        libraries = Libraries(self.compiler, {}, self.directory)
        name, content = libraries.content(libraries.crew_units())
        self.libraries[name] = content
        compiler = self.compiler
        return Packed(
            self.machine.name,
            compiler.version,
            compiler.target,
            compiler.processor,
            compiler.macros,
            self.features,
            digests(self.libraries, self.libraries),
        )


def target(machine: Machine, directory: Path | None) -> Target:
    """Return the target for a machine. Raises DelegateError if litecl can't compile for it."""
    compiler, oldest = compiler_for(machine), compiler_for(Machine(machine.kind, machine.kind.base))
    require_processor(compiler, machine)
    needed = features.required(machine.kind.architecture, compiler.macros, oldest.macros)
    if machine.kind.system == "darwin":  # every Mac has the oldest one's, which macOS may not report
        needed = tuple(name for name in needed if name not in oldest.macros)
    return Target(machine, compiler, needed, directory)


@dataclass(frozen=True)
class PackingFound(NativeFound):
    """The machine to compile for, as a device."""

    target_: Target = field(kw_only=True)

    @property
    def identity(self) -> Sequence[str]:
        """See ``Identified``. No tunings match it."""
        return self.name, "to be packed", *self.compiler.identity

    @property
    def ahead(self) -> None:
        """Return nothing: packs are the same wherever they are made."""

    def open(self, *, profile: bool, directory: Path | None) -> "PackingDevice":
        """See ``FoundDevice``."""
        return PackingDevice(self, self.target_)


class PackingDevice(NativeDevice):
    """A device that runs nothing: binding a plan compiles its library."""

    def __init__(self, device: PackingFound, target: Target) -> None:
        super().__init__(device, target.directory)
        self.plans = None  # it needs every library, so every plan
        self._compiled = target.libraries

    def bind(self, plan: Plan, options: CLOptions) -> "NotRun":  # type: ignore[override]
        """Compile a plan's library. Raises KernelBuildError."""
        memory = NativeMemory(plan, ConstantPool())
        program = program_of(plan, memory, options)
        if program.works:
            units = self._libraries.callable_units(program, self.target.compute_units, timed=options.profile)
            name, content = self._libraries.content(units)
            self._compiled[name] = content
        return NotRun(memory)


@dataclass
class NotRun:
    """See ``Execution`` in delegate/backend/protocols.py."""

    memory: Memory
    manner = Manner("one kernel")
    at_once = None

    def loop(self, loop: Loop) -> str:
        """Describe how a loop runs."""
        return "in the region's kernel"

    def turn(self, turned: bool) -> None:
        """Do nothing."""

    def run(self, counters: Counters) -> None:
        """Raise DelegateError."""
        raise DelegateError("a region packed for another machine does not run here")

    def finish(self) -> None:
        """Do nothing."""

    def times(self) -> Sequence[tuple[Work, LaunchTime]]:
        """Return nothing."""
        return []
