"""The terms of a gate's sum before its activation: products with constant weights, constants, parts of tensors."""

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import ABSENT, Array, Node
from litecl.interpreter.ops.binary import ADD
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED
from litecl.interpreter.schema import FullyConnectedOptionsWeightsFormat, TensorType
from litecl.interpreter.steps.links import Links
from litecl.interpreter.steps.views import Columns, columns

_MOST = 8  # terms at most


@dataclass(frozen=True, eq=False)
class Product:
    """x @ weights.T + bias, for rows x; weights [units, depth], bias [units]."""

    x: int
    weights: Array
    bias: Array


@dataclass(frozen=True)
class Sum:
    """A sum of products, of other parts of tensors, and of a constant row."""

    products: tuple[Product, ...]
    parts: tuple[Columns, ...]
    row: Array


def sum_of(links: Links, tensor: int) -> Sum | None:
    """Return the terms of a tensor; None if constants differ between rows, or if there are too many terms."""
    pending, products, parts = [columns(links, tensor)], [], []
    row = np.zeros(pending[0].count)
    while pending:
        view = pending.pop()
        node = links.producer(view.source)
        known = links.value(view.source)
        if known is not None:
            same = _row(known, view)
            if same is None:
                return None
            row = row + same
        elif node is not None and links.is_a(node, ADD) and _fits(links, node):
            pending += [_operand(links, t, view) for t in node.inputs]
        elif node is not None and (product := product_of(links, node, view)) is not None:
            products.append(product)
        else:
            parts.append(view)
        if len(products) + len(parts) + len(pending) > _MOST:
            return None
    return Sum(tuple(products), tuple(parts), row)


def product_of(links: Links, node: Node, view: Columns) -> Product | None:
    """Return the product that columns of a FULLY_CONNECTED's result hold."""
    if not links.is_a(node, FULLY_CONNECTED):
        return None
    x, matrix, *rest = node.inputs
    weights = links.value(matrix)
    bias = links.value(rest[0]) if rest and rest[0] != ABSENT else np.zeros(0, np.float32)
    plain = node.options.weights_format == FullyConnectedOptionsWeightsFormat.DEFAULT
    if not plain or not _is_float(weights) or not _is_float(bias) or links.shape(x)[-1:] != weights.shape[1:]:  # type: ignore[union-attr]
        return None
    chosen = slice(view.first, view.first + view.count)
    assert weights is not None and bias is not None
    return Product(x, weights[chosen], bias.reshape(-1)[chosen] if bias.size else np.zeros(view.count, np.float32))


def _is_float(data: Array | None) -> bool:
    return data is not None and data.dtype == TensorType.FLOAT32.dtype


def _fits(links: Links, node: Node) -> bool:
    """Return whether every operand of an addition is a constant, or has the rows of the result."""
    shape = links.shape(node.outputs[0])
    rows = links.rows(node.outputs[0], shape[-1]) if shape else 0
    return bool(rows) and all(
        links.value(t) is not None or links.rows(t, shape[-1]) == rows for t in node.inputs if t != ABSENT
    )


def _operand(links: Links, tensor: int, view: Columns) -> Columns:
    if links.value(tensor) is not None:
        return Columns(tensor, view.first, view.count)
    return columns(links, tensor).part(view.first, view.count)


def _row(known: Array, view: Columns) -> Array | None:
    """Return columns of a constant, if all its rows are equal."""
    if known.dtype != np.float32:
        return None
    width = known.shape[-1] if known.ndim else 1
    rows = known.reshape(-1, width).astype(np.float64)
    if not rows.size or (rows != rows[0]).any():
        return None
    return rows[0, view.first : view.first + view.count] if width > 1 else np.full(view.count, rows[0, 0])
