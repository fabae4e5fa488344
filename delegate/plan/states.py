"""The state store's variables that a region uses, and the memory of their values.

A variable that the region assigns has two copies in memory, in two sets, like a loop variable: a run reads one and
writes the other, and after a successful run they are swapped. A failed run therefore keeps the old values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from litecl.delegate.cl_op import Operand, Scratch
from litecl.delegate.claim.partition import Region, RegionVariable
from litecl.delegate.plan.memory import align
from litecl.delegate.plan.steps import Part, Slot, State
from litecl.delegate.plan.values import Planning, Values
from litecl.interpreter.graph import updated_by

Operands = Mapping[int, Operand]


def places(planning: Planning, region: Region) -> tuple[Operands, Operands]:
    """Return the operands of the variables' old values, and of the new values that the region's nodes compute."""
    graph, specs = planning.model.subgraphs[region.subgraph], planning.specs[region.subgraph]
    nodes = [graph.nodes[i] for i in region.nodes]
    updated = {t for node in nodes for t in updated_by(node)}
    made = {t for node in nodes for t in node.outputs if specs[t].data is None} - updated
    before = {v.before: Operand(specs[v.before]) for v in region.variables if v.before is not None}
    return before, {t: Operand(specs[t]) for v in region.variables if (t := v.after) is not None and t in made}


def states(values: Values, region: Region, before: Operands) -> tuple[tuple[State, ...], list[Part]]:
    """Return the states of a lowered region, and the copies of new values that lie elsewhere.

    before: the operands of old values, by tensor.
    """
    found: list[State] = []
    copies: list[Part] = []
    for variable in region.variables:
        after = None if variable.after is None else values.newest(variable.after)
        own = variable.after in values.graph.updated or after in values.pinned
        if after is not None and (not own or any(after is state.after for state in found)):
            value, after = after, Operand(replace(after.spec, data=None))
            copies.append(values.copy(values.graph.nodes[-1].position, value, after))
        read = variable.before is not None
        found.append(State(variable.key, _before(variable, before, after), after, read))
    _place(values.planning, found)
    return tuple(found), copies


def _before(variable: RegionVariable, before: Operands, after: Operand | None) -> Operand:
    """Return the operand of a variable's old value, which needs memory even if no node reads it."""
    if variable.before is not None:
        return before[variable.before]
    assert after is not None
    return Operand(after.spec)


def _place(planning: Planning, found: Sequence[State]) -> None:
    """Assign each changing state a slot in both sets."""
    offsets, end = {}, 0
    changing = [state for state in found if state.after is not None]
    for state in changing:
        offsets[state.key] = end
        end = align(end + max(1, state.before.size_bytes), planning.alignment)
    sets, number = Scratch(2 * end), len(planning.loops)
    for state in changing:
        planning.slots[state.before] = Slot(sets, end, offsets[state.key], number, written=False)
        if state.after is not None:
            planning.slots[state.after] = Slot(sets, end, offsets[state.key], number, written=True)
