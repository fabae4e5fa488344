"""Processes: children of fork, spawn and forkserver, and many at once that share an empty cache folder.

Everything runs in a process of its own with a time limit, for what goes wrong here hangs.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_TIMEOUT_S = 300
pytestmark = [pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system"), pytest.mark.nightly]

_COMMON = (
    f"""
import multiprocessing, os, sys, threading, time, traceback
sys.path.append({str(Path(__file__).parents[1])!r})
from support import pocl_processor
pocl_processor.watch()
"""
    + """
import numpy as np
from litecl.delegate import CLDelegate
from litecl.delegate.opencl.devices.device import devices
from litecl.interpreter import Interpreter
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.unary import TANH
from litecl.interpreter.ops.unidirectional_sequence_lstm import (
    UNIDIRECTIONAL_SEQUENCE_LSTM, UnidirectionalSequenceLSTMOptions,
)
from litecl.interpreter.schema import ActivationFunctionType
from litecl.perf.models.build import Graph, model, randn

def network():
    rng, g = np.random.default_rng(5), Graph()
    x = g.input((1, 3, 4))
    weights = [g.const(randn(rng, 4, 4, scale=0.5)) for _ in range(8)]
    biases = [g.const(randn(rng, 4)) for _ in range(4)]
    states = [g.variable((1, 4)), g.variable((1, 4))]
    operands = [x, *weights, None, None, None, *biases, None, None, *states, None, None, None, None]
    options = UnidirectionalSequenceLSTMOptions(fused_activation_function=ActivationFunctionType.TANH)
    y = g.op(UNIDIRECTIONAL_SEQUENCE_LSTM, operands, options)
    for _ in range(3):
        y = g.op(FULLY_CONNECTED, [y, g.const(randn(rng, 4, 4)), None], FullyConnectedOptions())
        y = g.op(TANH, [y], NoOptions())
    return model(g.build(y))

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(1, 3, 4)

def opened(*delegates):
    interpreter = Interpreter(network(), delegates=delegates)
    interpreter.allocate_tensors()
    return interpreter

def run(interpreter):
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], X)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])

def several():
    return next(device.name for device in devices() if not device.name.startswith(("basic", "cpu-minimal")))

def expected(invokes=1):
    plain = opened()
    return [run(plain) for _ in range(invokes)][-1]

def right(got, invokes=1):
    np.testing.assert_allclose(got, expected(invokes), rtol=1e-4, atol=1e-5)

def forked(work):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
"""
)


def python(script: str, *arguments: str, timeout_s: float = _TIMEOUT_S) -> str:
    """Return a script's output. Raises if it fails or doesn't end."""
    command = [sys.executable, "-c", _COMMON + script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_forked_child_uses_the_device_that_needs_no_threads() -> None:
    python("""
devices()
def child():
    for options in ({}, {"num_threads": 1}, {"num_threads": 2}, {"device": "basic"}):
        interpreter = opened(CLDelegate(strict=True, **options))
        right(run(interpreter))
    named = opened(CLDelegate(device=several()))
    right(run(named))
    (failure,) = named.delegation_report().failures
    assert "forked" in failure and "spawn" in failure, failure
    forked(lambda: right(run(opened(CLDelegate(strict=True)))))  # and its child in turn
forked(child)
right(run(opened(CLDelegate(device=several(), strict=True))))
""")


def test_an_interpreter_from_before_the_fork_goes_on_in_the_child_with_its_states() -> None:
    python("""
made = {n: opened(CLDelegate(num_threads=n)) for n in (1, 2)}
made["basic"] = opened(CLDelegate(device="basic"))
made["lost"] = opened(CLDelegate(device=several()))
strict = opened(CLDelegate(device=several(), strict=True))
for interpreter in (*made.values(), strict):
    run(interpreter)
def child():
    for n, interpreter in made.items():
        right(run(interpreter), 2)
        right(run(interpreter), 3)
        assert bool(interpreter.delegation_report().failures) == (n == "lost"), n
    try:
        run(strict)
    except DelegateError as error:
        assert "forked" in str(error)
    else:
        raise AssertionError("no error")
from litecl.interpreter.errors import DelegateError
forked(child)
for interpreter in (*made.values(), strict):
    right(run(interpreter), 2)
    assert not interpreter.delegation_report().failures
""")


@pytest.mark.parametrize("device", ["native", "basic"])
def test_a_child_that_is_forked_while_threads_invoke_never_hangs(device: str) -> None:
    """Its own models run, whatever runs in the parent."""
    script = """
made = [opened(CLDelegate(sys.argv[1], num_threads=1 + i % 2)) for i in range(4)]
for interpreter in made:
    run(interpreter)
