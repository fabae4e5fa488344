"""The object files of an image: kernels, the walker of its table, and a C file that holds the tables and constants."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from litecl.delegate.backend.sources import Defines
from litecl.delegate.export.device import ExportFound
from litecl.delegate.export.draft import Draft
from litecl.delegate.export.files import MARK
from litecl.delegate.export.image import Image
from litecl.delegate.export.machines import ExportMachine
from litecl.delegate.kit.shared import packed
from litecl.delegate.native import clang
from litecl.delegate.native.clang import Compiler, Unit
from litecl.delegate.native.library import Libraries
from litecl.delegate.plan.region_program import RegionProgram
from litecl.delegate.plan.region_tables import Entry, NativeCall, Shift
from litecl.delegate.progress import told_to, waiting

_RUN = "run_region"
_ALONE = 1  # thread

_TEXT = """\
#ifdef __ELF__
__asm__(".ident \\"%(mark)s\\"");
#endif
typedef __UINTPTR_TYPE__ uintptr;
typedef unsigned char u8;
typedef unsigned long long u64;

%(declared)s
%(constants)s
_Alignas(64) static u8 arena[%(arena_bytes)d];
%(program)s
static u8 is_ready;

%(exported)svoid %(name)s_reset(void) {
%(reset)s    is_ready = 1;
}

static int run(void) {
%(run)s    return 0;
}

%(interface)s"""

_PROGRAM = """\
static const struct {
    Function *function;
#if __SIZEOF_POINTER__ == 4
    unsigned upper;
#endif
} functions[] = {%(functions)s};
static const int works[] = {%(works)s};
static const u64 args[] = {%(args)s};
static u64 shifts[%(shift_count)d];
static int counts[%(count_count)d];
"""

_RUN_TEXT = """\
    u64 call[%(calls)d] = {0};
    call[%(ARENA)d] = (uintptr)arena;
    call[%(WORKS)d] = (uintptr)works;
    call[%(ARGS)d] = (uintptr)args;
    call[%(SHIFTS)d] = (uintptr)shifts;
    call[%(COUNTS)d] = (uintptr)counts;
    call[%(FUNCTIONS)d] = (uintptr)functions;
    call[%(COUNT)d] = %(work_count)d;
    call[%(WORKERS)d] = 1;
    %(run_region)s(call);
    if (counts[0]) {
        counts[0] = 0;
        return 1;
    }
"""


class ExportLibraries(Libraries):
    """Object files for a machine. name: precedes every global symbol, so that several models can be linked together."""

    def __init__(self, compiler: Compiler, macros: Defines, directory: Path | None, machine: ExportMachine) -> None:
        super().__init__(compiler, macros, directory)
        self._options = machine.options

    def _unit(self, name: str, macros: Defines, after: str = "") -> Unit:
        unit = super()._unit(name, macros, after)
        return replace(unit, options=(*unit.options, *self._options))

    def _runtime(self) -> list[Unit]:
        """See ``Libraries``. For WebAssembly zig links its own."""
        return [] if "__wasm__" in self._compiler.macros else super()._runtime()

    def objects(self, program: RegionProgram) -> list[bytes]:
        """Return a region's object files. Raises KernelBuildError."""
        units = self.region_units(program, _ALONE, timed=False)
        keys, _ = self._names(units)
        return self._objects(units, keys)


def _renamed(program: RegionProgram, name: str) -> dict[str, str]:
    """Return macros that put a model's name before all global symbols."""
    return {symbol: f"{name}_{symbol}" for symbol in (_RUN, *(function.name for function in program.functions))}


def objects(drawn: Draft, name: str, interface: str) -> list[bytes]:
    """Return an image's object files, that with the interface first. name: precedes all global symbols. interface: C
    that calls ``run`` and ``NAME_reset``. Raises KernelBuildError.
    """
    machine, image, compiler = drawn.machine, drawn.image, drawn.machine.compiler()
    kernels: list[bytes] = []
    with told_to(drawn.options.progress), waiting(drawn.options.compile_timeout), clang.folder() as folder:
        if image.program is not None:
            macros = {**ExportFound(compiler).macros, **_renamed(image.program, name)}
            kernels = ExportLibraries(compiler, macros, drawn.directory, machine).objects(image.program)
        constants = folder / "constants"
        constants.write_bytes(image.constants)
        unit = Unit("model.c", _source(image, name, interface, constants), machine.options)
        return [*compiler.compile([unit]), *kernels]


def _source(image: Image, name: str, interface: str, constants: Path) -> str:
    """Return the file with tables and constants. constants: where the bytes of these are."""
    program = image.program
    has_constants = len(image.constants) > 0
    embedded = f'_Alignas(64) static const u8 constants[] = {{\n#embed "{constants}"\n}};\n' if has_constants else ""
    return _TEXT % {
        "mark": MARK,
        "declared": "" if program is None else _declared(program, name),
        "constants": embedded,
        "arena_bytes": max(1, image.arena_bytes),
        "program": "" if program is None else _tables(image, program, name),
        "name": name,
        "exported": '__attribute__((visibility("default"))) ',
        "reset": _reset(image),
        "run": "" if program is None else _run(image, program, name),
        "interface": interface,
    }


def _declared(program: RegionProgram, name: str) -> str:
    functions = "".join(f"Function {name}_{function.name};\n" for function in program.functions)
    return (
        f"void {name}_{_RUN}(u64 *);\ntypedef void Function(int, int, int, u64, const u64 *, const u64 *);\n{functions}"
    )


def _tables(image: Image, program: RegionProgram, name: str) -> str:
    works = packed(Entry, program.works).view("int32").reshape(-1)
    return _PROGRAM % {
        "functions": ", ".join(f"{{{name}_{function.name}}}" for function in program.functions),
        "works": _numbers(works.tolist()),
        "args": _numbers([f"{arg}u" for arg in program.args.tolist()] or ["0"]),
        "shift_count": len(image.shifts),
        "count_count": image.counts,
    }


def _numbers(numbers: Sequence[object]) -> str:
    return ", ".join(map(str, numbers))


def _reset(image: Image) -> str:
    """Return the statements that put tables and states as before the first run."""
    lines = [f"shifts[{i}] = {shift}u;" for i, shift in enumerate(image.shifts)] if image.program else []
    if image.program and image.constants:
        lines.append(f"shifts[{int(Shift.CONSTANTS)}] = (u64)(uintptr)constants - (u64)(uintptr)arena;")
    lines += [f"__builtin_memcpy(arena + {s.offset}, constants + {s.constant}, {s.size_bytes});" for s in image.states]
    return "".join(f"    {line}\n" for line in lines)


def _run(image: Image, program: RegionProgram, name: str) -> str:
    numbers: Mapping[str, object] = {code.name: int(code) for code in NativeCall}
    text = _RUN_TEXT % {
        **numbers,
        "calls": len(NativeCall),
        "work_count": len(program.works),
        "run_region": f"{name}_{_RUN}",
    }
    if image.turn is None:
        return text
    first, second = f"shifts[{image.turn}]", f"shifts[{image.turn + 1}]"
    return f"{text}    const u64 read = {first};\n    {first} = {second};\n    {second} = read;\n"
