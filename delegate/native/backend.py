"""The native back end: one device, the processor, if there is a compiler for it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

from litecl.delegate.backend.errors import host_memory
from litecl.delegate.backend.protocols import Description, FoundDevice
from litecl.delegate.backend.sources import Defines
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.cpu.target import CpuTarget
from litecl.delegate.native import ahead, compiler
from litecl.delegate.native.clang import Compiler
from litecl.delegate.native.execution import NativeExecution
from litecl.delegate.native.library import Libraries
from litecl.delegate.native.memory import ConstantPool
from litecl.delegate.native.processors import processors
from litecl.delegate.plan.plan import Plan
from litecl.delegate.tuning import Demand, Tuning
from litecl.interpreter import limits
from litecl.interpreter.buffers import ALIGNMENT, Buffer, HostBuffer
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import DelegateError, DeviceNotFound

_NAME = "native"
_ACROSS = "__ARM_FEATURE_MVE"  # Helium
_PAIRS = {8: "__AVX2__", 4: "__SSSE3__"}  # by floats in a register: products of bytes, added in pairs
_FOURS = "__AVXVNNI__"  # the same in fours
_WIDTHS = (  # floats in a register; the last are microcontrollers
    *(("__AVX512F__", 16), ("__AVX__", 8), ("__SSE2__", 4), ("__ARM_NEON", 4), (_ACROSS, 4)),
    *(("__wasm_simd128__", 4), ("__ILP32__", 1)),
)
_IN_TURNS = frozenset({"__znver4__"})  # they execute a vector of 16 floats in two passes

_STEADY_WIDTH = 8  # of vectors that give the same bits everywhere: a register of AVX2, half of one of AVX-512
_FUSED = ("__FMA__", "__ARM_FEATURE_FMA", "__riscv_d")  # processors with fused multiply-add and denormals
_LOCAL_BYTES = 1 << 15  # of a work-item, its own group, on the stack of its thread


@dataclass(frozen=True)
class NativeFound:
    """The processor, with a compiler for it. threads: the number that share a region's work. steady: whether it gives
    the same bits as every other processor.
    """

    compiler: Compiler
    threads: int = 1
    steady: bool = False

    needs_runtime = needs_threads = False

    @property
    def name(self) -> str:
        """Return "native"."""
        return _NAME

    @property
    def identity(self) -> Sequence[str]:
        """See ``Identified``."""
        return _NAME, *self.compiler.identity

    def describe(self) -> Description:
        """Return its description for people."""
        memory, version = 2 * limits.MOST_BYTES, self.compiler.version
        origin = f"; kernels compiled ahead for {self.ahead.compiler.processor}" if self.ahead else ""
        return Description(
            platform=f"{version}, {self.compiler.source}{origin}",
            driver=version,
            type="CPU",
            compute_units=self.threads,
            memory_bytes=memory,
            max_buffer_bytes=memory,
            processor=self.compiler.processor,
        )

    def target(self, directory: Path | None = None) -> CpuTarget:
        """See ``FoundDevice``."""
        macros = self.compiler.macros
        if self.steady:
            return CpuTarget(_STEADY_WIDTH, self.threads, local_mem_bytes=_LOCAL_BYTES)
        width = next((width for macro, width in _WIDTHS if macro in macros), 4)
        turns = not _IN_TURNS.isdisjoint(macros)
        across = _ACROSS in macros
        return CpuTarget(
            *(width, self.threads),
            local_mem_bytes=_LOCAL_BYTES,
            takes_turns=turns,
            sums_across=across,
            byte_pairs=_PAIRS.get(width) in macros and _FOURS not in macros,
        )

    def steadied(self) -> Self:
        """Return the same, computing the same bits as every other processor. Raises DelegateError if this can't."""
        macros = self.compiler.macros
        if macros.get("__SIZEOF_POINTER__") != "8" or not any(name in macros for name in _FUSED):
            raise DelegateError(f"deterministic: {self.compiler.processor} has 32 bits, or no fused multiply-add")
        return replace(self, steady=True)

    def open(self, *, profile: bool, directory: Path | None) -> "NativeDevice":
        """See ``FoundDevice``."""
        return NativeDevice(self, directory)

    def libraries(self, directory: Path | None) -> Libraries:
        """Return the regions' libraries. directory: their cache, or None."""
        return Libraries(self.compiler, self.macros, directory, self.ahead)

    @property
    def ahead(self) -> ahead.Ahead | None:
        """Return the objects compiled ahead for this processor, if any may be used."""
        return None if self.steady else ahead.suitable(self.compiler)

    @property
    def macros(self) -> Defines:
        """Return the macros defined for all kernels."""
        return {"VW": self.target().vector_width}


class NativeDevice:
    """The opened processor; see ``Device`` in delegate/backend/protocols.py."""

    alignment = ALIGNMENT
    needs_runtime = needs_threads = False

    def __init__(self, device: NativeFound, directory: Path | None) -> None:
        self.name, self.identity, self.target = device.name, device.identity, device.target(directory)
        self.plans = directory
        self._libraries = device.libraries(directory)
        self._pool = ConstantPool()

    @property
    def cache_hits(self) -> int:
        """Return the number of objects and libraries loaded rather than compiled."""
        return self._libraries.loaded

    def bind(self, plan: Plan, options: CLOptions) -> NativeExecution:
        """See ``Device``."""
        return NativeExecution(plan, self._libraries, self._pool, self.target.compute_units, options)

    def new_buffer(self, size_bytes: int) -> HostBuffer:
        """See ``KeepsTensors``."""
        with host_memory("keeping a tensor"):
            return HostBuffer(size_bytes)

    def takes(self, buffer: Buffer) -> bool:
        """See ``KeepsTensors``."""
        return isinstance(buffer, HostBuffer)

    def check(self) -> None:
        """Do nothing: no failure can be foreseen."""

    def save(self) -> None:
        """Do nothing: compiled files are cached at once."""


@dataclass(frozen=True)
class Native:
    """The back end. named: the path of the user's compiler, or None to find one."""

    named: Path | None = None

    def devices(self, directory: Path | None = None) -> list[FoundDevice]:
        """Return the processor, if there is a compiler for it."""
        clang = self._compiler(directory)
        return [] if clang is None else [NativeFound(clang, processors())]

    def candidates(
        self,
        demand: Demand,
        tuned: Callable[[FoundDevice], Tuning],
        directory: Path | None = None,
        platform: str = "",
    ) -> Iterator[FoundDevice]:
        """Yield the processor, with the threads asked for or suitable for the model; nothing if a platform is given.

        Raises DeviceNotFound if no compiler is installed.
        """
        if platform:
            return
        clang = self._compiler(directory)
        if clang is None:
            raise DeviceNotFound(compiler.MISSING)
        most = processors()
        whole = NativeFound(clang, most)
        suitable = 1 if demand.flops < tuned(whole).small_flops else most
        yield NativeFound(clang, min(demand.num_threads or suitable, most))

    def _compiler(self, directory: Path | None) -> Compiler | None:
        return compiler.found(directory) if self.named is None else compiler.named(self.named, directory)

    def of(self, device: object) -> FoundDevice | None:
        """Return None: no other library represents the processor."""
        return None

    def buffer(self, handle: object) -> Buffer | None:
        """Return None: users' buffers are numpy arrays."""
        return None
