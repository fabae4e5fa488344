"""Fuses consecutive element-wise operators into one launch of a kernel that applies a table of steps."""

from collections.abc import Sequence
from dataclasses import replace

from litecl.delegate.cl_op import Activation
from litecl.delegate.ops.chain import OPERANDS, step_of
from litecl.delegate.plan.activations import activation_after, activation_of
from litecl.delegate.plan.fusion import fuse
from litecl.delegate.plan.graph import NONE, ElementwiseStep, RegionGraph, RegionNode
from litecl.interpreter.graph import ABSENT
from litecl.interpreter.schema import TensorType

Steps = tuple[ElementwiseStep, ...]


def chains(graph: RegionGraph) -> RegionGraph:
    """Fuse sequences of element-wise nodes, each the only reader of the result before it."""
    return fuse(graph, _chained)


def _chained(graph: RegionGraph, node: RegionNode) -> RegionNode | None:
    """Return the longest chain that begins with a node; None if nothing can follow it."""
    if node.steps:
        return None
    starts = ((x, _steps(graph, node, node, x)) for x in node.inputs)
    start = next(((x, steps) for x, steps in starts if steps is not None), None)
    if start is None:
        return None
    x, steps = start
    fused: list[RegionNode] = []
    while (following := _following(graph, node, fused[-1] if fused else node, steps)) is not None:
        nodes, steps = following
        fused += nodes
    return node.followed_by(*fused, inputs=(x,), activation=NONE, steps=steps) if fused else None


def _following(
    graph: RegionGraph, first: RegionNode, last: RegionNode, steps: Steps
) -> tuple[Sequence[RegionNode], Steps] | None:
    """Return the nodes that continue a chain after its last one, and all steps including theirs; else None."""
    y = last.outputs[0]
    if (following := activation_after(graph, y)) is not None:
        activation, nodes = following
        return nodes, _activated(_activated(steps, activation), nodes[-1].activation)
    reader = graph.only_reader(y)
    added = None if reader is None else _steps(graph, first, reader, y)
    if reader is None or added is None:
        return None
    longer, arrays = (*steps, *added), _arrays(graph, added)
    return ([reader], longer) if not arrays or len(_arrays(graph, longer)) <= OPERANDS else None


def _steps(graph: RegionGraph, first: RegionNode, node: RegionNode, x: int) -> Steps | None:
    """Return the steps of a node that reads ``x``; None if they can't be computed in the place of ``first``."""
    cl_op = node.cl_op
    if cl_op is None or ABSENT in node.inputs or not (cl_op.chains or cl_op.activates):
        return None
    specs, position = [graph.specs[t] for t in (*node.inputs, *node.outputs)], node.inputs.index(x)
    if any(spec.type != TensorType.FLOAT32 for spec in specs) or specs[position].size != specs[-1].size:
        return None
    if (activation := activation_of(node)) is not None:
        return _activated((), activation)
    others = [t for i, t in enumerate(node.inputs) if i != position]
    name = step_of(node.node.op.name, position) if cl_op.chains else None
    if name is None or not all(graph.is_there(t, first) for t in others):
        return None
    return _activated((ElementwiseStep(name, next(iter(others), None)),), node.activation)


def _activated(steps: Steps, activation: Activation) -> Steps:
    """Append an activation to steps; a clamp is merged into the last step if that takes a tensor."""
    if activation == NONE:
        return steps
    last = steps[-1] if steps else None
    if last is not None and last.tensor is not None and last.activation == NONE and activation.function == "CLAMP":
        return (*steps[:-1], replace(last, activation=activation))
    return (*steps, ElementwiseStep(activation.function, None, activation))


def _arrays(graph: RegionGraph, steps: Sequence[ElementwiseStep]) -> set[int]:
    """Return the tensors that the kernel reads besides the first, except constant scalars."""
    values = {step.tensor: graph.value(step.tensor) for step in steps if step.tensor is not None}
    return {tensor for tensor, value in values.items() if value is None or value.size != 1}
