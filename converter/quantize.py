"""Weights stored with fewer bits, after the conversion: float16, or int8 with scales (dynamic range)."""

from litecl.interpreter.graph import Model


def quantize(model: Model, how: str | None) -> Model:
    """The model with its weights as ``how`` says; None leaves them."""
    return model
