"""The processor's own back end in pools of processes, in children of fork, and in many interpreters at once.

Scripts run in processes of their own with a time limit, for what goes wrong here hangs.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from litecl.delegate.native import compiler

pytestmark = [
    pytest.mark.skipif(compiler.found() is None, reason="no compiler for the processor: pip install ziglang"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here"),
]
_TESTS = Path(__file__).parents[1]

_COMMON = """
import concurrent.futures, multiprocessing, os, sys, threading
import numpy as np
from litecl.delegate import CLDelegate
from support import small_models

LSTM = small_models.lstm()
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(1, 3, 4)

def made(threads=2, **options):
    return small_models.prepared(LSTM, device="native", num_threads=threads, **options)

def run(interpreter):
    return small_models.run(interpreter, X)

def wanted(invokes=1):
    plain = small_models.reference(LSTM)
    return [run(plain) for _ in range(invokes)][-1]

def right(got, invokes=1):
    np.testing.assert_allclose(got, wanted(invokes), rtol=1e-4, atol=1e-5)

def child(number):
    interpreter = made(1 + number % 2, strict=True)
    right(run(interpreter))
    right(run(interpreter), 2)
    return interpreter.delegation_report().device

def forked(work):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0

if __name__ == "__main__":
    kept = made()
    right(run(kept))
"""


def _python(folder: Path, script: str, *arguments: str) -> None:
    """Run a script in a new process, its lines in the block of the main process."""
    path = folder / "script.py"
    path.write_text(_COMMON + "".join(f"    {line}\n" for line in script.strip().splitlines()))
    done = subprocess.run(
        [sys.executable, str(path), *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(_TESTS), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pools(method: str, tmp_path: Path) -> None:
    """Workers whose parent has used the device have it too, however they begin."""
    _python(
        tmp_path,
        """
context = multiprocessing.get_context(sys.argv[1])
with context.Pool(2) as pool:
    assert pool.map(child, range(4), chunksize=1) == ["native"] * 4
with concurrent.futures.ProcessPoolExecutor(2, context) as pool:
    assert [*pool.map(child, range(4))] == ["native"] * 4
right(run(kept), 2)
assert kept.delegation_report().claimed
""",
        method,
    )


def test_an_interpreter_from_before_the_fork_goes_on_with_its_states(tmp_path: Path) -> None:
    _python(
        tmp_path,
        """
def go_on():
    right(run(kept), 2)
    right(run(kept), 3)
    assert kept.delegation_report().claimed
    forked(lambda: right(run(kept), 4))  # and its child in turn
forked(go_on)
right(run(kept), 2)
""",
    )


@pytest.mark.skipif(sys.platform != "linux", reason="counts what /proc shows")
def test_many_interpreters_alive_at_once(tmp_path: Path) -> None:
    """They share helpers and libraries, and hold no files."""
    _python(
        tmp_path,
        """
def held():
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), sum(1 for _ in open("/proc/self/maps"))
files, tasks, maps = held()
alive = [made() for _ in range(200)]
for interpreter in alive:
    right(run(interpreter))
now_files, now_tasks, now_maps = held()
assert (now_files, now_tasks) == (files, tasks)
assert now_maps < maps + 50
""",
    )
