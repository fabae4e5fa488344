"""Kernels of a user's own whose work-items form groups: local memory, barriers, numbers that OpenCL C gives."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.delegate import Call, CLDelegate, ClOp, Launch
from litecl.delegate.cl_op import Local
from litecl.delegate.kit.claims import takes
from litecl.delegate.native import compiler
from litecl.delegate.plan.region_program import region_program
from litecl.delegate.plan.steps import Work
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops.unary import COS, NEG, SIN, SQUARE
from litecl.interpreter.schema import TensorType
from support.build import Graph, model
from support.devices import named, with_native

ROWS, COLUMNS = 6, 40
X = np.random.default_rng(41).standard_normal((ROWS, COLUMNS)).astype(np.float32)
CENTER = Op(
    "mine.Center",
    options=NoOptions,
    infer=lambda options, inputs: [TensorSpec(TensorType.FLOAT32, (ROWS, COLUMNS))],
    run=lambda options, inputs: [np.full((ROWS, COLUMNS), 7, np.float32)],  # never right: the CPU must not have run it
    custom=True,
)
OTHERS = ((NEG, np.negative), (SIN, np.sin), (SQUARE, np.square), (COS, np.cos))  # no two of them are a chain
needs_native = pytest.mark.skipif(compiler.found() is None, reason="no compiler for the processor: pip install ziglang")

GROUP = """
    const int item = get_local_id(0), items = get_local_size(0), row = get_group_id(0);
    float sum = 0;
    for (int i = item; i < n; i += items) sum += x[row * n + i];
    sums[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    float all = 0;
    for (int i = 0; i < items; ++i) all += sums[i];
    for (int i = item; i < n; i += items) y[row * n + i] = x[row * n + i] - all / n;
}
"""
ARRAYS = "__global const float *x, __global float *y, const int n"
ARGUMENT = f'#include "common.h"\nKERNEL void center(ITEM {ARRAYS}, __local float *sums) {{ {GROUP}'
VARIABLE = f'#include "common.h"\nKERNEL void center(ITEM {ARRAYS}) {{ __local float sums[8]; {GROUP}'
PLAIN = f"__kernel void center({ARRAYS}, __local float *sums) {{ {GROUP}"
STRIDED = f"""#include "common.h"
KERNEL void center(ITEM {ARRAYS}) {{
    for (int row = get_global_id(0); row < {ROWS}; row += get_global_size(0)) {{
        float sum = 0;
        for (int i = 0; i < n; ++i) sum += x[row * n + i];
        for (int i = 0; i < n; ++i) y[row * n + i] = x[row * n + i] - sum / n;
    }}
}}
"""


def device_op(
    folder: Path,
    source: str,
    group: int = 1,
    groups: int = ROWS,
    local_bytes: int | None = None,
    *,
    fails: bool = False,
) -> ClOp:
    """Return a device operator whose kernel runs in a number of groups. local_bytes: of a local memory argument."""
    (folder / "center.cl").write_text(source)

    def lower(call: Call) -> list[Launch]:
        if fails:
            raise ValueError("no lowering")
        local = () if local_bytes is None else (Local(local_bytes),)
        args = (call.input(0), call.outputs[0], np.int32(COLUMNS), *local)
        return [Launch(str(folder / "center"), "center", args, (group * groups,), (group,))]

    return ClOp(CENTER, claim=takes(TensorType.FLOAT32), lower=lower)


def run(op: ClOp, others: int, **options: Any) -> tuple[np.ndarray, Interpreter]:
    """Run the operator after some of litecl's; return its result, and the interpreter."""
    g = Graph()
    tensor = g.input((ROWS, COLUMNS))
    for other, _ in OTHERS[:others]:
        tensor = g.op(other, [tensor], NoOptions())
    content = write(model(g.build(g.op(CENTER, [tensor], NoOptions()))))
    delegate = CLDelegate(custom_ops=[op], cache_dir=None, **options)
    interpreter = Interpreter(content, custom_ops={"mine.Center": CENTER}, delegates=[delegate])
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, X)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), interpreter


def wanted(others: int) -> np.ndarray:
    """In float64."""
    x = X.astype(np.float64)
    for _, function in OTHERS[:others]:
        x = function(x)
    return x - x.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("device", with_native(), ids=named)
@pytest.mark.parametrize("others", [0, 4], ids=["alone", "in a region's kernel"])
@pytest.mark.parametrize(
    ("source", "launched"),
    [(ARGUMENT, {"local_bytes": 4}), (VARIABLE, {}), (STRIDED, {"groups": 4}), (STRIDED, {})],
    ids=["local argument", "local variable", "several rows", "a row each"],
)
def test_a_group_of_one(tmp_path: Path, device: Any, others: int, source: str, launched: dict[str, Any]) -> None:
    got, interpreter = run(device_op(tmp_path, source, **launched), others, device=device, strict=True, num_threads=2)
    np.testing.assert_allclose(got, wanted(others), atol=1e-6)
    report = interpreter.delegation_report()
    assert report.claimed == len(report.nodes)


