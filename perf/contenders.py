"""The runtimes to measure side by side: litecl and its peers."""

import json
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from litecl.delegate import CLDelegate
from litecl.delegate.naming import counted
from litecl.interpreter import Interpreter
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import LiteclError, brief
from litecl.interpreter.graph import Array
from litecl.interpreter.numbers import Numbers
from litecl.interpreter.run.executor import Listener
from litecl.perf.feeds import Runtime, prepare
from litecl.perf.isolated import answered
from litecl.perf.peers import PEERS
from litecl.perf.timing import elapsed_ms


@dataclass(frozen=True, eq=False)
class Contender:
    """A prepared runtime. prepare_ms: loading, delegating and compiling; first_ms: the first invoke, 0 if none ran."""

    name: str
    num_threads: int | None
    runtime: Runtime
    prepare_ms: float
    first_ms: float


@dataclass(frozen=True)
class Refusal:
    """A peer that can't run the model, and why."""

    name: str
    num_threads: int
    reason: str

    def __str__(self) -> str:
        return f"{self.name} ({counted(self.num_threads, 'thread')}) cannot run the model: {self.reason}"


def start(
    name: str, num_threads: int | None, load: Callable[[], Runtime], inputs: Mapping[str, Array], *, run: bool = True
) -> Contender:
    """Load, prepare and run a runtime once. run: False skips the run. Raises LiteclError if it can't run the model."""
    with typed_errors(name):
        return _start(name, num_threads, load, inputs, run=run)


def start_peer(name: str, num_threads: int, content: bytes, inputs: Mapping[str, Array]) -> Contender | Refusal:
    """Load, prepare and run a peer once, first in another process: some models end LiteRT's and OpenVINO's. A peer that
    converts the model does so once, in a process of its own.

    name: in ``PEERS``. Raises MissingExtra if it isn't installed.
    """
    peer = PEERS[name]
    peer.require(name)
    try:
        if peer.convert is not None:
            peer.convert(content)
        else:
            request = pickle.dumps((name, num_threads, content, dict(inputs)))
            answered(f"{__name__}.try_peer", request, "its process")
        return _start(name, num_threads, partial(peer.load, content, num_threads), inputs)
    except Exception as error:  # every library has its own
        return Refusal(name, num_threads, brief(str(error)) or type(error).__name__)


def try_peer() -> None:
    """Run the peer that stdin names; print null. An error of the peer's is left to the process that it can't end."""
    name, num_threads, content, inputs = pickle.load(sys.stdin.buffer)
    with suppress(Exception):
        _start(name, num_threads, partial(PEERS[name].load, content, num_threads), inputs)
    print(json.dumps(None))


def _start(
    name: str, num_threads: int | None, load: Callable[[], Runtime], inputs: Mapping[str, Array], *, run: bool = True
) -> Contender:
    start_s = time.perf_counter()
    runtime = load()
    prepare(runtime, inputs)
    prepare_ms = (time.perf_counter() - start_s) * 1e3
    return Contender(name, num_threads, runtime, prepare_ms, elapsed_ms(runtime.invoke) if run else 0.0)


@contextmanager
def typed_errors(name: str, doing: str = "run") -> Iterator[None]:
    """Raise a peer's errors as LiteclError that names the runtime and the failed action."""
    try:
        yield
    except LiteclError:
        raise
    except (ValueError, RuntimeError) as error:  # LiteRT's
        raise LiteclError(f"{name} cannot {doing} the model: {error}") from error


def litecl(
    content: bytes,
    delegate: Mapping[str, Any],
    *,
    cpu: bool = False,
    listeners: Sequence[Listener] = (),
    numbers: Numbers = "reference",
) -> Interpreter:
    """Return litecl's interpreter. delegate: keywords of ``CLDelegate``; cpu: without it, but with ``num_threads`` and
    ``dynamic_range`` from its keywords. numbers: as for ``Interpreter``.
    """
    given: Any = {"model_content": content, "listeners": listeners, "numbers": numbers}
    if cpu:
        options: Any = {name: delegate.get(name) for name in ("num_threads", "dynamic_range")}
        return Interpreter(**given, **options)
    return Interpreter(delegates=[CLDelegate(**delegate)], **given)
