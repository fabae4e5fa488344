"""The builder of small models."""

from litecl.perf.models.build import Graph, model, randn

__all__ = ["Graph", "model", "randn"]