PLACES = """#include "common.h"
KERNEL void center(ITEM __global const float *x, __global float *y, const int n) {
    const int i = get_global_id(1) * get_global_size(0) + get_global_id(0);
    const int groups = get_num_groups(0) * 10 + get_num_groups(1), first = get_group_id(0) + get_group_id(1);
    y[i] = i + 1000 * groups + 100000 * first + get_local_id(1) + get_local_size(0) + get_global_offset(0);
}
"""


@pytest.mark.parametrize("device", with_native(), ids=named)
@pytest.mark.parametrize("others", [0, 4], ids=["alone", "in a region's kernel"])
def test_numbers_in_two_dimensions(tmp_path: Path, device: Any, others: int) -> None:
    (tmp_path / "center.cl").write_text(PLACES)

    def lower(call: Call) -> list[Launch]:
        args = (call.input(0), call.outputs[0], np.int32(0))
        return [Launch(str(tmp_path / "center"), "center", args, (COLUMNS, ROWS), (1, 1))]

    op = ClOp(CENTER, claim=takes(TensorType.FLOAT32), lower=lower)
    got, _ = run(op, others, device=device, strict=True)
    y, x = np.indices((ROWS, COLUMNS))
    expected = y * COLUMNS + x + 1000 * (COLUMNS * 10 + ROWS) + 100000 * (x + y) + 1
    np.testing.assert_array_equal(got, expected)


@needs_native
@pytest.mark.parametrize("others", [0, 4])
@pytest.mark.parametrize(
    ("launched", "reason"),
    [
        ({"group": 8, "local_bytes": 32}, "kernel center has groups of 8 work-items, and the device runs at most 1"),
        ({"local_bytes": 1 << 16}, "kernel center takes 65536 bytes of local memory, of 32768"),
    ],
    ids=["items", "memory"],
)
def test_groups_that_the_processor_does_not_run(
    tmp_path: Path, others: int, launched: dict[str, Any], reason: str
) -> None:
    """The CPU runs that node alone, and the report says why; it is no failure of the device."""
    _, interpreter = run(device_op(tmp_path, PLAIN, **launched), others, device="native", strict=True)
    report = interpreter.delegation_report()
    (row,) = [row for row in report.nodes if not row.claimed]
    assert (row.op, reason in row.reason) == ("mine.Center", True), row
    assert (report.claimed, report.failures) == (others, ())


@pytest.mark.parametrize("device", [device for device in with_native() if device != "native"], ids=named)
@pytest.mark.parametrize("others", [0, 4], ids=["alone", "beside others"])
def test_opencl_runs_such_groups(tmp_path: Path, device: Any, others: int) -> None:
    got, interpreter = run(device_op(tmp_path, PLAIN, 8, local_bytes=32), others, device=device, strict=True)
    np.testing.assert_allclose(got, wanted(others), atol=1e-6)
    assert "work-items share local memory" in str(interpreter.delegation_report().partitions[0].manner)


@needs_native
def test_the_most_local_memory(tmp_path: Path) -> None:
    got, _ = run(device_op(tmp_path, ARGUMENT, local_bytes=1 << 15), 0, device="native", strict=True, num_threads=2)
    np.testing.assert_allclose(got, wanted(0), atol=1e-6)


@needs_native
@pytest.mark.parametrize(
    "source",
    [PLAIN, STRIDED.replace("get_global_size(0)", "get_work_dim()")],
    ids=["not written like litecl's", "what a region does not know"],
)
def test_what_the_processor_cannot_compile(tmp_path: Path, source: str) -> None:
    """The CPU runs the region, and the report has the compiler's words."""
    op = device_op(tmp_path, source, local_bytes=4 if source == PLAIN else None)
    got, interpreter = run(op, 0, device="native")
    np.testing.assert_array_equal(got, 7)
    (failure,) = interpreter.delegation_report().failures
    assert "center.cl" in failure
    with pytest.raises(DelegateError, match=r"center\.cl"):
        run(op, 0, device="native", strict=True)


@needs_native
def test_a_lowering_that_fails(tmp_path: Path) -> None:
    """It fails as it does for a device that runs all groups: when the region is planned."""
    with pytest.raises(DelegateError, match="no lowering"):
        run(device_op(tmp_path, ARGUMENT, fails=True), 0, device="native", strict=True)


@pytest.mark.parametrize(
    ("group", "local", "apart", "has_local", "fits"),
    [
        (1, False, False, False, True),
        (1, True, False, False, False),
        (1, True, False, True, True),
        (8, False, False, True, False),
        (8, False, True, False, True),
    ],
)
def test_which_launches_a_region_takes(*, group: int, local: bool, apart: bool, has_local: bool, fits: bool) -> None:
    args = (Local(16),) if local else ()
    launch = Launch("/a/center", "center", args, (group,), (group,), apart=apart)
    assert (region_program([Work(0, launch)], lambda arg: 0, has_local=has_local) is not None) == fits
