"""The machines that a model can be exported for, beside those of packs: boards without a system, and WebAssembly."""

from collections.abc import Mapping
from dataclasses import field

from litecl.delegate.export.web_tiles import WEB_TILES
from litecl.delegate.native import compiler
from litecl.delegate.native.clang import Compiler
from litecl.delegate.native.compiler import MISSING, OF_ZIGLANG
from litecl.delegate.native.kinds import HOST, KINDS, machine
from litecl.delegate.tuning import Tuning
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import DelegateError, DeviceNotFound, KernelBuildError

_NO_PIC = "-fno-pic"  # only a system's loader wants code that runs at any address
_FRAMES = "-fstack-size-section"  # what archive.py reads
_NO_DOUBLES = ("-Xclang", "-cl-ext=-cl_khr_fp64")  # which would be software's; kernels have integers for them
_SYSTEMS = ("linux",)  # whose linkers take ELF archives


@dataclass(frozen=True)
class ExportMachine:
    """A machine. target: clang's options that select it. options: others for every file. tuning: its tiles."""

    name: str
    target: tuple[str, ...]
    options: tuple[str, ...] = ()
    tuning: Tuning = field(default_factory=Tuning)

    def compiler(self) -> Compiler:
        """Return the compiler for it. Raises DeviceNotFound without one, KernelBuildError for another than ziglang's,
        whose archiver and linkers are needed too.
        """
        found = compiler.found()
        if found is None:
            raise DeviceNotFound(MISSING)
        if found.source != OF_ZIGLANG:
            raise KernelBuildError(f"export: expected the package ziglang, got {found.source}: pip install ziglang")
        return Compiler((found.command[0], "clang"), found.source, (found.command[0],), self.target or found.target)


_BARE: Mapping[str, ExportMachine] = {
    name: ExportMachine(name, ("-target", triple, *options), (_NO_PIC, _FRAMES, *others))
    for name, triple, options, others in (
        ("cortex-m55", "thumbv8.1m.main-none-eabihf", ("-mcpu=cortex-m55",), ()),
        ("cortex-m4", "thumbv7em-none-eabihf", ("-mcpu=cortex-m4",), _NO_DOUBLES),
        ("riscv32imc", "riscv32-unknown-none-elf", ("-march=rv32imc", "-mabi=ilp32"), _NO_DOUBLES),
    )
}
_WASM = "-target", "wasm32-freestanding", "-msimd128", "-mbulk-memory"
WEB = ExportMachine("wasm32", _WASM, (_NO_PIC,), WEB_TILES)
WEB_RELAXED = ExportMachine("wasm32 with relaxed SIMD", (*_WASM, "-mrelaxed-simd"), (_NO_PIC,), WEB_TILES)


def names() -> list[str]:
    """Return the machines' names."""
    return [*_BARE, *(name for name, kind in KINDS.items() if kind.system in _SYSTEMS)]


def export_machine(name: str) -> ExportMachine:
    """Parse a machine's name: a board's, or for a system KIND, KIND:PROCESSOR or "host". Raises DelegateError."""
    if name in _BARE:
        return _BARE[name]
    kind = name.partition(":")[0]
    if kind != HOST and kind not in names():
        raise DelegateError(
            f"there is no machine {name!r} to export for: expected {HOST}, or one of {', '.join(names())}; those of a "
            "system may have a colon and a processor after them"
        )
    of_system = machine(name)
    return ExportMachine(of_system.name, () if name == HOST else of_system.options, (_FRAMES,))
