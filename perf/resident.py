"""Measures a model's host memory in a separate process (Linux)."""

import json
import pickle
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from litecl.delegate.devices import devices
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.graph import Array
from litecl.interpreter.numbers import Numbers
from litecl.perf.contenders import litecl
from litecl.perf.feeds import prepare
from litecl.perf.isolated import answered
from litecl.perf.peers import PEERS

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_CLEAR_PEAK = "5"


@dataclass(frozen=True)
class Usage:
    """Growth of resident memory in bytes, at the peak and at the end."""

    peak: int
    end: int


def usage(run: Callable[[], object]) -> Usage:
    """Return how much a call raises this process's resident memory. Its result stays alive until measured.

    File pages count while they are in memory.
    """
    _CLEAR.write_text(_CLEAR_PEAK)
    before = resident_bytes()
    kept = run()
    end = resident_bytes() - before
    used = Usage(max(end, resident_bytes("VmHWM") - before), end)  # threads' memory is accounted with some delay
    del kept
    return used


def usage_of(
    content: bytes,
    inputs: Mapping[str, Array],
    name: str,
    num_threads: int | None,
    delegate: Mapping[str, Any],
    *,
    cpu: bool = False,
    numbers: Numbers = "reference",
) -> Usage:
    """Return the memory for loading, preparing and twice running a model, measured in a new process.

    name: "litecl" or one of ``PEERS``; the latter uses ``num_threads``, the former the keywords of ``CLDelegate``. The
    file's content counts; imports and the devices' runtime don't. Raises LiteclError if that fails, and off Linux.
    """
    if not _CLEAR.exists():
        raise LiteclError("process memory is measured only on Linux")
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "model.tflite")
        model.write_bytes(content)
        request = pickle.dumps((model, dict(inputs), name, num_threads, dict(delegate), cpu, numbers))
        return Usage(*answered(f"{__name__}.child", request, "the process whose memory is measured"))


def child() -> None:
    """Run the request from stdin; print the bytes at the peak and at the end as JSON."""
    model, inputs, name, num_threads, delegate, cpu, numbers = pickle.load(sys.stdin.buffer)
    ours = name == "litecl"
    if ours and not cpu:
        devices()  # loads their runtime
    elif not ours:
        PEERS[name].module()

    def run() -> object:
        content = model.read_bytes()
        runtime = (
            litecl(content, delegate, cpu=cpu, numbers=numbers) if ours else PEERS[name].load(content, num_threads)
        )
        prepare(runtime, inputs)
        for _ in range(2):
            runtime.invoke()
        return runtime

    used = usage(run)
    print(json.dumps([used.peak, used.end]))


def resident_bytes(field: str = "VmRSS") -> int:
    """Return this process's resident memory in bytes; VmHWM: its peak. 0 off Linux."""
    try:
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(field))
    except OSError:
        return 0
    return int(line.split()[1]) * 1024
