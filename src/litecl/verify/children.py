"""Starts a worker and listens to it until it finishes, dies, or stays silent for too long."""

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any, TypeVar

_WORKER = "litecl.verify.worker"
_START_S = 60.0  # extra patience while a worker imports
_TO_PREPARE = 4  # factor for patience: compilers take long on busy machines
_SLICE_S = 0.5
_GRACE_S = 30.0  # for a worker to exit after its last message: drivers may take long on busy machines
_STDERR_LINES = 3
_PYTHONS_OWN = ("Fatal Python error", "File ", "Thread ", "Current thread", "Extension modules")

_LIVE: set["subprocess.Popen[str]"] = set()

Message = Mapping[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class End:
    """How a worker ended. how: "" if it exited normally, else a description. timed_out: whether it was killed."""

    how: str = ""
    timed_out: bool = False


class Stopped(Exception):
    """Raised in a thread that would go on with another worker when all are to end."""


def in_threads(work: Sequence[Callable[[], T]], jobs: int, stop: threading.Event) -> list[T]:
    """Do work in threads, so many at a time, and return its results. Whatever is raised ends all workers, and the work.

    stop: what the work gives to ``serve``.
    """
    with ThreadPoolExecutor(jobs) as pool:  # which waits for its threads, whatever is raised
        try:
            return [done.result() for done in [pool.submit(each) for each in work]]
        except BaseException:
            stop.set()
            for process in [*_LIVE]:  # which don't receive Ctrl-C
                _end(process)
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def serve(
    request: Message,
    timeout_s: float,
    hear: Callable[[Message], None],
    env: Mapping[str, str] | None = None,
    module: str = _WORKER,
    stop: threading.Event | None = None,
) -> End:
    """Have a worker serve a request.

    timeout_s: how long it may stay silent; longer while it prepares a check, which compiles programs. hear: called with
    each message. env: environment variables in addition to this process's. module: the module that it runs. stop: that
    of ``in_threads``; once it is set, raises Stopped.
    """
    with _worker(request, env, module, stop) as (process, messages, errors):
        patience_s = timeout_s + _START_S
        while True:
            try:
                message = _next(messages, patience_s)
            except queue.Empty:
                return End(f"said nothing for {patience_s:g} s and was ended", timed_out=True)
            if message is None:
                break
            patience_s = timeout_s * (_TO_PREPARE if "begin" in message else 1)
            hear(message)
        try:
            code = process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            return End(f"did not end {_GRACE_S:g} s after its last check", timed_out=True)
        return End() if code == 0 else End(_died(code) + _last_words(errors))


def _next(messages: "queue.Queue[Message | None]", patience_s: float) -> Message | None:
    """Return the next message, None after the last. Raises queue.Empty.

    Waits in slices: time during which the machine slept or this process was stopped counts as one slice.
    """
    for _ in range(max(1, round(patience_s / _SLICE_S))):
        with suppress(queue.Empty):
            return messages.get(timeout=_SLICE_S)
    raise queue.Empty


@contextmanager
def _worker(
    request: Message, env: Mapping[str, str] | None, module: str, stop: threading.Event | None
) -> Iterator[tuple["subprocess.Popen[str]", "queue.Queue[Message | None]", IO[str]]]:
    """Start a worker in its own session, and kill the whole session at the end."""
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        process = subprocess.Popen(
            (sys.executable, "-m", module),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )
        assert process.stdin is not None and process.stdout is not None
        _LIVE.add(process)
        messages: queue.Queue[Message | None] = queue.Queue()
        listener = threading.Thread(target=_listen, args=(process.stdout, messages), daemon=True)
        listener.start()
        try:
            if stop is not None and stop.is_set():  # asked after the process is among those that ``in_threads`` ends
                raise Stopped
            with suppress(BrokenPipeError):  # the worker has already died
                process.stdin.write(json.dumps(request) + "\n")
                process.stdin.flush()
            yield process, messages, errors  # its stdin stays open: the worker ends with this process
        finally:
            _end(process)
            _LIVE.discard(process)
            listener.join(_GRACE_S)
            with suppress(BrokenPipeError):
                process.stdin.close()
            process.stdout.close()


def _listen(lines: IO[str], messages: "queue.Queue[Message | None]") -> None:
    for line in lines:
        try:
            messages.put(json.loads(line))
        except ValueError:  # an incomplete line: the worker died while writing
            break
    messages.put(None)


def _end(process: "subprocess.Popen[str]") -> None:
    """Kill a worker that still runs, with its session: drivers may have started processes."""
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (AttributeError, ProcessLookupError, PermissionError):  # AttributeError: Windows
            process.kill()
    process.wait()


def _died(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def _last_words(errors: IO[str]) -> str:
    """Return the last lines of stderr, skipping Python's dump of the signal and threads."""
    errors.seek(0)
    lines = [line.strip() for line in errors if line.strip()]
    own = [line for line in lines if not line.startswith(_PYTHONS_OWN)]
    words = " | ".join(own[-_STDERR_LINES:])
    return f": {words[:300]}" if words else ""
