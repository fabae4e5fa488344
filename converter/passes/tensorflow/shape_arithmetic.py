"""Folds shape arithmetic where shapes are known well enough."""

import numpy as np

from litecl.converter.graph import Function, Node, constant
from litecl.converter.passes.counts import Size
from litecl.converter.passes.sizes import Sizes, known_sizes


def resolve_sizes(function: Function) -> None:
    """Fold shape arithmetic with a known result, and reshape targets with one unknown dimension."""
    sizes = known_sizes(function)
    for node in function.nodes:
        if node.op == "Reshape":
            _resolve_reshape(node, sizes)
    for value, items in sizes.values.items():
        if not any(isinstance(item, Size) for item in items.flat):
            function.replace(value, constant(items.astype(value.type.dtype), value.name))
    function.tidy()


def _resolve_reshape(node: Node, sizes: Sizes) -> None:
    target = sizes.of(node.input(1))
    if target is None:
        return
    unknown = sum(isinstance(item, Size) for item in target)
    if unknown == 1 and -1 not in target.tolist():
        data = np.array([-1 if isinstance(item, Size) else item for item in target], np.int32)
        node.rewire([node.input(0), constant(data, node.input(1).name)])
