"""``pytest --gaps`` in separate processes: it finds writes between tensors, and none in litecl's kernels."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly  # tests within a test

_TESTS = Path(__file__).parents[1]
_POKED = """
import numpy as np, pyopencl as cl
from support import devices, gaps
from support.by_name import case_of
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter

gaps.leave()

def run():
    content, feeds = case_of("vector_width", "ADD", "64")
    interpreter = Interpreter(model_content=content, delegates=[CLDelegate(device=devices.tested()[0])])
    interpreter.allocate_tensors()
    for detail, feed in zip(interpreter.get_input_details(), feeds, strict=True):
        interpreter.set_tensor(detail["index"], feed)
    interpreter.invoke()

run()
assert gaps.written() == []
run()
(memory,) = gaps._live
start, end = next(iter(gaps._gaps(memory)))
cl.enqueue_copy(memory._device.queue, memory.arena, np.zeros(3, np.uint8), dst_offset=start + 5)
print(gaps.written())
"""


def _run(*arguments: str) -> str:
    paths = os.pathsep.join((str(_TESTS), os.environ.get("PYTHONPATH", "")))
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": paths},
        cwd=_TESTS.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_write_between_tensors_is_found() -> None:
    assert _run("-c", _POKED).strip() == "['3 bytes were written, from 5 bytes behind a tensor on']"


def test_kernels_of_gpus_write_nothing_between_tensors() -> None:
    """Nor do their results depend on the content of the gaps."""
    options = ("--gaps", "-q", "-p", "no:cacheprovider", "-p", "no:xdist")
    assert " passed" in _run("-m", "pytest", *options, "tests/delegate/test_gpu_launches.py")
