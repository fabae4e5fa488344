"""Depthwise convolutions of bytes from lines of fours, for processors of each level that this one can stand in for."""

import pytest

from litecl.cases import Case
from litecl.cases.integer_conv import CASES
from litecl.delegate import CLDelegate
from litecl.delegate.cpu.target import CpuTarget
from litecl.interpreter.file.writer import write
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D
from support.by_name import Fed, agrees, launches
from support.levels import stand_in

_KERNEL = "quantized_depthwise_lines"
_LEVELS = {8: ("x86-64-v3", "__AVX2__"), 16: ("x86-64-v4", "__AVX512BW__")}  # neither multiplies bytes


def _fed(case: Case) -> Fed:
    return write(case.model()), list(case.feeds)


def _launched(case: Case, width: int) -> dict[str, dict[str, str | int | float]]:
    """Return the kernels, with their macros, that run a case on a CPU with vectors of a width."""
    return {launch.kernel: dict(launch.defines) for launch in launches(_fed(case), CpuTarget(width, 1))}


_OF_BYTES = [case for case in CASES if case.op == DEPTHWISE_CONV_2D and "INT16" not in case.name]
_LINES = [(case, width) for width in _LEVELS for case in _OF_BYTES if _KERNEL in _launched(case, width)]


def test_wide_vectors_and_four_channels_or_whole_pixels() -> None:
    for width in _LEVELS:
        channels = {case.inputs[0].shape[3] for case, its in _LINES if its == width}
        assert {1, 2, 4, 5, 8, 9, 12, 16, 24, 31} <= channels
        assert 3 not in channels
        macros = [_launched(case, width)[_KERNEL] for case, its in _LINES if its == width]
        for name, values in {"GROUPS": {1, 2, 3}, "PARTS": {1, 2}, "FLAT": {None, width // 4, width}}.items():
            assert values <= {macro.get(name) for macro in macros}, name
        assert {None, 3} <= {macro.get("KERNEL_WIDTH") for macro in macros}
    assert not any(_KERNEL in _launched(case, 4) for case in _OF_BYTES)


@pytest.mark.parametrize(("case", "width"), _LINES, ids=lambda each: getattr(each, "name", str(each)))
def test_a_processor_without_products_of_bytes(case: Case, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, *_LEVELS[width])
    agrees(_fed(case), [CLDelegate(device="native", num_threads=1, strict=True)])
