"""LiteRT, with its default or its reference kernels."""

from typing import Any

from litecl.interpreter.errors import MissingExtra
from litecl.perf.feeds import Runtime

PACKAGES = {"ai_edge_litert": "ai-edge-litert"}
LITERT, LITERT_REFERENCE = "litert", "litert-reference"
RESOLVERS = {LITERT: "AUTO", LITERT_REFERENCE: "BUILTIN_REF"}
"""LiteRT with its default and with its reference kernels, by name, with the OpResolverType."""


def load(content: bytes, num_threads: int | None = None, resolver: str = "AUTO", *, preserve: bool = False) -> Runtime:
    """Return LiteRT's interpreter. resolver: a name of its OpResolverType. preserve: keep all tensors readable.

    Raises MissingExtra if its package is missing, and LiteRT's own errors for a model that it can't load.
    """
    package = module()
    runtime: Runtime = package.Interpreter(
        model_content=content,
        num_threads=num_threads,
        experimental_op_resolver_type=package.OpResolverType[resolver],
        experimental_preserve_all_tensors=preserve,
    )
    return runtime


def module() -> Any:
    """Import LiteRT. Raises MissingExtra if it isn't installed."""
    try:
        from ai_edge_litert import interpreter
    except ModuleNotFoundError as error:
        raise MissingExtra("comparing with LiteRT needs its package: pip install ai-edge-litert") from error
    return interpreter


def peer_name(name: str) -> str:
    """Expand the short name litert-ref of LiteRT's reference kernels; return other names unchanged."""
    return LITERT_REFERENCE if name == "litert-ref" else name
