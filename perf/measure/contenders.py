"""The runtimes that are measured side by side: litecl, and LiteRT as a peer."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.graph import Array
from litecl.interpreter.run.executor import Listener
from litecl.perf.measure.feeds import Runtime, prepare
from litecl.perf.measure.timing import elapsed_ms


@dataclass(frozen=True, eq=False)
class Contender:
    """A runtime that has run once. prepare_ms: loading, delegating and building; first_ms: the first invoke."""

    name: str
    num_threads: int | None
    runtime: Runtime
    prepare_ms: float
    first_ms: float


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def start(name: str, num_threads: int | None, load: Callable[[], Runtime], inputs: Mapping[str, Array]) -> Contender:
    """Load, prepare and run a runtime once. Raises LiteclError where it cannot run the model."""
    start_s = time.perf_counter()
    try:
        runtime = load()
        prepare(runtime, inputs)
        prepare_ms = (time.perf_counter() - start_s) * 1e3
        return Contender(name, num_threads, runtime, prepare_ms, elapsed_ms(runtime.invoke))
    except LiteclError:
        raise
    except (ValueError, RuntimeError) as error:  # LiteRT's errors
        raise LiteclError(f"{name} cannot run the model: {error}") from error


def litecl(
    content: bytes, delegate: Mapping[str, Any], *, cpu: bool = False, listeners: Sequence[Listener] = ()
) -> Interpreter:
    """Return litecl's interpreter. delegate: keywords of ``CLDelegate``; cpu: without the delegate."""
    delegates = [] if cpu else [CLDelegate(**delegate)]
    return Interpreter(model_content=content, delegates=delegates, listeners=listeners)


def _litert(content: bytes, num_threads: int, resolver: str = "AUTO") -> Runtime:
    try:
        from ai_edge_litert.interpreter import Interpreter as LiteRt
        from ai_edge_litert.interpreter import OpResolverType
    except ModuleNotFoundError as error:
        raise LiteclError("comparing with LiteRT needs its package: pip install ai-edge-litert") from error
    kernels = OpResolverType[resolver]
    runtime: Runtime = LiteRt(model_content=content, num_threads=num_threads, experimental_op_resolver_type=kernels)
    return runtime


PEERS: dict[str, Callable[[bytes, int], Runtime]] = {
    "litert": _litert,
    "litert-reference": partial(_litert, resolver="BUILTIN_REF"),
}
