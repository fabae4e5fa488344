"""The keywords of every source of the converter."""

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from litecl.converter.quantization.options import Quantization, Weights, declared
from litecl.interpreter.errors import ConversionError, brief

_LSTM = ("fused", "variables", "while")


class Options(TypedDict, total=False):
    """The keywords of every ``from_*``.

    lstm: "fused" makes a recurrent layer one operator if possible; "while" keeps its loop. "variables" is "fused"
        without the nodes that zero its states, which tflite-micro refuses as integers: every run then goes on from
        the states of the run before, until ``reset_all_variables()`` or tflite-micro's ``reset()``.
    quantize: None keeps the model in float32. "float16" stores weights as float16, "int8" as int8 with scales, "int4"
        those of dense layers in four bits (dynamic range: activations stay float32). A ``Quantization`` has all
        options, such as integer activations.
    fp16_safe: representative data, as in ``Quantization.data``, or True for random inputs. Weights are rescaled by
        powers of two so that no activation leaves the float16 range, if results stay bit-identical. ``report.rescaled``
        lists what was rescaled, and what could not be.
    """

    lstm: Literal["fused", "variables", "while"]
    quantize: Quantization | Weights | None
    fp16_safe: Any


def check(options: Mapping[str, Any]) -> None:
    """Raise ConversionError for unknown keywords, wrong values, and keywords that clash."""
    unknown = sorted(options.keys() - Options.__annotations__.keys())
    if unknown:
        raise ConversionError(f"expected options {sorted(Options.__annotations__)}, got {unknown}")
    if options.get("lstm", "fused") not in _LSTM:
        raise ConversionError(f"lstm: expected one of {_LSTM}, got {brief(repr(options['lstm']))}")
    how = declared(options.get("quantize"))
    if options.get("fp16_safe") is not None and how is not None and how.weights != "float16":
        raise ConversionError('fp16_safe: expected a model in float, or quantize="float16", got integers')
