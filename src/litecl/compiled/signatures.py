"""A compiled model's signatures, with inputs and outputs by position and by name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Model

_UNNAMED = "<placeholder signature>"  # LiteRT's key for a model without signatures


Names = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Entry:
    """A signature: names and tensors of a subgraph, in the order of the subgraph's inputs and outputs."""

    key: str
    subgraph: int
    inputs: Names
    outputs: Names


def entries(model: Model) -> tuple[Entry, ...]:
    """Return a model's signatures. Without any, return one by tensor names, which may repeat."""
    graphs = model.subgraphs
    if not model.signatures:
        inputs, outputs = (
            tuple((graphs[0].tensors[t].name, t) for t in tensors) for tensors in (graphs[0].inputs, graphs[0].outputs)
        )
        return (Entry(_UNNAMED, 0, inputs, outputs),)
    return tuple(
        Entry(
            signature.key,
            signature.subgraph,
            _in_order(signature.inputs, graphs[signature.subgraph].inputs),
            _in_order(signature.outputs, graphs[signature.subgraph].outputs),
        )
        for signature in model.signatures
    )


def _in_order(names: Mapping[str, int], tensors: Sequence[int]) -> Names:
    """Sort names by their tensors' order in the subgraph, which is that of LiteRT's buffers."""
    positions = {tensor: position for position, tensor in reversed([*enumerate(tensors)])}
    return tuple(sorted(names.items(), key=lambda item: positions.get(item[1], len(tensors))))


def at(kind: str, index: int, names: Names) -> int:
    """Return an input's or output's tensor by position. Raises ModelError if there is none."""
    if not isinstance(index, int) or not 0 <= index < len(names):
        raise ModelError(f"{kind} {index!r} out of range for {len(names)} {kind}s {listed(names)}")
    return names[index][1]


def called(kind: str, name: str, names: Names) -> int:
    """Return an input's or output's position by name. Raises ModelError if there is none."""
    if not isinstance(name, str) or name not in listed(names):
        raise ModelError(f"{kind} {name!r} not found; the signature has {listed(names)}")
    return listed(names).index(name)


def listed(names: Names) -> list[str]:
    """Return the names without tensors."""
    return [name for name, _ in names]
