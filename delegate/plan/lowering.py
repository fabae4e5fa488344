"""Turns a graph into steps: lowers nodes in order, and control operators together with their subgraphs."""

from litecl.delegate.cl_op import Call, Launch
from litecl.delegate.matmul.product import in_halves
from litecl.delegate.ops.chain import Link, chain
from litecl.delegate.plan.control import CONTROL_STEPS, Run
from litecl.delegate.plan.graph import RegionNode
from litecl.delegate.plan.moves import settled
from litecl.delegate.plan.steps import Part, Work
from litecl.delegate.plan.values import Values
from litecl.interpreter.op import ControlOp


def lower(values: Values, run: Run) -> list[Part]:
    """Return the steps of all nodes. run: lowers another subgraph."""
    return [part for node in values.graph.nodes for part in _node(values, node, run)]


def _node(values: Values, node: RegionNode, run: Run) -> list[Part]:
    if node.cl_op is None:
        assert isinstance(node.node.op, ControlOp)
        return CONTROL_STEPS[node.node.op](values, node, run)
    if node.steps:
        return [_chain(values, node)]
    residual = None if node.residual is None else values.newest(node.residual)
    inputs, outputs = values.inputs(node), values.outputs(node)
    halves = values.planning.in_halves(values.graph.origins[position] for position in node.positions)
    intermediates = [values.graph.specs[t] for t in node.node.intermediates]
    given = node.activation, residual, node.pads, intermediates, halves
    steps = node.cl_op.steps(Call(node.node.options, inputs, outputs, values.planning.target, *given))
    if halves:
        steps = [in_halves(step) if isinstance(step, Launch) else step for step in steps]
    return [part for step in steps for part in settled(values, node, step)]


def _chain(values: Values, node: RegionNode) -> Work:
    links = [
        Link(step.name, None if step.tensor is None else values.newest(step.tensor), step.activation)
        for step in node.steps
    ]
    (x,), (y,) = node.inputs, node.outputs
    launch = chain(values.newest(x), links, values.operand(y), values.planning.target)
    return values.work(node.position, launch)
