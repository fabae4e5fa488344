"""Raw operators that are compositions, or operators of litecl's own, one a model: each against TensorFlow.

``tests/tools/raw_operators.py`` does the same for all, and counts.
"""

import pytest

tf = pytest.importorskip("tensorflow")

from litecl.converter.importer.compositions import forms, forms_of_random, sparse, windows  # noqa: E402
from litecl.converter.lower import own  # noqa: E402
from support.raw_runs import ARGUMENTS, Verdict, run  # noqa: E402

_TABLES = (forms.COMPOSITIONS, forms_of_random.COMPOSITIONS, sparse.COMPOSITIONS, windows.COMPOSITIONS, own.LOWERINGS)
_NAMES = sorted({name for table in _TABLES for name in table} & set(ARGUMENTS))


@pytest.mark.parametrize("name", _NAMES)
def test_operator(name: str) -> None:
    result = run(name)
    assert result.verdict is Verdict.EQUAL, f"{' '.join(result.operators)}: {result.why}"
