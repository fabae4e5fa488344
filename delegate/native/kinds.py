"""The kinds of machines that litecl can compile for, and this machine's kind."""

import platform
import sys
from collections.abc import Mapping

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import DelegateError

HOST, NATIVE = "host", "native"  # this machine, and its processor


@dataclass(frozen=True)
class Kind:
    """A system and an architecture.

    triple: clang's name for it. system: its ``sys.platform``. machines: possible values of ``platform.machine()``, in
    lower case. bits: of a pointer. option: clang's option that takes a processor. base: the oldest supported
    processor. examples: other processors.
    """

    name: str
    triple: str
    system: str
    machines: tuple[str, ...]
    bits: int
    option: str
    base: str
    examples: tuple[str, ...] = ()

    @property
    def architecture(self) -> str:
        """Return the first part of the name."""
        return self.name.partition("-")[0]


_X86, _ARM64 = ("x86_64", "amd64"), ("aarch64", "arm64")
_LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")
_BOARDS = ("cortex-a53", "cortex-a72", "cortex-a76", "neoverse-n1")
KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("x86_64-linux", "x86_64-linux-gnu", "linux", _X86, 64, "-march", "x86-64", (*_LEVELS, "znver3")),
        Kind("aarch64-linux", "aarch64-linux-gnu", "linux", _ARM64, 64, "-mcpu", "generic", _BOARDS),
        # A 32-bit system may run on a 64-bit processor. The base has NEON with fused multiply-add, and divides.
        Kind(
            *("armv7-linux", "arm-linux-gnueabihf", "linux", ("armv7l", "armv8l", *_ARM64), 32),
            *("-mcpu", "cortex-a7", ("cortex-a9", "cortex-a53", "cortex-a72")),
        ),
        Kind("riscv64-linux", "riscv64-linux-gnu", "linux", ("riscv64",), 64, "-march", "rv64gc", ("rv64gcv",)),
        Kind("aarch64-macos", "arm64-apple-macosx11.0", "darwin", _ARM64, 64, "-mcpu", "apple-m1", ("apple-m2",)),
        Kind("x86_64-macos", "x86_64-apple-macosx11.0", "darwin", _X86, 64, "-march", "x86-64", _LEVELS),
        Kind("x86_64-windows", "x86_64-windows-gnu", "win32", _X86, 64, "-march", "x86-64", _LEVELS),
    )
}


@dataclass(frozen=True)
class Machine:
    """A kind of machine, and the oldest processor to support, by clang's name."""

    kind: Kind
    processor: str

    @property
    def name(self) -> str:
        """Return the name that ``machine`` accepts."""
        return f"{self.kind.name}:{self.processor}"

    @property
    def options(self) -> tuple[str, ...]:
        """Return clang's target options."""
        return "-target", self.kind.triple, f"{self.kind.option}={self.processor}"


def machine(name: str) -> Machine:
    """Parse a machine's name: KIND, KIND:PROCESSOR, or "host". Raises DelegateError."""
    if name == HOST:
        return Machine(here(), NATIVE)
    kind, _, processor = name.partition(":")
    if kind not in KINDS:
        raise DelegateError(f"there is no machine {name!r}: expected {HOST}, or one of {', '.join(KINDS)}, "
                            "optionally with a colon and a processor")  # fmt: skip
    return Machine(KINDS[kind], processor or KINDS[kind].base)


def here() -> Kind:
    """Return this machine's kind. Raises DelegateError if it is unsupported."""
    kind = known()
    if kind is None:
        raise DelegateError(f"libraries cannot be made for this machine: {described()}")
    return kind


def known() -> Kind | None:
    """Return this machine's kind; None if it is unsupported."""
    return next((kind for kind in KINDS.values() if is_here(kind)), None)


def is_here(kind: Kind) -> bool:
    """Return whether this machine is of a kind."""
    is_32_bits = sys.maxsize < 1 << 32
    return (
        sys.platform == kind.system and platform.machine().lower() in kind.machines and is_32_bits == (kind.bits == 32)
    )


def described() -> str:
    """Describe this machine in a few words."""
    return f"{sys.platform}, {platform.machine()}, {64 if sys.maxsize >> 32 else 32} bits"
