"""The quantization of a finished model, of any kind."""

from dataclasses import replace

from litecl.converter.quantization.data import samples
from litecl.converter.quantization.dynamic_range import dynamic_range
from litecl.converter.quantization.halves import halves
from litecl.converter.quantization.integers import quantize_model
from litecl.converter.quantization.measure import measure
from litecl.converter.quantization.options import Quantization
from litecl.converter.quantization.report import QuantizationReport
from litecl.converter.quantization.substitute import with_integer_kernels, with_wide_constants
from litecl.interpreter.graph import Model, Subgraph


def quantize(model: Model, how: Quantization | None) -> tuple[Model, QuantizationReport | None]:
    """Return the model as ``how`` says, and what that did to it; None leaves it as it is.

    There is a report where activations are integers.
    """
    if how is None:
        return model, None
    wide = with_wide_constants(model)
    if how.activations is None:
        return replace(wide, subgraphs=tuple(_with_narrow_weights(graph, how) for graph in wide.subgraphs)), None
    floats = with_integer_kernels(wide)
    used = samples(how, floats)
    quantized, done = quantize_model(floats, how, used)
    report = measure(floats, quantized, done, how, used)
    return replace(quantized, signatures=quantized.signatures if model.signatures else ()), report


def _with_narrow_weights(graph: Subgraph, how: Quantization) -> Subgraph:
    return halves(graph) if how.weights == "float16" else dynamic_range(graph, how.per_channel)
