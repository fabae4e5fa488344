"""Fuses a multiplication into the sum or mean that is its only reader, on a CPU."""

from litecl.delegate.ops.product_sum import PRODUCT_SUM, ProductSumOptions, steps_of
from litecl.delegate.plan.fusion import Found, fuse, matching
from litecl.delegate.plan.graph import RegionGraph, RegionNode
from litecl.interpreter.match import AnyTensor, Constant, Pattern
from litecl.interpreter.ops.binary import MUL
from litecl.interpreter.ops.reduce import MEAN, SUM
from litecl.interpreter.ops.unary import SQUARE
from litecl.interpreter.schema import TensorType

_PRODUCTS = (
    Pattern(MUL, [AnyTensor("a"), AnyTensor("b")], name="products"),
    Pattern(SQUARE, [AnyTensor("a")], name="products"),
)
_SUMS = [Pattern(op, [products, Constant("axes")]) for op in (SUM, MEAN) for products in _PRODUCTS]


def product_sums(graph: RegionGraph) -> RegionGraph:
    """Fuse products into their sum or mean."""
    return fuse(graph, *(matching(pattern, _summed) for pattern in _SUMS))


def _summed(graph: RegionGraph, node: RegionNode, found: Found) -> RegionNode | None:
    products = found.nodes[1]
    factors = products.inputs if products.node.op is MUL else (products.inputs[0],) * 2
    options = _options(graph, node, found)
    if options is None or not (node.is_plain and products.is_plain):
        return None
    specs = [graph.specs[t] for t in (*factors, found["products"], *node.outputs)]
    if any(spec.type != TensorType.FLOAT32 for spec in specs):
        return None
    if any(steps_of(spec.static_shape, options) is None for spec in specs[:2]):
        return None
    return node.behind(products, kernel=PRODUCT_SUM, inputs=factors, options=options)


def _options(graph: RegionGraph, node: RegionNode, found: Found) -> ProductSumOptions | None:
    """Return the reduced dimensions; None if there are none, or they aren't adjacent."""
    shape, axes = graph.specs[found["products"]].static_shape, graph.value(found["axes"])
    if axes is None or not axes.size or not shape:
        return None
    reduced = sorted({int(axis) % len(shape) for axis in axes.flat})
    first, end = reduced[0], reduced[-1] + 1
    if any(shape[d] > 1 for d in range(first, end) if d not in reduced):
        return None
    return ProductSumOptions(shape, first, end, node.node.op is MEAN)
