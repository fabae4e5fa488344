"""Recognises matrix products of tensors of any rank, which TensorFlow flattens to two dimensions and restores."""

import numpy as np

from litecl.converter.graph import Function, Node, Value, constant
from litecl.converter.passes.sizes import Sizes, known_sizes


def fuse_dense(function: Function) -> None:
    """Turn reshape(matmul(reshape(x), w)) that flattens and restores dimensions into a product that keeps them."""
    sizes = known_sizes(function)
    for node in list(function.nodes):
        if node.op == "ExpandDims":
            _join(function, node)
    for node in list(function.nodes):
        product = node.input(0).producer if node.op == "Reshape" else None
        if product is not None and product.op == "MatMul" and function.only_user(node.input(0)) is node:
            _fuse(function, node, product, sizes)
    function.tidy()


def _join(function: Function, node: Node) -> None:
    """Restore the dimensions of a product with one column in one step."""
    reshape, shape = node.input(0).producer, node.output.static_shape
    product = None if reshape is None or reshape.op != "Reshape" else reshape.input(0).producer
    if reshape is None or shape is None or product is None or product.op != "MatMul":
        return
    target = constant(np.array(shape, np.int32), node.name)
    function.replace_node(node, [function.emit("Reshape", [reshape.input(0), target], node.output, node.name)])
    function.tidy()


def _fuse(function: Function, node: Node, product: Node, sizes: Sizes) -> None:
    flatten, weights = product.input(0).producer, product.input(1)
    if flatten is None or flatten.op != "Reshape" or product.attrs["transpose_a"] or weights.shape is None:
        return
    x, target = flatten.input(0), sizes.of(node.input(1))
    depth, units = weights.shape[::-1] if product.attrs["transpose_b"] else weights.shape
    if x.shape is None or len(x.shape) < 3 or target is None or depth is None or x.shape[-1] != depth:
        return
    if target.tolist() != [*(sizes.dimension(x, axis) for axis in range(len(x.shape) - 1)), units]:
        return
    result = Value(node.output.type, (*x.shape[:-1], units), node.output.name)
    attrs = {"adj_x": False, "adj_y": product.attrs["transpose_b"]}
    function.add(Node("BatchMatMulV2", [x, weights], [result], attrs, product.name))
    function.replace_node(node, [result])
