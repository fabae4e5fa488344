"""Functions that a kind of device has in its own way: in tables that only its room imports."""

import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from litecl.delegate.cl_op import Call, ClOp
from litecl.delegate.gpu.own import OWN
from litecl.delegate.ops import CL_OPS
from litecl.interpreter.file.writer import write
from litecl.interpreter.ops.conv_2d import CONV_2D
from support import by_name, small_models
from support.loop_models import FLOAT, INT, below, next_, plus, while_model
from support.lowerings import CPU, GPU, convolution


def test_a_processor_loads_nothing_that_serves_gpus(tmp_path: Path) -> None:
    cases = (
        ("conv_2d", "CONV_2D", "3x3 SAME"),
        ("integer_device", "CONV_2D", "INT8, 3x3, 16 to 33"),
        ("integer_device", "DEPTHWISE_CONV_2D", "INT8, 3x3, 4"),
        ("hybrid", "FULLY_CONNECTED", "8 bits, 9 x 64 to 130"),
    )
    loop = while_model([((), INT), ((3,), FLOAT)], below(4), lambda g, x: [next_(g, x[0]), plus(g, x[1], x[1])])
    contents = [*(by_name.case_of(*case)[0] for case in cases), write(small_models.lstm()), write(loop)]
    for i, content in enumerate(contents):
        (tmp_path / f"{i}.tflite").write_bytes(content)
    code = """if True:
        import glob, sys
        from litecl.delegate import CLDelegate
        from litecl.interpreter import Interpreter
        for file in sorted(glob.glob("*.tflite")):
            interpreter = Interpreter(file, delegates=[CLDelegate("native", strict=True)])
            interpreter.allocate_tensors()
            interpreter.invoke()
            assert interpreter.delegation_report().counters.kernel_launches, file
        print(*(name for name in sys.modules if name.startswith(("litecl.delegate.gpu", "litecl.delegate.opencl"))))
    """
    ran = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert ran.stdout.split() == []


def test_a_gpu_has_its_own_way_where_the_table_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a record that was made from another one; else the shared way is everybody's."""
    call = convolution((1, 14, 14, 64), (128, 1, 1, 64), 1, CPU)[1]
    shared, its_own = (lambda call, name=name: [name] for name in ("shared", "a GPU's"))
    record = ClOp(CONV_2D, claim=lambda *node: None, lower=shared)
    assert [record.steps(replace(call, target=target)) for target in (CPU, GPU)] == [["shared"], ["shared"]]
    monkeypatch.setitem(OWN, shared, its_own)
    for each in (record, replace(record, fuses_activation=True)):
        assert [each.steps(replace(call, target=target)) for target in (CPU, GPU)] == [["shared"], ["a GPU's"]]
    for lower in (lambda call: ["other"], _Unhashable()):
        other = replace(record, lower=lower)
        assert [other.steps(replace(call, target=target)) for target in (CPU, GPU)] == [["other"], ["other"]]


@dataclass
class _Unhashable:
    """A user's lowering with options of its own."""

    name: str = "other"

    def __call__(self, call: Call) -> list[Any]:
        return [self.name]


def test_a_record_needs_a_lowering() -> None:
    with pytest.raises(TypeError, match="lower"):
        ClOp(CONV_2D, claim=lambda *node: None)
    with pytest.raises(TypeError, match="gpu"):
        ClOp(CONV_2D, claim=lambda *node: None, gpu=CL_OPS[CONV_2D].default.lower)
