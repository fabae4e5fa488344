"""The instruction set extensions beyond the base of a kind of machine, and whether this machine's processor has them.

A compiler's macros say which ones it may use. Those that compilers don't generate from C code (encryption, random
numbers, system instructions) are ignored. Unlisted features are refused, as a board could not check them.
"""

import ctypes
import re
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from litecl.delegate.backend.cpu_features import seen_by_numpy
from litecl.interpreter.errors import DelegateError

# clang's macros, with the feature's name in /proc/cpuinfo and numpy's name, if any. Every processor with AVX2 has BMI,
# BMI2, LZCNT and MOVBE, for which older versions of numpy have no name.
_X86 = {
    "__SSE3__": ("pni", "SSE3"),
    "__SSSE3__": ("ssse3", "SSSE3"),
    "__SSE4_1__": ("sse4_1", "SSE41"),
    "__SSE4_2__": ("sse4_2", "SSE42"),
    "__SSE4A__": ("sse4a", ""),  # AMD's alone; its INSERTQ comes from plain shuffles
    "__CRC32__": ("sse4_2", "SSE42"),
    "__POPCNT__": ("popcnt", "POPCNT"),
    "__AVX__": ("avx", "AVX"),
    "__F16C__": ("f16c", "F16C"),
    "__FMA__": ("fma", "FMA3"),
    "__AVX2__": ("avx2", "AVX2"),
    "__BMI__": ("bmi1", "AVX2"),
    "__BMI2__": ("bmi2", "AVX2"),
    "__LZCNT__": ("abm", "AVX2"),
    "__MOVBE__": ("movbe", "AVX2"),
    "__AVX512F__": ("avx512f", "AVX512F"),
    "__AVX512CD__": ("avx512cd", "AVX512CD"),
    "__AVX512BW__": ("avx512bw", "AVX512BW"),
    "__AVX512DQ__": ("avx512dq", "AVX512DQ"),
    "__AVX512VL__": ("avx512vl", "AVX512VL"),
    "__AVX512IFMA__": ("avx512ifma", "AVX512IFMA"),
    "__AVX512VBMI__": ("avx512vbmi", "AVX512VBMI"),
    "__AVX512VBMI2__": ("avx512_vbmi2", "AVX512VBMI2"),
    "__AVX512VNNI__": ("avx512_vnni", "AVX512VNNI"),
    "__AVX512BITALG__": ("avx512_bitalg", "AVX512BITALG"),
    "__AVX512VPOPCNTDQ__": ("avx512_vpopcntdq", "AVX512VPOPCNTDQ"),
    "__AVX512BF16__": ("avx512_bf16", ""),
    "__AVX512FP16__": ("avx512_fp16", "AVX512FP16"),
    "__AVXVNNI__": ("avx_vnni", ""),
    "__AVXVNNIINT8__": ("avx_vnni_int8", ""),
    "__AVXIFMA__": ("avx_ifma", ""),
    "__AVXNECONVERT__": ("avx_ne_convert", ""),
    "__GFNI__": ("gfni", ""),
}
# The same for ARM: the auxiliary vector's entry and bit in Linux, and the feature's name in macOS.
_CAPS, _MORE_CAPS = 16, 26  # AT_HWCAP and AT_HWCAP2 of getauxval
_ARM64 = {
    "__ARM_FEATURE_CRC32": (_CAPS, 7, "FEAT_CRC32"),
    "__ARM_FEATURE_ATOMICS": (_CAPS, 8, "FEAT_LSE"),
    "__ARM_FEATURE_FP16_SCALAR_ARITHMETIC": (_CAPS, 9, "FEAT_FP16"),
    "__ARM_FEATURE_FP16_VECTOR_ARITHMETIC": (_CAPS, 10, "FEAT_FP16"),
    "__ARM_FEATURE_QRDMX": (_CAPS, 12, "FEAT_RDM"),
    "__ARM_FEATURE_JCVT": (_CAPS, 13, "FEAT_JSCVT"),
    "__ARM_FEATURE_COMPLEX": (_CAPS, 14, "FEAT_FCMA"),
    "__ARM_FEATURE_RCPC": (_CAPS, 15, "FEAT_LRCPC"),
    "__ARM_FEATURE_SHA3": (_CAPS, 17, "FEAT_SHA3"),  # its EOR3 and BCAX come from plain code too
    "__ARM_FEATURE_DOTPROD": (_CAPS, 20, "FEAT_DotProd"),
    "__ARM_FEATURE_SVE": (_CAPS, 22, ""),
    "__ARM_FEATURE_FP16_FML": (_CAPS, 23, "FEAT_FHM"),
    "__ARM_FEATURE_SVE2": (_MORE_CAPS, 1, ""),
    "__ARM_FEATURE_SVE2_BITPERM": (_MORE_CAPS, 4, ""),
    "__ARM_FEATURE_FRINT": (_MORE_CAPS, 8, "FEAT_FRINTTS"),
    "__ARM_FEATURE_SVE_MATMUL_INT8": (_MORE_CAPS, 9, ""),
    "__ARM_FEATURE_SVE_BF16": (_MORE_CAPS, 12, ""),
    "__ARM_FEATURE_MATMUL_INT8": (_MORE_CAPS, 13, "FEAT_I8MM"),
    "__ARM_FEATURE_BF16": (_MORE_CAPS, 14, "FEAT_BF16"),
    "__ARM_FEATURE_CSSC": (_MORE_CAPS, 34, "FEAT_CSSC"),
    "__ARM_FEATURE_MOPS": (_MORE_CAPS, 43, "FEAT_MOPS"),  # memcpy and memset
}
_ARM32 = {
    "__ARM_NEON": (_CAPS, 12, ""),
    "__ARM_FEATURE_FMA": (_CAPS, 16, ""),
    "__ARM_FEATURE_IDIV": (_CAPS, 17, ""),
    "__ARM_FEATURE_DOTPROD": (_CAPS, 24, ""),
    "__ARM_FEATURE_CRC32": (_MORE_CAPS, 4, ""),
}
_RISCV = {"__riscv_v": (_CAPS, ord("v") - ord("a"), "")}
_CHECKED: Mapping[str, Collection[str]] = {
    "x86_64": _X86,
    "aarch64": _ARM64,
    "armv7": _ARM32,
    "riscv64": _RISCV,
}
_PREFIXES = {"x86_64": "__", "aarch64": "__ARM_", "armv7": "__ARM_", "riscv64": "__riscv_"}
# Macros of other features of named processors, which may be ignored.
_NOT_COMPILED_TO = {
    "x86_64": r"__(ADX|AES|AMX_\w+|AVX512VP2INTERSECT|CLDEMOTE|CLFLUSHOPT|CLWB|CLZERO|ENQCMD|FSGSBASE|HRESET|INVPCID|"
    r"AVX10_1(_512)?|KL|LAHF_SAHF|MOVDIR64B|MOVDIRI|MOVRS|MWAITX|PCLMUL|PCONFIG|PKU|PREFETCHI|PRFCHW|PTWRITE|RDPID|RDPRU|RDRND|"
    r"RDSEED|RTM|SERIALIZE|SGX|SHA|SHA512|SHSTK|SM3|SM4|TSXLDTRK|UINTR|USERMSR|VAES|VPCLMULQDQ|WAITPKG|"
    r"WBNOINVD|WIDEKL|XSAVE|XSAVEC|XSAVEOPT|XSAVES|GCC_\w+|[a-z]\w*)_*",
    "aarch64": r"__ARM_(ARCH|BF16_\w+|FEATURE_(AES|CRYPTO|SHA2|SHA512|SM3|SM4|BF16_\w+_ARITHMETIC|BTI|GCS|LS64|"
    r"MEMORY_TAGGING|PAUTH|PAUTH_LR|RNG|SVE_VECTOR_OPERATORS|SVE_BITS|LOCALLY_STREAMING|SME\w*))",
    "armv7": r"__ARM_(ARCH\w*|FP|FPV5__|VFP\w+|NEON_FP|FEATURE_(AES|CRYPTO|SHA2|COPROC|DIRECTED_ROUNDING|"
    r"NUMERIC_MAXMIN|QRDMX))",
    "riscv64": r"__riscv_(v_\w+|vector|zve\w+|zvl(32|64|128)b)",
}


