"""Kernel programs compiled for GPUs that are not there, and what the code is like.

By clang, with NVIDIA's assembler, and by Intel's offline compiler.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

from litecl.delegate.backend.sources import render, source_of
from support.gpu_code import VERSION, Code

FOLDER = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "litecl-tests" / "gpu_static"
_Number = TypeVar("_Number", int, float)
INTEL = ("bmg", "dg2", "pvc", "tgllp")
"""GPUs that Intel's compiler knows by these names."""
# Of OpenCL C's functions, by how targets begin: before clang 22 AMD's had another name.
_LIBRARIES = {"sm_": ("nvptx64--nvidiacl",), "gfx": ("amdgcn-amd-amdhsa", "amdgcn--amdhsa")}
_CLANGS = ("clang-22", "clang-21", "clang-20", "clang-19")
_LIBDEVICES = ("/usr/local/cuda*/nvvm/libdevice/libdevice.10.bc", "/usr/lib/cuda/nvvm/libdevice/libdevice.10.bc")
_COMMON = (
    "-x",
    "cl",
    "-cl-std=CL1.2",
    "-cl-mad-enable",
    "-O3",
    "-nogpulib",
    "-Xclang",
    "-finclude-default-header",
    "-S",
)
_INTEL_OPTIONS = ("-cl-std=CL1.2", "-cl-mad-enable", "-w")
# What clang's header asks for in OpenCL C 1.2 to have dot products of bytes.
_DOTS = ("-Dcl_khr_integer_dot_product=1", "-D__opencl_c_integer_dot_product_input_4x8bit_packed=1")
_HAS_DOTS = "dot_4x8packed"
_OCLOC_ROOT = FOLDER.parent / "sid-intel-ocloc" / "root"


@dataclass(frozen=True)
class Figures:
    """The worst of some programs, or the figures of one.

    failures: programs that do not build. spill_bytes, scratch_bytes: registers that lie in memory, and all memory that
    a work-item has for itself. registers: of a work-item. local_bytes: of a group, but for what is an argument.
    wide_loads: the share of loads from global memory within loops that take 16 bytes; None where there are none.
    multiply_adds: the share of the instructions of the innermost loop that has most of them; None where none has any.
    simd: work-items that an Intel GPU runs in lockstep; None of others. matrix: instructions of matrix units in the
    innermost loop that has most of them; None where none has any.
    """

    programs: int = 1
    failures: int = 0
    spill_bytes: int = 0
    scratch_bytes: int = 0
    registers: int = 0
    local_bytes: int = 0
    wide_loads: float | None = None
    multiply_adds: float | None = None
    simd: int | None = None
    matrix: int | None = None

    def with_worst_of(self, other: "Figures") -> "Figures":
        """Return the worst of both."""
        counts = (self.programs + other.programs, self.failures + other.failures)
        most = (max(getattr(self, name), getattr(other, name)) for name in MOST)
        wide, multiply_adds = (_least(getattr(self, name), getattr(other, name)) for name in LEAST[:2])
        whole = (_least(getattr(self, name), getattr(other, name)) for name in LEAST[2:])
        return Figures(*counts, *most, wide, multiply_adds, *whole)


MOST = ("spill_bytes", "scratch_bytes", "registers", "local_bytes")
LEAST = ("wide_loads", "multiply_adds", "simd", "matrix")


def _least(a: _Number | None, b: _Number | None) -> _Number | None:
    return min((x for x in (a, b) if x is not None), default=None)


@cache
def tool(*names: str) -> str | None:
    """Return the first program of these that there is, in the folder of tools or on the path."""
    places = os.pathsep.join((str(FOLDER / "bin"), os.environ.get("PATH", "")))
    return next((found for name in names if (found := shutil.which(name, path=places))), None)


@cache
def clang() -> str | None:
    """Return clang, if it is new enough."""
    return tool(*_CLANGS)


@cache
def ocloc() -> tuple[str, ...] | None:
    """Return the command of Intel's compiler, which was unpacked from a newer Debian, if it is there."""
    libraries = _OCLOC_ROOT / "usr/lib/x86_64-linux-gnu"
    found = sorted((_OCLOC_ROOT / "usr/bin").glob("ocloc-*"))
    return (str(libraries / "ld-linux-x86-64.so.2"), "--library-path", str(libraries), str(found[0])) if found else None


@cache
def _first(*patterns: str) -> str:
    root = Path("/")
    found = (str(path) for pattern in patterns for path in sorted(root.glob(pattern.lstrip("/"))))
    return next(found, "")


