"""Products by matrix units, emulated on whatever device there is: the layout of each maker's, every tile, edge and fusion.

Numbers are halves whose products and sums are exact in float32, so that nothing may differ.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from litecl.delegate.gpu import MATRIX_UNITS
from support import devices
from support.gpu_nets import check
from support.gpu_products import PRODUCTS, dense, eighths

_TILES = [name for name in PRODUCTS if "row" not in name or name == "rows"]
_KINDS = [(unit, kind) for unit in MATRIX_UNITS for kind in devices.UNITS]


@pytest.fixture(scope="module", params=_KINDS, ids=" ".join)
def options(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Options of delegates for a GPU with one maker's unit, whose products are cut into tiles of one kind."""
    unit, kind = request.param
    with devices.in_tiles(kind, tmp_path_factory.mktemp("programs"), unit) as found:
        yield found | {"precision": "fp16"}


@pytest.mark.parametrize("name", _TILES)
def test_products(name: str, options: dict[str, Any]) -> None:
    """All that plain tiles do, these do too."""
    check(replace(PRODUCTS[name](draw=eighths), kernel="product_matrix", exact=True), options)