def required(architecture: str, macros: Mapping[str, str], base: Mapping[str, str]) -> tuple[str, ...]:
    """Return the features that a compiler may use, as macros. base: the macros for the kind's oldest processor.

    Raises DelegateError for features that a board can't check.
    """
    checked, ignored = _CHECKED[architecture], re.compile(_NOT_COMPILED_TO[architecture])
    added = [name for name, value in macros.items() if base.get(name) != value and name not in checked]
    unknown = [name for name in added if name.startswith(_PREFIXES[architecture]) and not ignored.fullmatch(name)]
    if unknown:
        raise DelegateError(f"a board cannot report its support of {', '.join(unknown)}: name an older processor")
    return tuple(name for name in checked if name in macros)


def known(architecture: str) -> list[str]:
    """Return the features of an architecture, as macros, that ``missing`` can check."""
    return list(_CHECKED[architecture])


def missing(architecture: str, features: Collection[str]) -> list[str]:
    """Return those features, as macros, that this machine's processor lacks or doesn't report."""
    has = _x86() if architecture == "x86_64" else _others(architecture)
    return [name for name in features if not has(name)]


def _x86() -> Callable[[str], bool]:
    seen, flags = seen_by_numpy(), _flags()

    def has(name: str) -> bool:
        listed, of_numpy = _X86.get(name, ("", ""))
        return bool(seen[of_numpy]) if of_numpy in seen else listed in flags

    return has


def _flags() -> frozenset[str]:
    """Return the flags in /proc/cpuinfo; empty outside Linux."""
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace", encoding="utf-8")
    except OSError:
        return frozenset()
    match = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    return frozenset(match[1].split()) if match else frozenset()


def _others(architecture: str) -> Callable[[str], bool]:
    table: Mapping[str, tuple[int, int, str]] = {"aarch64": _ARM64, "armv7": _ARM32, "riscv64": _RISCV}[architecture]
    if sys.platform == "win32":  # no check there
        return lambda name: False
    is_macos, system = sys.platform == "darwin", ctypes.CDLL(None)

    def has(name: str) -> bool:
        vector, bit, feature = table.get(name, (0, 0, ""))
        if is_macos:
            return bool(feature) and _sysctl(system, f"hw.optional.arm.{feature}")
        system.getauxval.restype, system.getauxval.argtypes = ctypes.c_ulong, [ctypes.c_ulong]
        return bool(vector) and bool(system.getauxval(vector) >> bit & 1)

    return has


def _sysctl(system: ctypes.CDLL, name: str) -> bool:
    value, size = ctypes.c_int(0), ctypes.c_size_t(4)
    failed = system.sysctlbyname(name.encode(), ctypes.byref(value), ctypes.byref(size), None, ctypes.c_size_t(0))
    return not failed and bool(value.value)
