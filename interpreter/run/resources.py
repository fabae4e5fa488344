"""Types and shapes of resource variables, if all nodes of a model agree on them."""

from collections.abc import Iterable, Mapping, Sequence

from litecl.interpreter.graph import Model, TensorSpec, entries, reached
from litecl.interpreter.ops.variables import ASSIGN_VARIABLE, READ_VARIABLE, name_of

Specs = Sequence[Sequence[TensorSpec]]


def running(model: Model) -> Sequence[int]:
    """Return the subgraphs that may run: a caller's entries, and those that they reach."""
    begun = entries(model)
    nodes = [node for index in begun for node in model.subgraphs[index].nodes]
    return sorted({*begun, *reached(model, nodes)})


def agreed(model: Model, specs: Specs, running: Iterable[int]) -> Mapping[str, TensorSpec | None]:
    """Return the variables that nodes use, with type and shape; None for those on which nodes disagree.

    running: the subgraphs that may run. A node that assigns to a variable known only at run time may assign to any
    variable.
    """
    used: dict[str, list[TensorSpec]] = {}
    assigns_any = False
    for index in running:
        for node in model.subgraphs[index].nodes:
            if node.op not in (READ_VARIABLE, ASSIGN_VARIABLE) or len(node.inputs) + len(node.outputs) != 2:
                continue
            variable, value = (specs[index][t] for t in (*node.inputs, *node.outputs))
            if variable.data is not None:
                used.setdefault(name_of(variable.data), []).append(value)
            else:
                assigns_any |= node.op is ASSIGN_VARIABLE
    return {name: None if assigns_any or not _agree(values) else values[0] for name, values in used.items()}


def _agree(specs: Sequence[TensorSpec]) -> bool:
    """Return whether tensors share one type and one known shape."""
    first = specs[0]
    return first.shape is not None and all(s.shape == first.shape and s.dtype == first.dtype for s in specs)
