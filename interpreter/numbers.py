"""Whose bits the integer kernels compute, where runtimes differ: ``numbers``.

"reference" follows LiteRT's reference kernels, "tflm" tflite-micro, so that a laptop has a microcontroller's results.
"""

from typing import Literal, get_args

from litecl.interpreter.errors import ArgumentError
from litecl.interpreter.graph import Model

Numbers = Literal["reference", "tflm"]

TOLD = {"reference": "integers as by LiteRT's reference kernels", "tflm": "integers as by tflite-micro"}
"""The choices in words, for reports."""


def computed_as(model: Model, numbers: str) -> Model:
    """Return a model whose integer operators compute a runtime's bits. Raises ArgumentError for an unknown one."""
    if numbers not in get_args(Numbers):
        raise ArgumentError(f"numbers: expected 'reference' or 'tflm', got {numbers!r}")
    if numbers == "reference":
        return model
    from litecl.interpreter.tflm import of_tflm  # imports the operators that it has rules for

    return of_tflm(model)
