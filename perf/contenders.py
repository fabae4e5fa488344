"""The runtimes to measure side by side: litecl, and LiteRT as a peer."""

import importlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.graph import Array
from litecl.interpreter.run.executor import Listener
from litecl.perf.feeds import Runtime, prepare
from litecl.perf.timing import elapsed_ms


@dataclass(frozen=True, eq=False)
class Contender:
    """A prepared runtime. prepare_ms: loading, delegating and compiling; first_ms: the first invoke, 0 if none ran."""

    name: str
    num_threads: int | None
    runtime: Runtime
    prepare_ms: float
    first_ms: float


def start(
    name: str, num_threads: int | None, load: Callable[[], Runtime], inputs: Mapping[str, Array], *, run: bool = True
) -> Contender:
    """Load, prepare and run a runtime once. run: False skips the run. Raises LiteclError if it can't run the model."""
    start_s = time.perf_counter()
    with typed_errors(name):
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
    content: bytes, delegate: Mapping[str, Any], *, cpu: bool = False, listeners: Sequence[Listener] = ()
) -> Interpreter:
    """Return litecl's interpreter. delegate: keywords of ``CLDelegate``; cpu: without it, but with ``num_threads`` and
    ``dynamic_range`` from its keywords.
    """
    if cpu:
        options: Any = {name: delegate.get(name) for name in ("num_threads", "dynamic_range")}
        return Interpreter(model_content=content, listeners=listeners, **options)
    return Interpreter(model_content=content, delegates=[CLDelegate(**delegate)], listeners=listeners)


def peer_package() -> Any:
    """Import the peers' package. Raises LiteclError if it isn't installed."""
    try:
        return importlib.import_module("ai_edge_litert.interpreter")
    except ModuleNotFoundError as error:
        raise LiteclError("comparing with LiteRT needs its package: pip install ai-edge-litert") from error


def litert(
    content: bytes, num_threads: int | None = None, resolver: str = "AUTO", *, preserve: bool = False
) -> Runtime:
    """Return LiteRT's interpreter. resolver: a name of its OpResolverType. preserve: keep all tensors readable.

    Raises LiteclError if its package is missing, and LiteRT's own errors for a model that it can't load.
    """
    package = peer_package()
    runtime: Runtime = package.Interpreter(
        model_content=content,
        num_threads=num_threads,
        experimental_op_resolver_type=package.OpResolverType[resolver],
        experimental_preserve_all_tensors=preserve,
    )
    return runtime


LITERT, LITERT_REFERENCE = "litert", "litert-reference"
RESOLVERS = {LITERT: "AUTO", LITERT_REFERENCE: "BUILTIN_REF"}
"""LiteRT with its default and with its reference kernels, by name, with the OpResolverType."""

PEERS: dict[str, Callable[[bytes, int], Runtime]] = {
    name: partial(litert, resolver=resolver) for name, resolver in RESOLVERS.items()
}


def peer_name(name: str) -> str:
    """Expand the short name litert-ref of LiteRT's reference kernels; return other names unchanged."""
    return LITERT_REFERENCE if name == "litert-ref" else name
