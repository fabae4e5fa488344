"""The instruction sets of the processor, as this process sees them."""

from collections.abc import Mapping
from importlib import import_module


def seen_by_numpy() -> Mapping[str, bool]:
    """Return whether the processor has each feature that numpy detects; empty if numpy doesn't report any."""
    try:
        module = import_module("numpy._core._multiarray_umath")
    except ImportError:  # before numpy 2
        module = import_module("numpy.core._multiarray_umath")
    features: Mapping[str, bool] = getattr(module, "__cpu_features__", {})
    return features
