"""Calls in separate processes: in one that is replaced when it dies, or in a new one for each call."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, TypeVar

from litecl.interpreter.errors import LiteclError

T = TypeVar("T")
_TIMEOUT_S = 600


def isolated(calls: Iterable[Callable[[], T]]) -> Iterator[T | None]:
    """Yield each call's result, None if the process died. A new process then takes its place. Calls are pickled."""
    pool = _pool()
    try:
        for call in calls:
            try:
                yield pool.submit(call).result()
            except BrokenExecutor:
                pool.shutdown()
                pool = _pool()
                yield None
    finally:
        pool.shutdown()


def _pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, get_context("spawn"))  # a fork would copy locks that other threads hold


def answered(function: str, request: bytes, task: str, environment: Mapping[str, str] | None = None) -> Any:
    """Run a function in a new process, with the request on stdin; return its last printed line, decoded from JSON.

    function: its module and name. environment: additional variables. Raises LiteclError, which begins with ``task``, if
    the process fails or doesn't end.
    """
    module, _, name = function.rpartition(".")
    command, env = (
        [sys.executable, "-c", f"from {module} import {name}; {name}()"],
        {**os.environ, **(environment or {})},
    )
    try:
        ended = subprocess.run(command, input=request, capture_output=True, env=env, timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise LiteclError(f"{task} did not end in {_TIMEOUT_S} s") from error
    if ended.returncode < 0:
        raise LiteclError(f"{task} was ended by {signal.Signals(-ended.returncode).name}")
    if ended.returncode:
        last = ended.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise LiteclError(f"{task} failed: {' '.join(last) or ended.returncode}")
    return json.loads(ended.stdout.splitlines()[-1])
