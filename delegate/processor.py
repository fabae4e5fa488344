"""Names the processor for PoCL's compiler where it is newer than the compiler, which otherwise makes little of it.

PoCL asks LLVM for the processor's name and compiles for what LLVM knows by that name. An LLVM older than the processor
answers with an older relative (LLVM 14 takes Zen 4, which has AVX-512, for ``znver3``, which has not) or with
``generic``, which its own compiler then refuses: no kernel at all builds on a Zen 5. PoCL has no option for this name.
So it is replaced in the record of the device, before anything is built: by a name that an older LLVM knows and whose
instructions the processor has.
"""

import ctypes
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

_RECORD_BYTES = 1024  # of struct _cl_device_id, as far as it is searched
_LONGEST_NAME = 64
_TOO_LITTLE = (b"generic", b"znver3")  # what LLVM 14 calls a Zen 5 (and all that it has no guess at), and a Zen 4
_NAMES: tuple[tuple[str, frozenset[str]], ...] = (
    ("cascadelake", frozenset({"AVX512F", "AVX512CD", "AVX512BW", "AVX512DQ", "AVX512VL", "AVX512VNNI"})),
    ("skylake-avx512", frozenset({"AVX512F", "AVX512CD", "AVX512BW", "AVX512DQ", "AVX512VL"})),
    ("x86-64-v3", frozenset({"AVX2", "FMA3", "F16C"})),
    ("x86-64-v2", frozenset({"SSE42", "POPCNT"})),
    ("x86-64", frozenset({"SSE2"})),
)
_given: dict[str, Any] = {}  # names that PoCL points at: they must outlive it


def features() -> frozenset[str]:
    """The instruction sets that the processor and the system offer, by numpy's names, which asks ``cpuid``."""
    core: Any = getattr(np, "_core", None) or np.core  # the latter in numpy 1
    return frozenset(name for name, there in core._multiarray_umath.__cpu_features__.items() if there)


def best_name(available: frozenset[str]) -> str:
    """The name known to LLVM 12 and later whose instructions are all available and are the most."""
    return next((name for name, needed in _NAMES if needed <= available), _NAMES[-1][0])


def name_processor(device: Any) -> str | None:
    """Gives a PoCL CPU device the best name for this processor, where its own says too little; the name, if it did.

    device: a pyopencl Device, for which nothing has been built yet. Nothing happens on other platforms, nor where the
    name is not found in the device's record exactly once, right behind the target triple.
    """
    if device.platform.name != "Portable Computing Language":
        return None
    at = _name_field(device.int_ptr)
    if at is None:
        return None
    field, current = at
    best = best_name(features())
    if current == b"znver3" and not best.endswith(("lake", "512")):
        return None  # it is one
    kept = _given.setdefault(best, ctypes.create_string_buffer(best.encode()))
    ctypes.c_uint64.from_address(field).value = ctypes.addressof(kept)
    return best


def _name_field(record: int) -> tuple[int, bytes] | None:
    """Where in a device's record the pointer to a name lies that says too little, and that name.

    Memory is read by way of the system, which answers with an error where there is none.
    """
    try:
        with Path("/proc/self/mem").open("rb", buffering=0) as memory:
            fields = struct.unpack(f"<{_RECORD_BYTES // 8}Q", _read(memory, record, _RECORD_BYTES))
            texts = [_read(memory, field, _LONGEST_NAME).split(b"\0")[0] for field in fields]
    except (OSError, struct.error):
        return None
    found = [
        i for i, (before, text) in enumerate(pairwise(texts), start=1)
        if text in _TOO_LITTLE and before.startswith(b"x86_64-")
    ]
    return (record + 8 * found[0], texts[found[0]]) if len(found) == 1 else None


def _read(memory: Any, address: int, size: int) -> bytes:
    """Bytes of this process, as many of them as there are."""
    if not 4096 <= address < 1 << 47:
        return b""
    try:
        memory.seek(address)
        return bytes(memory.read(size))
    except OSError:
        return b""
