"""Compositions of TensorFlow's operators for those that TFLite lacks, a file for each family.

One is a function of attributes and operands, as tensors that are being traced, that returns the results, or None where
the operator as it is has a lowering.
"""

from collections.abc import Mapping

from litecl.converter.importer.compositions import (
    counting,
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

_FAMILIES = (counting, ctc, detection, diagonals, forms, forms_of_random, images, linalg, ragged, sparse, windows)
COMPOSITIONS: Mapping[str, Composition] = {
    name: composition for family in _FAMILIES for name, composition in family.COMPOSITIONS.items()
}
_BY_TYPE = {TensorType.INT32: OF_INTEGERS, TensorType.INT64: OF_INT64}


def composition_of(op: str, first: TensorType | None) -> Composition | None:
    """Return the composition of an operator whose first operand is of a type, if there is one."""
    by_type = {} if first is None else _BY_TYPE.get(first, {})
    return by_type.get(op) or COMPOSITIONS.get(op)
