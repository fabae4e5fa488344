"""The instruction sets of the processor, as this very process sees them."""

from collections.abc import Mapping
from importlib import import_module


def seen_by_numpy() -> Mapping[str, bool]:
    """Return, for the features that numpy knows, whether the processor has them; empty if numpy does not tell."""
    try:
        module = import_module("numpy._core._multiarray_umath")
    except ImportError:  # before numpy 2
        module = import_module("numpy.core._multiarray_umath")
    found: Mapping[str, bool] = getattr(module, "__cpu_features__", {})
    return found
