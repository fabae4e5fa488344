"""What tests build small models with."""

from litecl.perf.measure.build import Graph, model, randn

__all__ = ["Graph", "model", "randn"]
