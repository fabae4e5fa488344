"""PoCL 3.0 of PyPI on processors that are newer than it, for tests alone: without help no kernel builds on a Zen 5.

PoCL asks LLVM for the processor's name and compiles for that target. An LLVM older than the processor answers with an
older relative (LLVM 14 takes Zen 4, which has AVX-512, for ``znver3``, which does not) or with ``generic``, which PoCL
then refuses. PoCL has no option for this name. So tests replace it in the device's record, before anything is built, by
one that an older LLVM knows and whose instructions the processor has. A user's device for such a processor is
``native``.
"""

import ctypes
import struct
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

_POCL = "Portable Computing Language"
_CPU = 1 << 1  # CL_DEVICE_TYPE_CPU
_RECORD_BYTES = 1024  # of struct _cl_device_id, as far as it is searched
_LONGEST_NAME = 64
_NEAR = 6  # fields after the target triple; names of PoCL's own libraries may come before the processor's
_LIBRARIES = ("kernel-", "host")
LEVELS: tuple[tuple[str, frozenset[str]], ...] = (  # LLVM's names and what they need, by numpy's names; the best first
    ("cascadelake", frozenset({"AVX512F", "AVX512CD", "AVX512BW", "AVX512DQ", "AVX512VL", "AVX512VNNI"})),
    ("skylake-avx512", frozenset({"AVX512F", "AVX512CD", "AVX512BW", "AVX512DQ", "AVX512VL"})),
    ("x86-64-v3", frozenset({"AVX2", "FMA3", "F16C"})),
    ("x86-64-v2", frozenset({"SSE42", "POPCNT"})),
    ("x86-64", frozenset({"SSE2"})),
)
# LLVM 14's name for a Zen 4, and for a Zen 5 and any other unknown processor; and better names.
_BETTER = {
    "znver3": frozenset({"cascadelake", "skylake-avx512"}),
    "generic": frozenset(name for name, _ in LEVELS),
}
_given: dict[str, Any] = {}  # names that PoCL points to, which must outlive it
_seen: set[int] = set()


class Name(NamedTuple):
    """A processor's name in a device's record, and the address of the pointer to it."""

    address: int
    text: str


def watch() -> None:
    """Name the processor for every device that is listed from now on."""
    if find_spec("pyopencl") is None:
        return
    from litecl.delegate.opencl.devices import device

    listed = device._devices_of
    if getattr(listed, "is_watched", False):
        return

    def named(platform: Any, gpus: bool | None) -> list[Any]:
        found = listed(platform, gpus)
        for each in found:
            if platform.name == _POCL and each.type & _CPU and each.int_ptr not in _seen:
                _seen.add(each.int_ptr)
                _name(each.int_ptr)
        return found

    setattr(named, "is_watched", True)  # noqa: B010
    setattr(device, "_devices_of", named)  # noqa: B010  # mypy knows what is there as a function


def best() -> str:
    """Return the name, known to LLVM 12 and later, with the most instructions of which all are available."""
    from litecl.delegate.opencl.identity import features

    return next((level for level, needed in LEVELS if needed <= features()), LEVELS[-1][0])


def _name(record: int) -> None:
    name = name_in(record)
    if name is not None and (better := best()) in _BETTER.get(name.text, ()):
        write_name(name.address, better)


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
