"""Calls in processes of their own: one after another where a death costs one of them, or a new process for each."""

import json
import os
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
    """Yield the result of each call; None where the process died, whose place another takes. Calls are pickled."""
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


def answered(function: str, request: bytes, what: str, environment: Mapping[str, str] | None = None) -> Any:
    """Return what a function prints last, as JSON, in a new process, in which it reads the request from stdin.

    function: its module and name. environment: variables in addition. Raises LiteclError, which begins with ``what``,
    where the process fails or does not end.
    """
    module, _, name = function.rpartition(".")
    command, env = (
        [sys.executable, "-c", f"from {module} import {name}; {name}()"],
        {**os.environ, **(environment or {})},
    )
    try:
        ended = subprocess.run(command, input=request, capture_output=True, env=env, timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise LiteclError(f"{what} did not end in {_TIMEOUT_S} s") from error
    if ended.returncode:
        last = ended.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise LiteclError(f"{what} failed: {' '.join(last) or ended.returncode}")
    return json.loads(ended.stdout.splitlines()[-1])
