"""Compositions of TensorFlow's operators for those that TFLite lacks, a file for each family.

One is a function of attributes and operands, as tensors that are being traced, that returns the results, or None where
the operator as it is has a lowering.
"""

from collections.abc import Mapping

from litecl.converter.importer.compositions import counting, ctc, detection, diagonals, images, linalg, ragged, sparse
from litecl.converter.importer.compositions.kit import Composition

_FAMILIES = (counting, ctc, detection, diagonals, images, linalg, ragged, sparse)
COMPOSITIONS: Mapping[str, Composition] = {
    name: composition for family in _FAMILIES for name, composition in family.COMPOSITIONS.items()
}
