"""Device operators of a user's own: claimed, alone and within a region's kernel, and left where they fail."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.delegate import Call, CLDelegate, ClOp, Launch
from litecl.delegate.kit.claims import takes
from litecl.delegate.kit.schedule import elements
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import KernelBuildError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model, TensorSpec
from litecl.interpreter.op import Inputs, NoOptions, Op, Specs
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.unary import COS, NEG, SIN, SQUARE
from litecl.interpreter.schema import TensorType
from support.build import Graph, model, randn

RNG = np.random.default_rng(31)
KERNEL = """#include "common.h"
KERNEL void scale(ITEM __global const float *x, __global float *y, const int n, const int per_item, const float by) {
    SHARE(n, per_item);
    for (int i = start; i < end; ++i) y[i] = by * x[i] + SHIFT;
}
"""


@dataclass(frozen=True)
class ScaleOptions:
    """A factor."""

    by: float = 1.0


def _infer(options: ScaleOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = inputs
    assert x is not None
    return [TensorSpec(x.type, x.shape)]


def _run(options: ScaleOptions, inputs: Inputs) -> list[np.ndarray]:
    (x,) = inputs
    return [np.float32(options.by) * x + np.float32(1)]


SCALE = Op("mine.Scale", options=ScaleOptions, infer=_infer, run=_run, custom=True)


def device_op(kernel: Path) -> ClOp:
    """The operator with the kernel in a file."""

    def lower(call: Call) -> list[Launch]:
        x, (y,) = call.input(0), call.outputs
        share = elements(str(kernel.with_suffix("")), x.spec.size, call.target)
        by = np.float32(call.options.by)
        return [share.launch("scale", (x, y, *share.args, by), {"SHIFT": 1.0})]

    return ClOp(SCALE, claim=takes(TensorType.FLOAT32), lower=lower)


def network(others: int) -> Model:
    """The custom operator between operators of litecl's."""
    g = Graph()
    tensor = g.input((3, 50))
    for op in (NEG, SIN, SQUARE, COS)[:others]:  # no two of them are a chain
        tensor = g.op(op, [tensor], NoOptions())
    return model(g.build(g.op(SCALE, [tensor], ScaleOptions(by=2.5))))


def run(content: bytes, **options: Any) -> tuple[np.ndarray, Interpreter]:
    """One invoke on fixed input."""
    interpreter = Interpreter(content, custom_ops={"mine.Scale": SCALE}, delegates=[CLDelegate(**options)])
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, randn(np.random.default_rng(0), 3, 50))
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), interpreter


@pytest.mark.parametrize("others", [0, 4], ids=["alone", "in a region's kernel"])
def test_the_device_runs_a_kernel_of_the_users(tmp_path: Path, others: int) -> None:
    (tmp_path / "scale.cl").write_text(KERNEL)
    content = write(network(others))
    expected, _ = run(content, deny_ops=["mine.Scale"])
    got, interpreter = run(content, custom_ops=[device_op(tmp_path / "scale.cl")], cache_dir=tmp_path / "cache")
    np.testing.assert_allclose(got, expected, atol=1e-6)
    report = interpreter.delegation_report()
    assert report.claimed == len(report.nodes)
    assert report.counters.kernel_launches == 1


def test_the_log_of_a_kernel_within_a_region_is_told(tmp_path: Path) -> None:
    (tmp_path / "scale.cl").write_text("KERNEL void scale(ITEM int) { no C }")
    with pytest.raises(KernelBuildError, match=r"error: .*'no'"):
        run(write(network(4)), custom_ops=[device_op(tmp_path / "scale.cl")], strict=True)


@pytest.mark.parametrize("source", [None, "KERNEL void scale(ITEM int) { no C }"], ids=["no file", "no C"])
def test_a_kernel_that_cannot_be_built_leaves_the_cpu(tmp_path: Path, source: str | None) -> None:
    if source is not None:
        (tmp_path / "scale.cl").write_text(source)
    content = write(network(0))
    expected, _ = run(content, deny_ops=["mine.Scale"])
    got, interpreter = run(content, custom_ops=[device_op(tmp_path / "scale.cl")])
    np.testing.assert_array_equal(got, expected)
    (failure,) = interpreter.delegation_report().failures
    assert "scale" in failure
    with pytest.raises(KernelBuildError, match="scale"):
        run(content, custom_ops=[device_op(tmp_path / "scale.cl")], strict=True)


def test_without_a_device_operator_the_interpreter_runs_it() -> None:
    _, interpreter = run(write(network(0)))
    (row,) = interpreter.delegation_report().nodes
    assert row.reason == "no device kernel for mine.Scale"


def test_a_custom_operator_may_have_the_name_of_another(tmp_path: Path) -> None:
    """It runs by its own kernel, between operators that would otherwise be one node with it."""
    (tmp_path / "scale.cl").write_text(KERNEL)
    named = replace(SCALE, name=SQUARE.name)
    g = Graph()
    x = g.input((3, 50))
    double = g.op(MUL, [x, x], MulOptions())
    content = write(model(g.build(g.op(ADD, [g.op(named, [double], ScaleOptions(2.5)), double], AddOptions()), x)))
    results = []
    for delegates in ([], [CLDelegate(custom_ops=[replace(device_op(tmp_path / "scale.cl"), op=named)], strict=True)]):
        interpreter = Interpreter(content, custom_ops={named.name: named}, delegates=delegates)
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, randn(np.random.default_rng(0), 3, 50))
        interpreter.invoke()
        results.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    np.testing.assert_allclose(*results, rtol=1e-6)
