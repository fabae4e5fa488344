"""TFLiteConverter's attributes, set on a ``Converter``: honoured, or refused by name.

Values may be TensorFlow's own (``tf.lite.Optimize.DEFAULT``, ``tf.int8``) or their names; nothing here imports
TensorFlow.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from litecl.converter.quantization.options import Quantization
from litecl.interpreter.errors import ConversionError, brief

_OPTIMIZATIONS = ("DEFAULT", "OPTIMIZE_FOR_SIZE", "OPTIMIZE_FOR_LATENCY")  # all the same in TensorFlow
_INTEGERS = {
    "TFLITE_BUILTINS_INT8": "int8",
    "EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8": "int16",
}
_SETS = ("TFLITE_BUILTINS", "SELECT_TF_OPS", *_INTEGERS)  # a converted model never needs Flex
_BORDERS = ("float32", "int8", "uint8", "int16")

_Check = Callable[[Any], Any]
"""Validates and normalises a value. Raises ValueError that says what was expected."""


def _name(value: Any) -> str:
    """Return the name of an enum member, or of a TensorFlow or numpy type."""
    if isinstance(value, str):
        return value
    named = getattr(value, "as_numpy_dtype", value)
    if isinstance(named, type) or hasattr(named, "kind"):
        return str(np.dtype(named).name)
    return str(getattr(value, "value", getattr(value, "name", value)))


def _each_of(allowed: Iterable[str]) -> _Check:
    choices = tuple(allowed)

    def check(value: Any) -> tuple[str, ...]:
        names = tuple(map(_name, value))
        if set(names) - set(choices):
            raise ValueError(f"expected a list of {', '.join(choices)}")
        return names

    return check


def _one_of(*allowed: str) -> _Check:
    def check(value: Any) -> str:
        if _name(value) not in allowed:
            raise ValueError(f"expected one of {', '.join(allowed)}")
        return _name(value)

    return check


def _only(*allowed: Any) -> _Check:
    def check(value: Any) -> Any:
        if value not in allowed:
            raise ValueError(f"expected {' or '.join(map(repr, allowed))}")
        return value

    return check


def _nothing(value: Any) -> Any:
    if value:
        raise ValueError("expected nothing")
    return value


def _data(value: Any) -> Any:
    source = getattr(value, "input_gen", value)  # tf.lite.RepresentativeDataset holds the function
    if source is not None and not callable(source):
        raise ValueError("expected a function that returns samples")
    return source


class TargetSpec:
    """TFLiteConverter's ``target_spec``."""

    _CHECKS: Mapping[str, _Check] = {
        "supported_ops": _each_of(_SETS),
        "supported_types": _each_of(("float32", "float16", "int8")),
        "experimental_select_user_tf_ops": _nothing,
        "experimental_supported_backends": _nothing,
        "experimental_supported_accumulation_type": _only(None),
        "_experimental_custom_op_registerers": _nothing,
        "_experimental_supported_accumulation_type": _only(None),
    }

    supported_ops: tuple[str, ...]
    supported_types: tuple[str, ...]

    def __init__(
        self, supported_ops: Iterable[Any] = ("TFLITE_BUILTINS",), supported_types: Iterable[Any] = ()
    ) -> None:
        self.supported_ops = supported_ops  # type: ignore[assignment]
        self.supported_types = supported_types  # type: ignore[assignment]

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, _checked("target_spec.", self._CHECKS, name, value))


def _target(value: Any) -> TargetSpec:
    """Copy the attributes of TensorFlow's TargetSpec."""
    if isinstance(value, TargetSpec):
        return value
    target = TargetSpec()
    for name, given in vars(value).items():
        setattr(target, name, given)
    return target


def _checked(prefix: str, checks: Mapping[str, _Check], name: str, value: Any) -> Any:
    if name not in checks:
        known = ", ".join(prefix + key for key in checks if not key.startswith("_"))
        raise ConversionError(f"{prefix}{name} is not supported; supported are: {known}")
    try:
        return checks[name](value)
    except (TypeError, ValueError) as error:
        raise ConversionError(f"{prefix}{name}: {error}, got {brief(repr(value))}") from error