@cache
def _library(target: str) -> str:
    """Return clang's library of OpenCL C's functions for a target; "" where there is none.

    Without it get_local_id and its like are calls, round which registers are spilled.
    """
    names = next((names for family, names in _LIBRARIES.items() if target.startswith(family)), ())
    return _first(*(f"/usr/lib/clc/{name}.bc" for name in names))


def can_compile(target: str) -> bool:
    """Return whether all is there that it takes to compile for a target."""
    if clang() is None or target in INTEL:
        return clang() is not None and ocloc() is not None
    if target.startswith("sm_") and tool("ptxas") is None:
        return False
    return _library(target) != "" or not target.startswith(tuple(_LIBRARIES))


def _linked(bitcode: str) -> tuple[str, ...]:
    return ("-Xclang", "-mlink-builtin-bitcode", "-Xclang", bitcode) if bitcode else ()


def compiled(target: str, kernel: str, defines: Mapping[str, str | int | float]) -> dict[str, Figures]:
    """Return the figures of every kernel function of a file, or of "" where it does not build.

    target: sm_NN, gfxNNN or one of INTEL; what else is named is only built, without float64. What was compiled before
    is remembered.
    """
    options = [*render(defines), *_target_options(target)]
    source = source_of(f"{kernel}.cl")
    by = str(ocloc()) if target in INTEL else f"{clang()}\0{tool('nvdisasm')}"
    key = hashlib.sha256(
        "\0".join((str(VERSION), by, target, *_preprocessed(target, source, options))).encode()
    ).hexdigest()
    kept = FOLDER / "figures" / f"{key}.json"
    if kept.is_file():
        return {entry: Figures(**fields) for entry, fields in json.loads(kept.read_text()).items()}
    with tempfile.TemporaryDirectory() as folder:
        made = _compile(target, source, options, Path(folder))
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps({entry: asdict(figures) for entry, figures in made.items()}))
    return made


def _preprocessed(target: str, source: str, options: Sequence[str]) -> tuple[str, ...]:
    """Return what the preprocessor makes of a source, so that macros that it does not ask for change nothing."""
    known = (*options, *_target_options("")) if target in INTEL else options
    command = [
        str(clang()),
        *("-E", "-P", "-nogpulib", "-x", "cl", "-cl-std=CL1.2"),
        *(o for o in known if o not in _INTEL_OPTIONS),
        "-",
    ]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    return (done.stdout, *(() if done.returncode == 0 else (source, *options)))


def _target_options(target: str) -> tuple[str, ...]:
    if target.startswith("sm_"):
        own = str(FOLDER / "bin" / "libdevice.10.bc")
        libraries = (*_linked(_library(target)), *_linked(_first(own, *_LIBDEVICES)))
        return ("--target=nvptx64-nvidia-nvcl", "-Xclang", "-target-cpu", "-Xclang", target, *libraries)
    if target in INTEL:
        return _INTEL_OPTIONS
    if target.startswith("gfx"):
        usage = "-Rpass-analysis=kernel-resource-usage"
        return ("--target=amdgcn-amd-amdhsa", f"-mcpu={target}", *_linked(_library(target)), usage)
    return ("--target=spir64", "-Xclang", "-cl-ext=-cl_khr_fp64", *_DOTS, "-emit-llvm")


