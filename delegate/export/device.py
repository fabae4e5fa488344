"""The machine to export for, as a device: regions are planned for it, and nothing runs."""

from pathlib import Path

from litecl.delegate.backend.protocols import Device
from litecl.delegate.cl_op import Operand
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.cpu.target import CpuTarget
from litecl.delegate.native.backend import NativeFound
from litecl.delegate.native.packing import NotRun
from litecl.delegate.plan.plan import Plan
from litecl.interpreter.buffers import ALIGNMENT
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array


@dataclass(frozen=True)
class ExportFound(NativeFound):
    """The machine to export for, with one thread."""

    def open(self, *, profile: bool, directory: Path | None) -> Device:  # type: ignore[override]
        """See ``FoundDevice``."""
        return ExportDevice(self)


class ExportDevice:
    """See ``Device`` in delegate/backend/protocols.py. It keeps no tensors, so that inputs lie in the arena."""

    name, alignment, cache_hits = "export", ALIGNMENT, 0
    needs_runtime = needs_threads = False

    def __init__(self, found: ExportFound) -> None:
        self.identity = self.name, *found.compiler.identity
        self.target: CpuTarget = found.target()

    def bind(self, plan: Plan, options: CLOptions) -> NotRun:
        """Return an execution without memory; the plan keeps the data of its constants."""
        return NotRun(_NoMemory())

    def check(self) -> None:
        """Do nothing."""

    def save(self) -> None:
        """Do nothing."""


class _NoMemory:
    """See ``Memory`` in delegate/backend/protocols.py."""

    constant_bytes = 0

    def view(self, operand: Operand, turned: bool = False) -> Array | None:
        """Return None."""
        return None

    def upload(self, operand: Operand, value: Array, turned: bool = False) -> None:
        """Do nothing."""

    def download(self, operand: Operand, into: Array, turned: bool = False) -> None:
        """Do nothing."""

    def copy(self, state: Operand, turned: bool) -> None:
        """Do nothing."""
