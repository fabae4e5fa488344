"""The builder of small models."""

from litecl.perf.measure.build import Graph, model, randn

__all__ = ["Graph", "model", "randn"]