def _compile(target: str, source: str, options: Sequence[str], folder: Path) -> dict[str, Figures]:
    (folder / "k.cl").write_text(source)
    if target in INTEL:
        return _intel(target, options, folder)
    command = [str(clang()), *_COMMON, *options, "-w", "-o", "k.s", "k.cl"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        (FOLDER / "last_error.txt").write_text(done.stderr)
        return {"": Figures(failures=1)}
    text = (folder / "k.s").read_text()
    if target.startswith("gfx"):
        return _amd(text, done.stderr)
    return _nvidia(target, text, folder) if target.startswith("sm_") else {"": Figures()}


def _amd(text: str, remarks: str) -> dict[str, Figures]:
    found = {}
    for part in remarks.split("remark: Function Name: ")[1:]:
        entry = part.split()[0]
        said = {name: int(value) for name, value in re.findall(r"remark: +([\w /\[\]]+?)(?: \[[^\]]*\])?: (\d+)", part)}
        lines = text.partition(f"\n{entry}:")[2].partition("\n.Lfunc_end")[0].splitlines()
        code = Code([half for line in lines for half in line.split("::")], r"^(\.LBB\w+):", r"branch\w*\s+(\.LBB\w+)")
        found[entry] = Figures(
            spill_bytes=4 * said.get("VGPRs Spill", 0),
            scratch_bytes=said.get("ScratchSize", 0),
            registers=said.get("VGPRs", 0) + said.get("AGPRs", 0),
            local_bytes=said.get("LDS Size", 0),
            wide_loads=code.wide_loads,
            multiply_adds=code.multiply_adds,
            matrix=code.matrix,
        )
    return found


def _nvidia(target: str, ptx: str, folder: Path) -> dict[str, Figures]:
    command = [str(tool("ptxas")), f"-arch={target}", "-v", "k.s", "-o", "k.cubin"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        (FOLDER / "last_error.txt").write_text(done.stderr)
        return {"": Figures(failures=1)}
    machine = _machine_code(folder)
    found = {}
    for part in done.stderr.split("Compiling entry function '")[1:]:
        entry = part.split("'")[0]
        if machine is None:
            body = re.split(r"\.visible |\.entry ", ptx.partition(f".entry {entry}(")[2])[0]
            code = Code(body.splitlines(), r"^(\$L\w+):", r"bra(?:\.uni)?\s+(\$L\w+)")
        else:
            code = Code(machine[entry].splitlines(), r"^(\.L_x_\d+):", r"BRA.*`\((\.L_x_\d+)\)")
        found[entry] = Figures(
            spill_bytes=_number(r"(\d+) bytes spill stores", part),
            scratch_bytes=_number(r"(\d+) bytes stack frame", part),
            registers=_number(r"Used (\d+) registers", part),
            local_bytes=_number(r"(\d+) bytes smem", part),
            wide_loads=code.wide_loads,
            multiply_adds=code.multiply_adds,
            matrix=code.matrix,
        )
    return found


def _intel(target: str, options: Sequence[str], folder: Path) -> dict[str, Figures]:
    command = [*(ocloc() or ()), *("compile", "-file", "k.cl", "-device", target), "-options", " ".join(options)]
    done = subprocess.run(
        [*command, "-out_dir", ".", "-output", "k"], cwd=folder, capture_output=True, text=True, check=False
    )
    made = folder / f"k_{target}.bin"
    if done.returncode or not made.is_file():
        (FOLDER / "last_error.txt").write_text(done.stdout + done.stderr)
        return {"": Figures(failures=1)}
    has_dots = _HAS_DOTS in (folder / "k.cl").read_text() and "-DLITECL_DOTS=1" in options
    dots = _dots(target, folder) if has_dots else {}
    # What it says of its kernels is YAML in a section of the file.
    text = made.read_bytes().partition(b"\nkernels:")[2].partition(b"\nkernels_misc_info:")[0].decode("latin-1")
    return {
        part.split()[0]: Figures(
            spill_bytes=_number(r"spill_size: +(\d+)", part),
            scratch_bytes=_number(r"private_size: +(\d+)", part),
            registers=_number(r"grf_count: +(\d+)", part),
            local_bytes=_number(r"slm_size: +(\d+)", part),
            simd=_number(r"simd_size: +(\d+)", part),
            multiply_adds=dots.get(part.split()[0]),
        )
        for part in text.split("- name: ")[1:]
    }


def _dots(target: str, folder: Path) -> dict[str, float | None]:
    """Return the share of dot products in the inner loops of what Intel's compiler has made, by kernel function."""
    command = [*(ocloc() or ()), *("disasm", "-file", f"k_{target}.bin", "-device", target, "-dump", "code")]
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    texts = {path.name.split(".")[2]: path.read_text() for path in (folder / "code").glob(".text.*.asm")}
    codes = {
        entry: Code(text.splitlines(), r"^(L\d+):", r"\b(?:jmpi|while) .*\s(L\d+)\b") for entry, text in texts.items()
    }
    return {entry: code.multiply_adds for entry, code in codes.items()}


def _machine_code(folder: Path) -> dict[str, str] | None:
    """Return the machine code of every kernel; None where there is no disassembler."""
    if tool("nvdisasm") is None:
        return None
    done = subprocess.run(
        [str(tool("nvdisasm")), "-c", "-ndf", "k.cubin"], cwd=folder, capture_output=True, text=True, check=True
    )
    return {part.partition(",")[0]: part for part in re.split(r"\.section\s+\.text\.", done.stdout)[1:]}


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return int(found.group(1)) if found else 0
