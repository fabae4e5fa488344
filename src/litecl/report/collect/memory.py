"""Collects regions' memory: the placement and lifetime of arena blocks, and constants."""

from collections.abc import Mapping

from litecl.delegate.cl_op import Const, Operand
from litecl.delegate.plan.memory import Usage
from litecl.delegate.plan.plan import Plan
from litecl.delegate.report import PartitionRow
from litecl.report.facts import Block, Place, RegionFacts

_PACKED, _AS_IS = "packed copies and tables", "as in the model"


def region_of(row: PartitionRow, plan: Plan, ops: Mapping[Place, str]) -> RegionFacts:
    """Return a region's facts. ops: the operator of each node."""
    blocks = tuple(sorted((_block(usage, plan, ops) for usage in plan.usages), key=lambda b: (b.first, b.offset)))
    return RegionFacts(
        number=row.partition,
        subgraph=row.subgraph,
        nodes=len(row.nodes),
        launches=row.launches,
        manner=str(row.manner),
        loops=row.loops,
        arena_bytes=row.arena_bytes,
        needed_bytes=_needed(blocks),
        constants=_constants(plan),
        steps=max((block.last for block in blocks), default=0) + 1,
        blocks=blocks,
    )


def _block(usage: Usage, plan: Plan, ops: Mapping[Place, str]) -> Block:
    key, offset = usage.key, plan.arena.offsets[usage.key]
    states = {o for state in plan.states for o in (state.before, state.after)}
    if isinstance(key, Operand):
        roots = (
            ("input", {*map(plan.root, plan.inputs)}),
            ("state", states),
            ("output", {*map(plan.root, plan.outputs)}),
        )
        kind = next((kind for kind, operands in roots if key in operands), "tensor")
        return Block(key.spec.name, kind, offset, usage.size_bytes, usage.first, usage.last)
    user = next((work for work in plan.works if key in work.launch.args), None)
    name = "variables of a loop" if user is None else f"scratch of {ops.get((user.subgraph, user.node), '?')}"
    return Block(name, "scratch", offset, usage.size_bytes, usage.first, usage.last)


def _needed(blocks: tuple[Block, ...]) -> int:
    """Return the most bytes in use at any step, a lower bound for the arena."""
    changes: dict[int, int] = {}
    for block in blocks:
        changes[block.first] = changes.get(block.first, 0) + block.size_bytes
        changes[block.last + 1] = changes.get(block.last + 1, 0) - block.size_bytes
    most = now = 0
    for step in sorted(changes):
        now += changes[step]
        most = max(most, now)
    return most


def _constants(plan: Plan) -> dict[str, int]:
    args = {arg for work in plan.works for arg in work.launch.args if isinstance(arg, Const | Operand)}
    roots = {plan.root(arg) if isinstance(arg, Operand) else arg for arg in args}
    return {
        _AS_IS: sum(root.size_bytes for root in roots if isinstance(root, Operand) and root.data is not None),
        _PACKED: sum(root.size_bytes for root in roots if isinstance(root, Const)),
    }
