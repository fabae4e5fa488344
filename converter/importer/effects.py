"""Reads from TensorFlow's operator definitions which operators have effects."""

from typing import Any

import tensorflow as tf

from litecl.converter.traits import TRAITS, Effects


def effects_of(definition: Any) -> Effects:
    """Return the effects of the operator that an OpDef defines.

    A row of ``TRAITS`` takes precedence: OpDef says that an operator touches state, but not whether it changes any. Any
    other stateful operator counts as writing, unless it only makes a handle or draws random numbers from a seed.
    """
    if definition.name in TRAITS:
        return TRAITS[definition.name].effects
    if not touches_state(definition):
        return Effects.PURE
    return Effects.READS if _makes_a_handle(definition) or _has_a_seed(definition) else Effects.WRITES


def touches_state(definition: Any) -> bool:
    """Return whether an operator is stateful or takes a reference to a TensorFlow 1 variable."""
    return definition.is_stateful or any(argument.is_ref for argument in definition.input_arg)


def _makes_a_handle(definition: Any) -> bool:
    are_handles = [_is_handle(argument) for argument in definition.output_arg]
    return bool(are_handles) and are_handles[0] and not any(map(_is_handle, definition.input_arg))


def _has_a_seed(definition: Any) -> bool:
    return "seed" in {attribute.name for attribute in definition.attr} and bool(definition.output_arg)


def _is_handle(argument: Any) -> bool:
    return bool(argument.is_ref or argument.type == tf.resource.as_datatype_enum)
