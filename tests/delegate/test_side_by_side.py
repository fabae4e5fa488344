"""Regions run side by side although one of them takes for ever: nothing waits for a thread that waits for the device.

A region is stopped in the middle, by a kernel that waits for an input of its own to become 1. What a shared queue or
Python's lock would hold up then comes to no end, so the script is a process of its own with a time limit. On a device
of several threads all of them would wait for the region, as they are meant to.
"""

import subprocess
import sys
from pathlib import Path

import pytest

_TESTS = Path(__file__).parents[1]
_TIMEOUT_S = 120
_SCRIPT = """
import sys, threading
import numpy as np
sys.path.insert(0, sys.argv[1])
from litecl.delegate import Call, CLDelegate, ClOp, Launch
from litecl.delegate.kit.claims import takes
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.schema import TensorType
from support.build import Graph, model

options = {"num_threads": 1, "queue_loops": sys.argv[2] == "queued"}
GATE = Op("mine.Gate", options=NoOptions, infer=lambda o, specs: [specs[0]], run=lambda o, xs: [xs[0]], custom=True)

def lower(call: Call) -> list[Launch]:
    return [Launch(sys.argv[1] + "/support/gate", "gate", (call.input(0), call.outputs[0]), (1,))]

gate = ClOp(GATE, claim=takes(TensorType.FLOAT32), lower=lower)

def opened(width, gated=False):
    g = Graph()
    x = g.input((1, width))
    x = g.op(GATE, [x], NoOptions()) if gated else x
    for _ in range(4):
        x = g.op(SOFTMAX, [x], SoftmaxOptions(beta=8.0))
    delegate = CLDelegate(strict=True, custom_ops=[gate], **options)
    interpreter = Interpreter(model(g.build(x)), delegates=[delegate])
    interpreter.allocate_tensors()
    return interpreter

def result(interpreter):
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])

def right(interpreter, x):
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    x = x.astype(np.float64)
    for _ in range(4):
        x = np.exp(8.0 * x) / np.exp(8.0 * x).sum()
    np.testing.assert_allclose(result(interpreter), x, rtol=1e-4)

waiting, others = opened(1, gated=True), [opened(37), opened(5)]
for n in range(12):  # until it is known how long kernels take
    waiting.set_tensor(0, np.ones((1, 1), np.float32))
    waiting.invoke()
    right(others[0], np.full((1, 37), n / 12, np.float32))
    right(others[1], np.full((1, 5), n / 12, np.float32))
waiting.set_tensor(0, np.zeros((1, 1), np.float32))
result(waiting)
thread = threading.Thread(target=waiting.invoke, daemon=True)
thread.start()
for n in range(100):
    right(others[0], np.linspace(-1, n / 99, 37, dtype=np.float32)[None])
    right(others[1], np.linspace(n / 99, 1, 5, dtype=np.float32)[None])
others[0] = opened(37)
right(others[0], np.linspace(0, 1, 37, dtype=np.float32)[None])
assert thread.is_alive()
try:
    waiting.invoke()
except ModelError as error:
    assert "already running" in str(error)
else:
    raise AssertionError("no error")
waiting.tensor(0)()[...] = 1
thread.join()
assert result(waiting) == 1
"""


@pytest.mark.parametrize("mode", ["one kernel", "queued"])
def test_a_region_that_waits_holds_up_no_other(mode: str) -> None:
    command = [sys.executable, "-c", _SCRIPT, str(_TESTS), mode]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
