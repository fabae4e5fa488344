"""Compositions of TensorFlow operators for those that TFLite lacks, one file per family.

A composition is a function of attributes and operands (tensors being traced) that returns the results, or None if the
operator has a lowering as it is.
"""

from collections.abc import Mapping

from litecl.converter.importer.compositions import (
    counting,
    crops,
    ctc,
    detection,
    diagonals,
    forms,
    forms_of_random,
    images,
    linalg,
    ragged,
    sparse,
    windows,
)
from litecl.converter.importer.compositions.integers import OF_INT64, OF_INTEGERS
from litecl.converter.importer.compositions.kit import Composition
from litecl.interpreter.schema import TensorType

_FAMILIES = (
    counting,
    crops,
    ctc,
    detection,
    diagonals,
    forms,
    forms_of_random,
    images,
    linalg,
    ragged,
    sparse,
    windows,
)
COMPOSITIONS: Mapping[str, Composition] = {
    name: composition for family in _FAMILIES for name, composition in family.COMPOSITIONS.items()
}
_BY_TYPE = {TensorType.INT32: OF_INTEGERS, TensorType.INT64: OF_INT64}


def composition_of(op: str, first: TensorType | None) -> Composition | None:
    """Return the composition of an operator whose first operand has this type, or None."""
    by_type = {} if first is None else _BY_TYPE.get(first, {})
    return by_type.get(op) or COMPOSITIONS.get(op)