stop, errors = threading.Event(), []
def work(interpreter):
    try:
        while not stop.is_set():
            run(interpreter)
    except BaseException as error:
        errors.append(error)
threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in made]
for thread in threads:
    thread.start()
for _ in range(10):
    forked(lambda: right(run(opened(CLDelegate()))))
stop.set()
for thread in threads:
    thread.join()
assert not errors, errors
assert not any(interpreter.delegation_report().failures for interpreter in made)
"""
    python(script, device)


def test_an_interpreter_that_has_lost_opencl_altogether_goes_on_on_the_cpu() -> None:
    """The processor's own back end has nothing to lose."""
    python("""
from litecl.delegate.backend import fork
made = {device: opened(CLDelegate(device, num_threads=2)) for device in ("basic", "native")}
for interpreter in made.values():
    run(interpreter)
def child():
    for device, interpreter in made.items():
        right(run(interpreter), 2)
        right(run(interpreter), 3)
        failures = interpreter.delegation_report().failures
        assert ("forked" in " ".join(failures)) == (device == "basic"), failures
section, within, leave = fork.Section(), threading.Event(), threading.Event()
def stay():
    with section.lock:
        within.set()
        leave.wait()
thread = threading.Thread(target=stay)  # as one that is within OpenCL
thread.start()
within.wait()
forked(child)
leave.set()
thread.join()
""")


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(method: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        _COMMON
        + f"""
def child(number):
    interpreter = opened(CLDelegate(num_threads=1 + number % 2, strict=True))
    right(run(interpreter))
    return interpreter.delegation_report().device

if __name__ == "__main__":
    right(run(opened(CLDelegate(num_threads=2))))
    with multiprocessing.get_context({method!r}).Pool(2) as pool:
        names = pool.map(child, range(4), chunksize=1)
    assert names == ["native"] * 4, names
"""
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr


def test_many_processes_share_an_empty_cache(tmp_path: Path) -> None:
    script = (
        _COMMON
        + """
interpreter = opened(CLDelegate(num_threads=1, strict=True, cache_dir=sys.argv[1]))
right(run(interpreter))
"""
    )
    environment = {**os.environ, "POCL_CACHE_DIR": str(tmp_path / "pocl")}
    command = [sys.executable, "-c", script, str(tmp_path / "litecl")]
    processes = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) for _ in range(4)]
    for process in processes:
        _, errors = process.communicate(timeout=_TIMEOUT_S)
        assert process.returncode == 0, errors.decode()
    kept = {path.name for path in (tmp_path / "litecl" / "litecl-cache").iterdir()}
    assert any(name.startswith("region-") for name in kept)
    assert all(name.endswith((".bin", ".json", ".TAG")) for name in kept), kept  # no half files
    counted = python(
        "i = opened(CLDelegate(num_threads=1, strict=True, cache_dir=sys.argv[1])); right(run(i));"
        "print(i.delegation_report().cache_hits)",
        str(tmp_path / "litecl"),
    )
    assert int(counted) > 0


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be chosen")
def test_workers_come_to_an_end_on_one_core() -> None:
    python("""
devices()  # as many threads as there are cores
for thread in os.listdir("/proc/self/task"):
    os.sched_setaffinity(int(thread), {min(os.sched_getaffinity(0))})
made = [opened(CLDelegate(device=several(), strict=True)) for _ in range(3)]
def work(interpreter):
    for n in range(1, 21):
        interpreter.reset_all_variables()
        right(run(interpreter))
threads = [threading.Thread(target=work, args=(i,)) for i in made]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
""")


_WARMING = """
os.environ["XDG_CACHE_HOME"] = os.environ["POCL_CACHE_DIR"] = sys.argv[1]
warming = opened(CLDelegate(warm_up="background", num_threads=1))
right(run(warming))
"""


def test_a_process_ends_while_a_model_warms_up(tmp_path: Path) -> None:
    python(_WARMING, str(tmp_path))


def test_a_fork_while_a_model_warms_up(tmp_path: Path) -> None:
    """The child continues, on the CPU if it has lost OpenCL; the parent's device takes over."""
    python(
        _WARMING
        + """
def child():
    right(run(warming), 2)
    for _ in range(200):
        run(warming)
        time.sleep(0.01)
        if warming.delegation_report().warm_up.ready:
            break
    assert warming.delegation_report().warm_up.ready
time.sleep(0.2)
forked(child)
while not warming.delegation_report().warm_up.ready:
    time.sleep(0.01)
    warming.allocate_tensors()
right(run(warming), 2)
assert warming.delegation_report().claimed
""",
        str(tmp_path),
    )
