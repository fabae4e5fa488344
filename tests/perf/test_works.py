"""What launches could do: the kind of their arithmetic, its peak, and the bound that follows."""

import pytest

from litecl.delegate.devices import choose
from litecl.delegate.report import KernelRow, NodeRow, TensorRow
from litecl.perf import peak
from litecl.report.collect import works
from litecl.report.facts import Roofs


def _row(inputs: list[tuple[str, bool]], output: str) -> NodeRow:
    tensors = [TensorRow(i, "", name, (4,), 4, constant) for i, (name, constant) in enumerate(inputs)]
    return NodeRow(0, 0, "FULLY_CONNECTED", True, 0, "", tuple(tensors), (TensorRow(9, "", output, (4,), 4, False),))


@pytest.mark.parametrize(
    ("inputs", "output", "kind"),
    [
        ([("FLOAT32", False), ("FLOAT32", True)], "FLOAT32", "float32"),
        ([("FLOAT32", False), ("FLOAT16", True)], "FLOAT32", "float32"),
        ([("FLOAT32", False), ("INT8", True)], "FLOAT32", "int8"),
        ([("FLOAT32", False), ("INT4", True)], "FLOAT32", "int8"),
        ([("INT8", False)], "FLOAT32", "float32"),
        ([("UINT8", False), ("UINT8", True)], "UINT8", "int8"),
        ([("INT8", False), ("INT4", True)], "INT8", "int8"),
        ([("INT16", False), ("INT8", True)], "INT16", "int16"),
        ([("INT32", False), ("INT8", True)], "INT32", ""),
    ],
)
def test_what_kind_of_arithmetic_a_node_has(inputs: list[tuple[str, bool]], output: str, kind: str) -> None:
    assert works.arithmetic_of(_row(inputs, output)) == kind


def test_arithmetic_is_bounded_by_the_roof_of_its_kind() -> None:
    """A product of 1e6 operations in 10 us: 1 us at the peak of bytes, 4 us at that of floats; memory takes 2 us."""
    rows = [[KernelRow(0, 0, "gemm", "gemm", 0.01, 1_000_000, size_bytes=20_000)]]
    roofs = Roofs({"float32": 2.5e11, "int8": 1e12}, {1 << 20: 1e10})
    bounds = {"float32": ("arithmetic", 0.4), "int8": ("memory", 0.2), "int16": ("memory", 0.2), "": ("memory", 0.2)}
    for kind, bound in bounds.items():
        (launch,) = works.launches_of(rows, {(0, 0): "FULLY_CONNECTED"}, roofs, 1.0, {(0, 0): kind})
        assert (launch.arithmetic, launch.work.bound, launch.work.of_bound) == (kind, bound[0], pytest.approx(bound[1]))


def test_a_launch_above_the_roof_is_shown_as_it_was_measured() -> None:
    """The roof was measured too low: 1.6 times as much was done."""
    rows = [[KernelRow(0, 0, "gemm", "gemm", 0.01, 4_000_000, size_bytes=20_000)]]
    (launch,) = works.launches_of(
        rows, {(0, 0): "FULLY_CONNECTED"}, Roofs({"float32": 2.5e11}, {1 << 20: 1e10}), 1.0, {(0, 0): "float32"}
    )
    assert launch.work.of_bound == pytest.approx(1.6)
    (operator,) = works.operators_of([launch], [], {}, 1.0)
    assert operator.work.of_bound == pytest.approx(1.6)


def test_peaks_of_every_kind_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peak, "_RUNS", 1)
    device = choose(num_threads=1).open(profile=False, directory=None)
    found = {kind: peak.operations(device, kind) for kind in ("float32", *peak.INTEGERS)}
    assert all(1e6 < rate < 1e15 for rate in found.values())
