"""Runs model files on devices and on the interpreter, twice each, and compares. Exits with 1 if any differ.

The device must not fail (``strict``); what it refuses, the CPU runs. For checks on processors and drivers that the
tests do not run on: ``tools/qemu_cpu.sh`` calls it.

Usage: python tools/models.py [--device NAME]... [--threads N]... FILE_OR_FOLDER...
"""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from litecl.delegate import CLDelegate
from litecl.delegate.devices import devices
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from litecl.perf import feeds

_TOLERANCE = 1e-4  # of an output's largest magnitude
_INVOKES = 2  # states are carried from one to the next


def main() -> int:
    """Print a line for every model and device; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--device", action="append", help="a fragment of a name; all devices by default")
    parser.add_argument("--threads", action="append", type=int, help="of the processor's own device; all by default")
    arguments = parser.parse_args()
    names = arguments.device or [""]
    found = [device for device in devices() if any(name in device.name for name in names)]
    chosen = [(device, threads) for device in found for threads in arguments.threads or [None]]
    bad = 0
    for path in _files(arguments.models):
        try:
            expected = _outputs(path)
        except LiteclError as error:
            print(f"-     {path}: not on the interpreter: {_first_line(error)}", flush=True)
            continue
        for device, threads in chosen:
            start_s = time.monotonic()
            verdict, good = _compared(path, device, threads, expected)
            bad += not good
            took = f"{threads or 'all'} threads, {time.monotonic() - start_s:.0f} s"
            print(f"{'ok   ' if good else 'WRONG'} {path}, {device.name}, {took}: {verdict}", flush=True)
    return min(bad, 1)


def _files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(path.rglob("*.tflite")) if path.is_dir() else [path]


def _outputs(path: Path, **options: Any) -> list[Any]:
    """The outputs of every invoke, then the nodes that the device took and all."""
    interpreter = Interpreter(str(path), **options)
    interpreter.allocate_tensors()
    inputs = feeds.random_inputs(interpreter.get_input_details(), seed=1)
    feeds.prepare(interpreter, inputs)
    outputs = []
    for _ in range(_INVOKES):
        interpreter.invoke()
        outputs += [np.array(x) for x in feeds.outputs_of(interpreter)]
    rows = interpreter.delegation_report().nodes if options else ()
    return [*outputs, (sum(row.claimed for row in rows), len(rows))]


def _compared(path: Path, device: Any, threads: int | None, expected: list[Any]) -> tuple[str, bool]:
    wanted = device if threads is None or device.name != "native" else "native"  # with so many threads
    try:
        delegate = CLDelegate(device=wanted, num_threads=threads, strict=True)
        *got, (claimed, nodes) = _outputs(path, delegates=[delegate])
    except LiteclError as error:
        return f"{type(error).__name__}: {_first_line(error)}", False
    worst = feeds.difference(got, expected[:-1])
    allowed = _TOLERANCE if any(x.dtype.kind == "f" for x in got) else 0.0
    return f"difference {worst:.1e}, {claimed} of {nodes} nodes on the device", worst <= allowed


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


if __name__ == "__main__":
    sys.exit(main())
