"""The object files of a library: kernels, the walker of their tables, and a C file that holds tables and constants."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from litecl.delegate.backend.sources import Defines
from litecl.delegate.export.device import ExportFound
from litecl.delegate.export.draft import Draft
from litecl.delegate.export.files import UNSEALED
from litecl.delegate.export.image import Image
from litecl.delegate.export.machines import ExportMachine
from litecl.delegate.kit.shared import packed
from litecl.delegate.native import clang
from litecl.delegate.native.clang import Compiler, Unit
from litecl.delegate.native.library import Libraries
from litecl.delegate.plan.region_program import Function, RegionProgram
from litecl.delegate.plan.region_tables import Entry, NativeCall, Shift
from litecl.delegate.progress import told_to, waiting
from litecl.interpreter.run.variables import VariableKey

_RUN = "run_region"
_ALONE = 1  # thread
_VERSION_DIGITS = 16
_TYPES = "char", "uchar", "short", "ushort"

# Signatures share the arena. With states, that of one run last has them there; the others' are in the store.
_TEXT = """\
#ifdef __ELF__
__asm__(".ident \\"%(mark)s\\"");
#endif
typedef __UINTPTR_TYPE__ uintptr;
typedef unsigned char u8;
typedef unsigned long long u64;
typedef void Function(int, int, int, u64, const u64 *, const u64 *);
typedef struct {
    Function *function;
#if __SIZEOF_POINTER__ == 4
    unsigned upper;
#endif
} Address;

%(declared)s
%(constants)s
static _Alignas(64) u8 arena[%(arena_bytes)d];
static u8 is_ready;
%(store)s
%(tables)s
__attribute__((visibility("default"))) void %(name)s_reset(void) {
%(reset)s    is_ready = 1;
}

// Called before an image's inputs are written to the arena.
static void ready(const int image) {
    if (!is_ready) %(name)s_reset();
%(fetch)s}

%(runs)s%(interface)s"""

_TABLES = """\
static const Address functions_%(i)d[] = {%(functions)s};
static const int works_%(i)d[] = {%(works)s};
static const u64 args_%(i)d[] = {%(args)s};
static u64 shifts_%(i)d[%(shift_count)d];
static int counts_%(i)d[%(count_count)d];
"""

_RUN_TEXT = """\
    u64 call[%(calls)d] = {0};
    call[%(ARENA)d] = (uintptr)arena;
    call[%(WORKS)d] = (uintptr)works_%(i)d;
    call[%(ARGS)d] = (uintptr)args_%(i)d;
    call[%(SHIFTS)d] = (uintptr)shifts_%(i)d;
    call[%(COUNTS)d] = (uintptr)counts_%(i)d;
    call[%(FUNCTIONS)d] = (uintptr)functions_%(i)d;
    call[%(COUNT)d] = %(work_count)d;
    call[%(WORKERS)d] = 1;
    %(run_region)s(call);
    if (counts_%(i)d[0]) {
        counts_%(i)d[0] = 0;
        return 1;
    }
