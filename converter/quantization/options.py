"""``Quantization``, the declaration of how to quantize a model."""

import re
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
_NOT_WITH_RECIPE = ("weights", "activations", "per_channel", "block", "skip", "bias_correction")


@dataclass(frozen=True)
class Quantization:
    """All options of quantization, with defaults.

    weights: the type of stored weights: "int8"; "int4" for FULLY_CONNECTED, CONV_2D and EMBEDDING_LOOKUP, with "int8"
        elsewhere; or "float16", widened at run time.
    activations: "int8" or "int16" computes in integers throughout, which needs ``data``. None leaves activations in
        float32; with int8 weights that is dynamic-range quantization.
    data: representative data for the ranges of activations: samples in any form that TFLiteConverter takes, a mapping
        from input names to arrays, or the path of an .npz file with one.
    samples: the number of samples of ``data`` to use; None for all.
    method: how to derive a tensor's range. "minmax": from the smallest to the largest value; "moving_average": averaged
        over samples, the newest weighted ``1 - momentum``; "percentile": without ``100 - percentile`` percent at either
        end; "mse": with the smallest squared rounding error.
    bias_correction: add the mean error of rounded weights, measured on ``data``, to the biases of layers.
    equalize: move scales between consecutive layers, with or without a RELU between, so that the channels of their
        weights have equal ranges. It helps most without per-channel scales.
    per_channel: give weights a scale per output channel, if the operator's kernels support it.
    block: with weights="int4", the number of elements per scale in rows of FULLY_CONNECTED's weights: 32, 64, 128 or
        256. Rows that it does not divide get one scale. None: one scale per row.
    input_type, output_type: the types of the model's float inputs and outputs. Integer types need quantized
        activations; "int16" needs activations="int16".
    signatures: keys of the signatures to quantize; the others stay in float, with weights of their own. (): all of
        them. Weights that several signatures store alike are stored once.
    skip: layers that stay in float: operator names (``"SOFTMAX"``), or ``fnmatch`` patterns of tensor names, which
        match a whole name or adjacent parts between slashes (``"dense_1"``).
    recipe: a recipe of litert-quantizer (ai-edge-quantizer): a list of entries, the path of a JSON file with one, or a
        name such as "dynamic_wi4b32_afp32". Replaces weights, activations, per_channel, block and skip.
    budget: the file size, in bytes or as "40MB" or "40MiB"; ``min_sqnr_db``: the lowest signal-to-noise ratio of any
        output, in decibels. Either chooses the bits of each layer by the error it causes on ``data``. The report has
        the recipe. Weights stay integers where LiteRT has kernels, and are widened elsewhere.
    weight_only: with one of these, widen all weights, so that only they are rounded.
    strict: raise ConversionError if an operator would stay in float, as TFLITE_BUILTINS_INT8 does.
    sensitivity: also measure the error of each layer alone, at one run of the model per layer.
    measured: the number of samples for the report's errors.
    """

    weights: Weights = "int8"
    activations: Literal["int8", "int16"] | None = None
    recipe: Any = None
    budget: int | str | None = None
    min_sqnr_db: float | None = None
    weight_only: bool = False
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
    signatures: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    strict: bool = False
    sensitivity: bool = False
    measured: int = 8

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            if value not in allowed:
                raise ConversionError(f"quantize: expected {name} one of {allowed}, got {brief(repr(value))}")
        for name in ("skip", "signatures"):
            names: object = getattr(self, name)  # a string is a sequence of names too, but never intended
            if isinstance(names, str):
                raise ConversionError(f"quantize: expected {name} to be a tuple of names, got {brief(repr(names))}")
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
        if self.recipe is not None or self.searches:
            self._check_recipe()
            return
        if self.weight_only:
            raise ConversionError("quantize: weight_only needs a budget or min_sqnr_db; weight-only recipes say it")
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

    @property
    def searches(self) -> bool:
        """True if the bits of each layer are searched for."""
        return self.budget is not None or self.min_sqnr_db is not None

    @property
    def budget_bytes(self) -> int | None:
        """The budget in bytes."""
        return None if self.budget is None else _bytes(self.budget)

    def _check_recipe(self) -> None:
        if (self.recipe is not None) + (self.budget is not None) + (self.min_sqnr_db is not None) > 1:
            raise ConversionError("quantize: expected one of recipe, budget and min_sqnr_db")
        if self.searches and self.data is None:
            raise ConversionError("quantize: budget and min_sqnr_db need representative data: pass data=...")
        if self.searches and self.signatures:
            raise ConversionError("quantize: budget and min_sqnr_db search for all signatures: leave signatures out")
        if self.budget is not None:
            _bytes(self.budget)
        if self.min_sqnr_db is not None and not -100 < self.min_sqnr_db < 200:
            raise ConversionError(f"quantize: expected min_sqnr_db from -100 to 200, got {self.min_sqnr_db}")
        given = [f.name for f in fields(self) if f.name in _NOT_WITH_RECIPE and getattr(self, f.name) != f.default]
        if given:
            raise ConversionError(f"quantize: {', '.join(given)}: no effect with a recipe, whose entries say that")


_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMG]?I?B?)\s*")


def _bytes(size: int | str) -> int:
    """Return a size in bytes, from a number or a string such as "40MB"."""
    match = _SIZE.fullmatch(str(size).upper())
    number = int(float(match[1]) * _UNITS.get(match[2], 0)) if match is not None else 0
    if number < 1:
        raise ConversionError(f"quantize: expected budget as bytes or like '40MB' or '40MiB', got {brief(repr(size))}")
    return number


def declared(how: Quantization | Weights | None) -> Quantization | None:
    """Return the ``Quantization`` for a short form: "int8" or "int4" (dynamic range), "float16" or None."""
    if how is None or isinstance(how, Quantization):
        return how
    if how not in get_args(Weights):
        expected = 'None, "float16", "int8", "int4"'
        raise ConversionError(f"quantize: expected one of {expected} or a Quantization, got {brief(repr(how))}")
    return Quantization(weights=how)
