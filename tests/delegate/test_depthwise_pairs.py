"""Depthwise convolutions of bytes by pairs of words: what processors with AVX2 run, on any that has it."""

from dataclasses import replace

import pytest

from litecl.cases import Case
from litecl.cases.integer_conv import CASES
from litecl.delegate import CLDelegate, devices
from litecl.delegate.cpu.target import CpuTarget
from litecl.delegate.native import compiler
from litecl.interpreter.file.writer import write
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D
from support.by_name import Fed, agrees, launches

_KERNEL = "quantized_depthwise_pairs"


def _fed(case: Case) -> Fed:
    return write(case.model()), list(case.feeds)


def _kernels(case: Case, width: int) -> set[str]:
    """The kernels that run a case on a CPU with vectors of so many lanes."""
    return {launch.kernel for launch in launches(_fed(case), CpuTarget(width, 1))}


_PAIRS = [case for case in CASES if case.op == DEPTHWISE_CONV_2D and _kernels(case, 8) == {_KERNEL}]


def test_few_channels_are_multiplied_in_pairs() -> None:
    channels = {case.inputs[0].shape[3] for case in _PAIRS}
    assert {8, 9, 12, 16, 24, 31} <= channels
    assert channels <= {*range(8, 32)}
    assert not any(_KERNEL in _kernels(case, width) for case in _PAIRS for width in (4, 16))


@pytest.mark.parametrize("case", _PAIRS, ids=lambda case: case.name)
def test_a_processor_with_avx2(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    found = compiler.found(None)
    if found is None or "__AVX2__" not in found.macros:
        pytest.skip("no compiler for a processor with AVX2")
    avx2 = replace(found, target=("-march=x86-64-v3",), known=None)
    monkeypatch.setattr(compiler, "found", lambda directory=None: avx2)
    monkeypatch.setattr(devices, "_DEVICES", {})
    agrees(_fed(case), [CLDelegate(device="native", num_threads=1, strict=True)])
