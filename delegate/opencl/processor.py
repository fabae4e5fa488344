"""The processor that PoCL compiles for: its LLVM name, and a better one if LLVM is older than the processor.

PoCL asks LLVM for the processor's name and compiles for that target. An LLVM older than the processor
answers with an older relative (LLVM 14 takes Zen 4, which has AVX-512, for ``znver3``, which does not) or with
``generic``, which PoCL then refuses: no kernel builds on a Zen 5. PoCL has no option for this name. So it is replaced
in the device's record, before anything is built, by a name that an older LLVM knows and whose instructions the
processor has. Any other name is kept. PoCL 4 and later of a Linux distribution take all processors with AVX-512 for
``skylake-avx512``, so they lack VNNI; but PoCL 7 compiles all of a program for what its own library was compiled for,
and ends the process where that lacks an instruction that a kernel asks for.
"""

import ctypes
import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_POCL = "Portable Computing Language"
_CPU = 1 << 1  # CL_DEVICE_TYPE_CPU
_RECORD_BYTES = 1024  # of struct _cl_device_id, as far as it is searched
_LONGEST_NAME = 64
_NEAR = 6  # fields after the target triple; names of PoCL's own libraries may come before the processor's
_LIBRARIES = ("kernel-", "host")
_NAMES: tuple[tuple[str, frozenset[str]], ...] = (  # the best first
    ("cascadelake", frozenset({"AVX512F", "AVX512CD", "AVX512BW", "AVX512DQ", "AVX512VL", "AVX512VNNI"})),
    ("skylake-avx512", frozenset({"AVX512F", "AVX512CD", "AVX512BW", "AVX512DQ", "AVX512VL"})),
    ("x86-64-v3", frozenset({"AVX2", "FMA3", "F16C"})),
    ("x86-64-v2", frozenset({"SSE42", "POPCNT"})),
    ("x86-64", frozenset({"SSE2"})),
)
# LLVM 14's name for a Zen 4, and for a Zen 5 and any other unknown processor; and better names.
_BETTER = {
    "znver3": frozenset({"cascadelake", "skylake-avx512"}),
    "generic": frozenset(name for name, _ in _NAMES),
}
_given: dict[str, Any] = {}  # names that PoCL points to, which must outlive it
_found: dict[tuple[int, str], str | None] = {}  # by device


class Name(NamedTuple):
    """A processor's name in a device's record, and the address of the pointer to it."""

    address: int
    text: str


def features() -> frozenset[str]:
    """Return the instruction sets that processor and system offer, by numpy's names, which asks ``cpuid``; empty if
    unknown.
    """
    core: Any = getattr(np, "_core", None) or np.core  # the latter in numpy 1
    known = getattr(core._multiarray_umath, "__cpu_features__", {})
    return frozenset(name for name, there in known.items() if there)


def best_name(available: frozenset[str]) -> str:
    """Return the name, known to LLVM 12 and later, with the most instructions of which all are available."""
    return next((name for name, needed in _NAMES if needed <= available), _NAMES[-1][0])


def better_name(current: str, available: frozenset[str]) -> str | None:
    """Return the name to compile for in place of ``current``, or None if that one is, or may be, as good."""
    best = best_name(available)
    return best if best in _BETTER.get(current, ()) else None


def name_processor(device: Any) -> str | None:
    """Give a PoCL CPU device the best name for this processor, if its own promises too little.

    device: a pyopencl Device, for which nothing has been built yet, or a sub-device. Returns the name that its compiler
    uses from now on; None on other platforms, and if the name is not found in the device's record.
    """
    if device.platform.name != _POCL or not device.type & _CPU:
        return None
    key = device.int_ptr, device.name
    if key not in _found:
        whole = device.parent_device  # PoCL compiles for the record of the whole device
        if whole is not None:
            name_processor(whole)
        _found[key] = _renamed(device.int_ptr)
    return _found[key]


def _renamed(record: int) -> str | None:
    name = name_in(record)
    if name is None:
        return None
    better = better_name(name.text, features())
    if better is None:
        return name.text
    write_name(name.address, better)
    return better


def write_name(address: int, text: str) -> None:
    """Make the pointer at an address of a device's record point to another name."""
    kept = _given.setdefault(text, ctypes.create_string_buffer(text.encode()))
    ctypes.c_uint64.from_address(address).value = ctypes.addressof(kept)


def name_in(record: int) -> Name | None:
    """Find the processor's name in a device's record: after the target triple, of which there must be exactly one.

    Memory is read by a system call, which reports unmapped addresses as an error.
    """
    try:
        with Path("/proc/self/mem").open("rb", buffering=0) as memory:
            fields = struct.unpack(f"<{_RECORD_BYTES // 8}Q", _read(memory, record, _RECORD_BYTES))
            texts = [_read(memory, field, _LONGEST_NAME).split(b"\0")[0] for field in fields]
    except (OSError, struct.error):
        return None
    triples = [i for i, text in enumerate(texts) if text.startswith(b"x86_64-")]
    if len(triples) != 1:
        return None
    near = range(triples[0] + 1, min(triples[0] + 1 + _NEAR, len(texts)))
    names = [(i, texts[i].decode("ascii", "replace")) for i in near if len(texts[i]) > 2]
    return next((Name(record + 8 * i, text) for i, text in names if not text.startswith(_LIBRARIES)), None)


def _read(memory: Any, address: int, size: int) -> bytes:
    """Return bytes of this process's memory, as many as are mapped."""
    if not 4096 <= address < 1 << 47:
        return b""
    try:
        memory.seek(address)
        return bytes(memory.read(size))
    except OSError:
        return b""