"""


class ExportLibraries(Libraries):
    """Object files for a machine."""

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


def objects(drawn: Draft, name: str, interface: str, *, apart: bool = False) -> list[bytes]:
    """Return a library's object files, that with the interface first. name: precedes all global symbols. interface: C
    that calls ``ready``, ``run_I`` of image I, and ``NAME_reset``. apart: whether constants are written to memory at
    the start. Raises KernelBuildError.
    """
    machine, compiler = drawn.machine, drawn.machine.compiler()
    programs = [image.program for image in drawn.images.values() if image.program is not None]
    with told_to(drawn.options.progress), waiting(drawn.options.compile_timeout), clang.folder() as folder:
        kernels: list[bytes] = []
        if programs:
            device = ExportFound(compiler)
            macros = {**device.macros, **_renamed(programs, name, device.target().vector_width)}
            kernels = ExportLibraries(compiler, macros, drawn.directory, machine).objects(_joined(programs))
        constants = folder / "constants"
        constants.write_bytes(b"\0" + drawn.constants)  # the compiler refuses files that begin like UTF-16
        unit = Unit(
            "model.c", _Source(drawn, name, programs).text(interface, None if apart else constants), machine.options
        )
        return [*compiler.compile([unit]), *kernels]


def version(drawn: Draft, name: str, interface: str) -> str:
    """Return a digest of what a library of an interface computes, and on which data."""
    programs = [image.program for image in drawn.images.values() if image.program is not None]
    text = _Source(drawn, name, programs).text(interface, Path("constants"))
    return hashlib.sha256(text.encode() + drawn.constants).hexdigest()[:_VERSION_DIGITS]


def _renamed(programs: Sequence[RegionProgram], name: str, width: int) -> dict[str, str]:
    """Return macros that put a model's name before all global symbols, so that several models can be linked together,
    even of different versions of litecl. width: of a vector.
    """
    shared = "sum_patches", *(f"gather_patches_{type_}_{width}" for type_ in _TYPES)  # SHARED in kernels_cl/common.h
    symbols = _RUN, *shared, *(function.name for function in _functions(programs))
    return {symbol: f"{name}_{symbol}" for symbol in symbols}


def _functions(programs: Sequence[RegionProgram]) -> list[Function]:
    return [*dict.fromkeys(function for program in programs for function in program.functions)]


def _joined(programs: Sequence[RegionProgram]) -> RegionProgram:
    """Return a program with the functions of all, each once, to compile."""
    works = [work for program in programs for work in program.works]
    launched = [work for program in programs for work in program.launches.values()]
    is_straight = len(works) == len(launched)
    launches = dict(enumerate(launched)) if is_straight else {}
    return RegionProgram(tuple(_functions(programs)), tuple(works), np.zeros(0, np.uint64), 0, launches)


class _Source:
    """The C file with the tables of all images."""

    def __init__(self, drawn: Draft, name: str, programs: Sequence[RegionProgram]) -> None:
        self._drawn, self._name, self._programs = drawn, name, programs
        self._images = [*enumerate(drawn.images.values())]
        self._stored: dict[VariableKey, int] = {}  # where states are in the store, if there are several signatures
        self._store_bytes = 0
        for _, image in self._images if len(self._images) > 1 else ():
            for state in image.states:
                if state.key not in self._stored:
                    self._stored[state.key] = self._store_bytes
                    self._store_bytes += state.size_bytes

    def text(self, interface: str, constants: Path | None) -> str:
        """Return the file. constants: the file of their bytes; None if they are not part of it."""
        drawn = self._drawn
        declared = f"static _Alignas(64) u8 constants[{len(drawn.constants)}];\n"
        embedded = f'static const _Alignas(64) u8 constants[] = {{\n#embed "{constants}" clang::offset(1)\n}};\n'
        store = f"static u8 store[{self._store_bytes}];\nstatic int current;\n"
        return _TEXT % {
            "mark": UNSEALED,
            "declared": self._declared() if self._programs else "",
            "constants": (declared if constants is None else embedded) if drawn.constants else "",
            "arena_bytes": drawn.arena_bytes,
            "store": store if self._stored else "",
            "tables": "".join(self._tables(i, image) for i, image in self._images),
            "name": self._name,
            "reset": self._reset(),
            "fetch": self._fetch() if self._stored else "    (void)image;\n",
            "runs": "".join(self._run(i, image) for i, image in self._images),
            "interface": interface,
        }

    def _declared(self) -> str:
        functions = "".join(f"Function {self._name}_{function.name};\n" for function in _functions(self._programs))
        return f"void {self._name}_{_RUN}(u64 *);\n{functions}"

    def _tables(self, i: int, image: Image) -> str:
        program = image.program
        if program is None:
            return ""
        works = packed(Entry, program.works).view("int32").reshape(-1)
        return _TABLES % {
            "i": i,
            "functions": _listed(f"{{{self._name}_{function.name}}}" for function in program.functions),
            "works": _listed(works.tolist()),
            "args": _listed([f"{arg}u" for arg in program.args.tolist()] or ["0"]),
            "shift_count": len(image.shifts),
            "count_count": image.counts,
        }

    def _reset(self) -> str:
        """Return the statements that put tables and states as before the first run."""
        lines = ["current = -1;"] if self._stored else []
        for i, image in self._images:
            if image.program is not None:
                lines += [f"shifts_{i}[{k}] = {shift}u;" for k, shift in enumerate(image.shifts)]
            if image.program is not None and self._drawn.constants:
                lines.append(f"shifts_{i}[{int(Shift.CONSTANTS)}] = (u64)(uintptr)constants - (u64)(uintptr)arena;")
            for state in image.states:
                into = f"store + {self._stored[state.key]}" if self._stored else f"arena + {state.offset}"
                lines.append(f"__builtin_memcpy({into}, constants + {state.constant}, {state.size_bytes});")
        return "".join(f"    {line}\n" for line in dict.fromkeys(lines))

    def _fetch(self) -> str:
        """Return the statements that save the states in the arena, and fetch those of an image."""
        saved, fetched = dict[int, list[str]](), dict[int, list[str]]()
        for i, image in self._images:
            turn = f"shifts_{i}[{image.turn}]"
            for state in image.states:
                stored, at = f"store + {self._stored[state.key]}", f"arena + {state.offset}"
                now = f"{at} + {turn}" if state.set_bytes else at
                saved.setdefault(i, []).append(f"__builtin_memcpy({stored}, {now}, {state.size_bytes});")
                fetched.setdefault(i, []).append(f"__builtin_memcpy({at}, {stored}, {state.size_bytes});")
            if image.turn is not None:
                turns = image.turn, image.turn + 1
                fetched.setdefault(i, []).extend(f"shifts_{i}[{k}] = {image.shifts[k]}u;" for k in turns)
        return (
            "    if (image == current) return;\n"
            + _switch("current", saved)
            + "    current = image;\n"
            + _switch("image", fetched)
        )

    def _run(self, i: int, image: Image) -> str:
        """Return the function that runs an image on the inputs in the arena."""
        text = ""
        if image.program is not None:
            numbers: dict[str, object] = {code.name: int(code) for code in NativeCall}
            more = {"i": i, "work_count": len(image.program.works), "run_region": f"{self._name}_{_RUN}"}
            text = _RUN_TEXT % {**numbers, "calls": len(NativeCall), **more}
        if image.program is not None and image.turn is not None:
            first, second = f"shifts_{i}[{image.turn}]", f"shifts_{i}[{image.turn + 1}]"
            text += f"    const u64 read = {first};\n    {first} = {second};\n    {second} = read;\n"
        return f"static int run_{i}(void) {{\n{text}    return 0;\n}}\n\n"


def _switch(on: str, cases: Mapping[int, Sequence[str]]) -> str:
    lines = [
        line
        for i, inner in cases.items()
        for line in (f"    case {i}:", *(f"        {each}" for each in inner), "        break;")
    ]
    return "".join(f"    {line}\n" for line in (f"switch ({on}) {{", *lines, "}"))


def _listed(items: Iterable[object]) -> str:
    return ", ".join(map(str, items))
