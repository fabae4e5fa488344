"""The quantization of a finished model, of any kind."""

from dataclasses import replace

from litecl.converter.quantization import weights
from litecl.converter.quantization.data import samples
from litecl.converter.quantization.integers import quantize_model
from litecl.converter.quantization.options import Quantization
from litecl.interpreter.graph import Model


def quantize(model: Model, how: Quantization | None) -> Model:
    """Return the model as ``how`` says; None leaves it as it is."""
    if how is None:
        return model
    if how.activations is None:
        return replace(model, subgraphs=tuple(weights.quantize(graph, how) for graph in model.subgraphs))
    quantized, _ = quantize_model(model, how, samples(how, model))
    return quantized
