"""The signatures of a compiled model, and inputs and outputs by position and by name."""

from collections.abc import Mapping
from dataclasses import dataclass

from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Model

_UNNAMED = "<placeholder signature>"  # LiteRT's name for what a model without signatures does


@dataclass(frozen=True)
class Entry:
    """A way to run the model: tensors of a subgraph by name, in the order of the file."""

    key: str
    subgraph: int
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]


def entries(model: Model) -> tuple[Entry, ...]:
    """Return the signatures of a model, or what it does under the names of its tensors."""
    if model.signatures:
        return tuple(Entry(s.key, s.subgraph, s.inputs, s.outputs) for s in model.signatures)
    graph = model.subgraphs[0]
    inputs, outputs = ({graph.tensors[t].name: t for t in tensors} for tensors in (graph.inputs, graph.outputs))
    return (Entry(_UNNAMED, 0, inputs, outputs),)


def at(kind: str, index: int, names: Mapping[str, int]) -> int:
    """Return the tensor of an input or output by position. Raises ModelError where there is none."""
    tensors = [*names.values()]
    if not isinstance(index, int) or not 0 <= index < len(tensors):
        raise ModelError(f"{kind} {index!r} out of range for {len(tensors)} {kind}s {[*names]}")
    return tensors[index]


def called(kind: str, name: str, names: Mapping[str, int]) -> int:
    """Return the tensor of an input or output by name. Raises ModelError where there is none."""
    if name not in names:
        raise ModelError(f"{kind} {name!r} not found; the signature has {[*names]}")
    return names[name]
