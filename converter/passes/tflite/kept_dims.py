"""Makes reductions keep dimensions that a RESHAPE right after restores, as in squeeze-and-excite."""

from dataclasses import replace

from litecl.converter.graph import Function, Node, Value
from litecl.interpreter.ops import reduce
from litecl.interpreter.ops.reshape import RESHAPE

_REDUCTIONS = (
    reduce.MEAN,
    reduce.SUM,
    reduce.REDUCE_MAX,
    reduce.REDUCE_MIN,
    reduce.REDUCE_PROD,
    reduce.REDUCE_ANY,
    reduce.REDUCE_ALL,
)


def keep_dims(function: Function) -> bool:
    """Remove every such RESHAPE; return whether there was one."""
    changed = False
    for node in list(function.nodes):
        reduction = node.input(0).producer if node.op is RESHAPE else None
        if reduction is not None and reduction.op in _REDUCTIONS and function.only_user(node.input(0)) is node:
            changed |= _keep(function, node, reduction)
    function.tidy()
    return changed


def _keep(function: Function, node: Node, reduction: Node) -> bool:
    shape, axes = reduction.input(0).shape, reduction.input(1).data
    if shape is None or axes is None or reduction.options.keep_dims or node.output.shape is None:
        return False
    reduced = {int(axis) % len(shape) for axis in axes.reshape(-1)}
    kept = tuple(1 if i in reduced else size for i, size in enumerate(shape))
    if node.output.shape != kept or kept.count(None) > 1:
        return False
    result = Value(node.output.type, kept, node.output.name)
    options = replace(reduction.options, keep_dims=True)
    function.add(Node(reduction.op, reduction.inputs, [result], options, reduction.name))
    function.replace_node(node, [result])
    return True