class TFLiteAttributes:
    """TFLiteConverter's attributes on a converter. Setting any other raises ConversionError.

    ``optimizations`` with DEFAULT quantizes: only weights, or everything with a ``representative_dataset``; with
    float16 in ``target_spec.supported_types``, to float16. If ``target_spec.supported_ops`` has only integer operators,
    models that would stay partly in float are refused.
    """

    _CHECKS: Mapping[str, _Check] = {
        "optimizations": _each_of(_OPTIMIZATIONS),
        "representative_dataset": _data,
        "target_spec": _target,
        "inference_input_type": _one_of(*_BORDERS),
        "inference_output_type": _one_of(*_BORDERS),
        "allow_custom_ops": _only(True, False),
        "exclude_conversion_metadata": _only(True, False),  # there is none
        "experimental_new_converter": _only(True),
        "experimental_new_quantizer": _only(True, None),
        "experimental_enable_resource_variables": _only(True),
        "_experimental_lower_tensor_list_ops": _only(True, False),  # always lowered, so none are left for Flex
        "_experimental_disable_per_channel": _only(True, False),
    }

    optimizations: tuple[str, ...] = ()
    representative_dataset: Callable[[], Iterable[Any]] | None = None
    target_spec: TargetSpec
    inference_input_type: str = "float32"
    inference_output_type: str = "float32"
    allow_custom_ops: bool = True
    _experimental_disable_per_channel: bool = False

    _OWN: frozenset[str] = frozenset()
    """Attributes of the subclass itself."""

    def __setattr__(self, name: str, value: Any) -> None:
        own = name in self._OWN
        object.__setattr__(self, name, value if own else _checked("", self._CHECKS, name, value))

    def asked(self, given: Quantization | None) -> Quantization | None:
        """Return the quantization that the attributes ask for, else ``given``.

        Raises ConversionError if both are set, and for attributes that would have no effect.
        """
        integers = [_INTEGERS[name] for name in self.target_spec.supported_ops if name in _INTEGERS]
        without_effect = self._without_effect(bool(integers))
        if not self.optimizations:
            if without_effect:
                raise ConversionError(f"{', '.join(without_effect)}: no effect without optimizations of DEFAULT")
            return given
        if given is not None:
            raise ConversionError("quantize and optimizations both select a quantization: pass one of them")
        if "float16" in self.target_spec.supported_types:
            if len(without_effect) > 1:
                others = [name for name in without_effect if name != "target_spec.supported_types"]
                raise ConversionError(f"{', '.join(others)}: no effect with weights in float16")
            return Quantization(weights="float16")
        if self.representative_dataset is None:
            if integers or "int8" in self.target_spec.supported_types or len(without_effect) > 0:
                raise ConversionError("integer activations, inputs or outputs need a representative_dataset")
            return Quantization(weights="int8", per_channel=not self._experimental_disable_per_channel)
        return self._integers(integers)

    def _without_effect(self, integers: bool) -> list[str]:
        """Return the attributes set that concern integers."""
        said = {
            "representative_dataset": self.representative_dataset is not None,
            "target_spec.supported_ops": integers,
            "target_spec.supported_types": bool(set(self.target_spec.supported_types) - {"float32"}),
            "inference_input_type": self.inference_input_type != "float32",
            "inference_output_type": self.inference_output_type != "float32",
        }
        return [name for name, is_said in said.items() if is_said]

    def _integers(self, integers: list[str]) -> Quantization:
        activations = integers[0] if integers else "int8"
        alone = bool(integers) and "TFLITE_BUILTINS" not in self.target_spec.supported_ops
        return Quantization(
            activations="int16" if activations == "int16" else "int8",
            data=self.representative_dataset,
            input_type=self.inference_input_type,  # type: ignore[arg-type]
            output_type=self.inference_output_type,  # type: ignore[arg-type]
            per_channel=not self._experimental_disable_per_channel,
            strict=alone or "int8" in self.target_spec.supported_types,
        )
