"""Removes unneeded arguments and results of branches; if the condition is known, the branch replaces its If."""

from litecl.converter.graph import Function, Node, Value, constant
from litecl.converter.passes.splice import splice


def simplify_branches(function: Function) -> bool:
    """Simplify the Ifs of a function; return whether one changed."""
    changed = False
    for node in list(function.nodes):
        if node.op != "If":
            continue
        condition = node.input(0).data
        if condition is not None and condition.size == 1:
            _take(function, node, node.bodies[0 if condition.any() else 1])
            changed = True
            continue
        changed |= _push_constants(node) | _drop_results(function, node) | _drop_arguments(node)
    if changed:
        function.tidy()
    return changed


def _take(function: Function, node: Node, branch: Function) -> None:
    node.rewire(node.inputs[1:])
    node.bodies = ()
    splice(function, node, branch)


def _push_constants(node: Node) -> bool:
    changed = False
    for i, value in enumerate(node.inputs[1:]):
        if value is None or value.data is None:
            continue
        for branch in node.bodies:
            argument = branch.inputs[i]
            if argument.users or branch.is_output(argument):
                branch.replace(argument, constant(value.data, value.name))
                changed = True
    return changed


def _drop_results(function: Function, node: Node) -> bool:
    kept = [i for i, value in enumerate(node.outputs) if value.users or function.is_output(value)]
    if len(kept) == len(node.outputs):
        return False
    node.outputs = tuple(node.outputs[i] for i in kept)
    for branch in node.bodies:
        branch.outputs = [branch.outputs[i] for i in kept]
        branch.tidy()
    return True


def _drop_arguments(node: Node) -> bool:
    def is_read(branch: Function, argument: Value) -> bool:
        return bool(argument.users) or branch.is_output(argument)

    positions = range(len(node.inputs) - 1)
    kept = [i for i in positions if any(is_read(branch, branch.inputs[i]) for branch in node.bodies)]
    if len(kept) == len(positions):
        return False
    node.rewire([node.inputs[0], *(node.inputs[i + 1] for i in kept)])
    for branch in node.bodies:
        branch.inputs = [branch.inputs[i] for i in kept]
    return True
