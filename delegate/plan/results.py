"""What a region leaves when it ends: its outputs, and the new values of variables in the state store.

A variable that the region assigns has two copies in memory, in two sets, like a loop variable: a run reads one and
writes the other, and after a successful run they are swapped. A failed run therefore keeps the old values.
"""

from collections.abc import Mapping
from dataclasses import replace

from litecl.delegate.cl_op import Operand
from litecl.delegate.claim.region import Region, RegionVariable
from litecl.delegate.plan.request import Request
from litecl.delegate.plan.steps import State, Work
from litecl.delegate.plan.values import Lowered, Operands, copied
from litecl.interpreter.graph import updated_by


def variables(request: Request, region: Region) -> tuple[dict[RegionVariable, Operand], dict[int, Operand]]:
    """Return the operands of the variables' old values, which need memory even if no node reads them, and of the new
    values that the region's nodes compute, by tensor.
    """
    graph, specs = request.model.subgraphs[region.subgraph], request.specs[region.subgraph]
    nodes = [graph.nodes[i] for i in region.nodes]
    updated = {t for node in nodes for t in updated_by(node)}
    computed = {t for node in nodes for t in node.outputs if specs[t].data is None} - updated
    old: dict[RegionVariable, Operand] = {}
    new: dict[int, Operand] = {}
    for variable in region.variables:
        tensor = variable.after if variable.before is None else variable.before
        assert tensor is not None, "a region reads or assigns its variables"
        old[variable] = Operand(replace(specs[tensor], data=None))
        if variable.after in computed:
            new[variable.after] = Operand(specs[variable.after])
    return old, new


def results(
    request: Request,
    region: Region,
    lowered: Lowered,
    inputs: Operands,
    old: Mapping[RegionVariable, Operand],
    new: Operands,
) -> tuple[tuple[State, ...], tuple[Operand, ...], list[Work]]:
    """Return the states and outputs of a lowered region, and the copies of those whose values lie elsewhere.

    old, new: the operands of ``variables``.
    """
    copies: list[Work] = []

    def apart(value: Operand) -> Operand:
        """Return an operand with memory of its own, to which the value is copied."""
        into = Operand(replace(value.spec, data=None))
        copies.append(copied(lowered.last, value, into, request.target))
        return into

    own = {*new.values(), *lowered.updated.values()}
    states: list[State] = []
    for variable, before in old.items():
        after = None if variable.after is None else lowered.newest(variable.after)
        if after in own:
            own.remove(after)  # another variable with the same value gets a copy
        elif after is not None:
            after = apart(after)
        states.append(State(variable.key, before, after, read=variable.before is not None))
    changing = {operand for state in states if state.after is not None for operand in (state.before, state.after)}
    if request.target.memory == "host":  # it reads outputs in place, and writes to inputs and states between runs
        written = [*old.values(), *(operand for t, operand in inputs.items() if t not in lowered.overwritten)]
        changing |= {lowered.root(operand) for operand in written}
    values = [lowered.newest(t) for t in region.outputs]
    outputs = tuple(apart(value) if lowered.root(value) in changing else value for value in values)
    return tuple(states), outputs, copies
