"""as_cpu.sh: a command that takes this machine for another processor."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from litecl.delegate.opencl.environment import POCL
from support import devices

_ROOT = Path(__file__).parents[2]
_RUN = """
import sys
sys.path.insert(0, "tests")
from litecl.delegate import CLDelegate
from litecl.delegate.opencl.probes.capabilities import capabilities
from litecl.interpreter import Interpreter
from litecl.perf.feeds import run_on
from support import compare, devices
from support.all_cases import DEVICE_CASES, content, expected

options = {"device": devices.several_threads(), "cache_dir": sys.argv[1], "strict": True}
for name in ("CONV_2D-INT8 x INT8, 1x1", "ADD_N-five", "SOFTMAX"):
    case = next(case for case in DEVICE_CASES if repr(case).startswith(name))
    interpreter = Interpreter(model_content=content(case), delegates=[CLDelegate(**options)])
    for got, wanted in zip(run_on(interpreter, case.feeds), expected(case), strict=True):
        compare.assert_close(got, wanted, compare.DEVICE.get(wanted.dtype.name, 0.0))
device = devices.tested()[0]
able = capabilities(device)
print(able.vector_width(16), "__AVX512F__" in able.macros, device.native_vector_width_float)
"""


def test_another_processor_needs_no_package_of_the_tests() -> None:
    """as_cpu.sh runs commands of fresh environments too."""
    program = "import sys; sys.modules['pytest'] = None; import support.pocl_processor"
    subprocess.run([sys.executable, "-c", program], cwd=_ROOT / "tests", check=True)


@pytest.mark.skipif(not any(device.platform.name == POCL for device in devices.tested()), reason="PoCL only")
@pytest.mark.parametrize(("cpu", "width"), [("wide", "8"), ("x86-64", "4")])
def test_models_are_right_as_on_another_processor(cpu: str, width: str, tmp_path: Path) -> None:
    """An AVX2 machine whose device claims vectors of 16 floats, and one with SSE alone."""
    command = ["tools/as_cpu.sh", cpu, sys.executable, "-c", _RUN, str(tmp_path)]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    if "this machine has no" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.returncode == 0, done.stderr
    *found, reported = done.stdout.split()
    assert found == [width, "False"]
    assert cpu != "wide" or reported == "16"


_SIGNALS = """
import ctypes, faulthandler, mmap, signal, sys
sys.path.insert(0, "tests")
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from support import devices, small_models

faulthandler.enable()
model, heard = small_models.chain(), []
Interpreter(model, delegates=[CLDelegate(device=devices.tested()[0], cache_dir=None)]).allocate_tensors()
import ai_edge_litert.interpreter as peer  # as_cpu's handler, after that of LLVM in PoCL
try:
    signal.raise_signal(signal.SIGINT)  # LLVM restores faulthandler's
except KeyboardInterrupt:
    print("interrupted")
signal.signal(signal.SIGILL, lambda *frame: print("heard"))
interpreter = peer.Interpreter(model_content=write(model))
interpreter.allocate_tensors()
interpreter.invoke()
print("answered", flush=True)
if sys.argv[1] == "sent":
    signal.raise_signal(signal.SIGILL)
else:
    signal.signal(signal.SIGILL, signal.SIG_DFL)
    memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(bytes((0x0f, 0x0b)))  # ud2, but none of as_cpu's
    ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))()
"""


@pytest.mark.parametrize("end", ["sent", "illegal"])
def test_litert_is_limited_whatever_others_do_with_signals(end: str) -> None:
    command = ["tools/as_cpu.sh", "x86-64-v3", sys.executable, "-c", _SIGNALS, end]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=120, check=False)
    if "this machine has no" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.stdout.split() == ["interrupted", "answered", *(["heard"] if end == "sent" else [])], done.stderr
    assert done.returncode == (0 if end == "sent" else -signal.SIGILL), done.stderr
