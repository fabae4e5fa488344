"""The features that a pack requires of a processor, and those known of this machine's."""

import pytest

from litecl.delegate.native import compiler, features, kinds, packing
from litecl.delegate.native.cross import compiler_for

FOUND = compiler.found()
pytestmark = pytest.mark.skipif(
    FOUND is None or FOUND.source != compiler.OF_ZIGLANG, reason="no compiler for all machines: pip install ziglang"
)


def test_features_are_those_that_a_compiler_sees() -> None:
    """Clang asks the processor itself; litecl asks numpy and the system."""
    host = compiler_for(kinds.machine("host"))
    kind = kinds.here()
    base = compiler_for(kinds.Machine(kind, kind.base))
    needed = features.required(kind.architecture, host.macros, base.macros)
    assert features.missing(kind.architecture, needed) == []
    assert features.missing(kind.architecture, ["__AVX1024__"]) == ["__AVX1024__"]


@pytest.mark.parametrize(
    "name",
    [
        *("x86_64-linux:znver5", "x86_64-linux:sapphirerapids", "x86_64-windows:alderlake", "x86_64-linux:x86-64-v4"),
        *("aarch64-linux:cortex-a76", "aarch64-linux:neoverse-v2", "aarch64-macos:apple-m2", "armv7-linux:cortex-a9"),
        *("armv7-linux:cortex-a72", "riscv64-linux:rv64gcv", "aarch64-linux:ampere1b"),
    ],
)
def test_processors_whose_features_a_board_can_be_asked_for(name: str) -> None:
    machine = kinds.machine(name)
    oldest = compiler_for(kinds.Machine(machine.kind, machine.kind.base))
    needed = features.required(machine.kind.architecture, compiler_for(machine).macros, oldest.macros)
    expected = {
        "cortex-a76": "__ARM_FEATURE_DOTPROD",
        "cortex-a9": "__ARM_NEON",
        "rv64gcv": "__riscv_v",
        "znver5": "__SSE4A__",
        "sapphirerapids": "__AVX512VNNI__",
        "ampere1b": "__ARM_FEATURE_SHA3",
    }
    assert expected.get(machine.processor, next(iter(needed))) in needed


def test_every_mac_has_what_the_oldest_has() -> None:
    """Older versions of macOS do not tell of some features."""
    assert packing.target(kinds.machine("aarch64-macos"), None).features == ()
    newer = packing.target(kinds.machine("aarch64-macos:apple-m2"), None).features
    assert "__ARM_FEATURE_MATMUL_INT8" in newer
    assert "__ARM_FEATURE_DOTPROD" not in newer
