"""The one declaration of how a model is quantized."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from litecl.interpreter.errors import ConversionError, brief

Data = Callable[[], Iterable[Any]] | Iterable[Any] | Mapping[str, Any]
"""A representative data set: see ``litecl.converter.quantization.data``."""

Weights = Literal["int8", "int4", "float16"]

_CHOICES: Mapping[str, tuple[Any, ...]] = {
    "activations": (None, "int8", "int16"),
    "weights": get_args(Weights),
    "method": ("minmax", "moving_average", "percentile", "mse"),
    "block": (None, 32, 64, 128, 256),
    "input_type": ("float32", "int8", "uint8", "int16"),
    "output_type": ("float32", "int8", "uint8", "int16"),
}
_OF_ACTIVATIONS = (
    *("data", "method", "input_type", "output_type", "skip", "strict", "sensitivity"),
    *("bias_correction", "equalize"),
)


@dataclass(frozen=True)
class Quantization:
    """Choose how a model is quantized. All options of all kinds of quantization, with their defaults.

    weights: how constants of operators with weights are stored: "int8"; "int4", in half of that, where FULLY_CONNECTED,
        CONV_2D or EMBEDDING_LOOKUP read them, and "int8" elsewhere; or "float16", widened when the model runs.
    activations: "int8" or "int16" computes with integers throughout (then ``data`` is needed); None leaves activations
        in float32: with int8 weights that is dynamic-range quantization.
    data: the representative data set that activations' ranges are measured on: samples in any form that
        TFLiteConverter takes, a mapping from input names to arrays, or the path of an .npz file with one.
    samples: the most samples of ``data`` that are used; None for all.
    method: how ranges follow from what was measured. "minmax": from the smallest to the largest value seen;
        "moving_average": of each sample's, the newest weighing ``1 - momentum``; "percentile": leaving out
        ``100 - percentile`` percent at either end; "mse": the range with the smallest squared rounding error.
    bias_correction: add to the biases of layers the mean error that rounding their weights makes, measured on ``data``.
    equalize: move scales between layers that follow each other, without or with a RELU in between, so that their
        weights' channels have equal ranges. It helps most without scales for every channel.
    per_channel: True gives weights a scale for every output channel, where the operator's kernels take that.
    block: with weights="int4", the number of elements in a row of FULLY_CONNECTED's weights that have a scale of their
        own: 32, 64, 128 or 256. Rows that it does not divide have one scale each. None for one scale a row.
    input_type, output_type: the type of the model's float inputs and outputs. Integer types need quantized
        activations; "int16" goes with activations="int16".
    skip: layers that stay in float: names of operators (``"SOFTMAX"``), or patterns of tensor names as ``fnmatch``
        takes them, which match a whole name or some of the parts between slashes (``"dense_1"``).
    strict: raise ConversionError where an operator on floats would stay in float, as TFLITE_BUILTINS_INT8 does.
    sensitivity: measure the error that each layer adds by itself, for the report: runs the model once for every layer.
    measured: how many samples the report's errors are measured on.
    """

    weights: Weights = "int8"
    activations: Literal["int8", "int16"] | None = None
    data: Data | str | None = None
    samples: int | None = None
    method: Literal["minmax", "moving_average", "percentile", "mse"] = "minmax"
    percentile: float = 99.99
    momentum: float = 0.9
    bias_correction: bool = False
    equalize: bool = False
    per_channel: bool = True
    block: Literal[32, 64, 128, 256] | None = None
    input_type: Literal["float32", "int8", "uint8", "int16"] = "float32"
    output_type: Literal["float32", "int8", "uint8", "int16"] = "float32"
    skip: tuple[str, ...] = ()
    strict: bool = False
    sensitivity: bool = False
    measured: int = 8

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            if value not in allowed:
                raise ConversionError(f"quantize: expected {name} one of {allowed}, got {brief(repr(value))}")
        skip: object = self.skip  # a string is a sequence of names too, and never what was meant
        if isinstance(skip, str):
            raise ConversionError(f"quantize: expected skip to be a tuple of names, got {brief(repr(self.skip))}")
        self._check_numbers()
        self._check_types()

    def _check_numbers(self) -> None:
        if not 50 < self.percentile <= 100:
            raise ConversionError(f"quantize: expected a percentile over 50 and up to 100, got {self.percentile}")
        if not 0 <= self.momentum < 1:
            raise ConversionError(f"quantize: expected a momentum from 0 to below 1, got {self.momentum}")
        for name in ("samples", "measured"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConversionError(f"quantize: expected {name} of at least 1, got {value}")

    def _check_types(self) -> None:
        if self.block is not None and (self.weights != "int4" or not self.per_channel):
            raise ConversionError('quantize: block needs weights="int4", with per_channel')
        if self.activations is None:
            given = [f.name for f in fields(self) if f.name in _OF_ACTIVATIONS and getattr(self, f.name) != f.default]
            if given:
                raise ConversionError(f'quantize: {", ".join(given)} need activations="int8" or "int16"')
            return
        if self.weights != "int8":
            raise ConversionError(f"quantize: {self.activations} activations need int8 weights, got {self.weights}")
        stored = ("float32", "int16") if self.activations == "int16" else ("float32", "int8", "uint8")
        for name in ("input_type", "output_type"):
            if getattr(self, name) not in stored:
                raise ConversionError(
                    f"quantize: expected {name} one of {stored} with {self.activations} activations, "
                    f"got {brief(repr(getattr(self, name)))}"
                )


def declared(how: Quantization | Weights | None) -> Quantization | None:
    """Return the declaration for a short form: "int8" or "int4" (dynamic range), "float16" or None."""
    if how is None or isinstance(how, Quantization):
        return how
    if how not in get_args(Weights):
        expected = 'None, "float16", "int8", "int4"'
        raise ConversionError(f"quantize: expected one of {expected} or a Quantization, got {brief(repr(how))}")
    return Quantization(weights=how)
