"""Pairs the inputs and outputs of two models, and describes their differences."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Literal

from litecl.diff.describe import of_tensor
from litecl.interpreter.graph import Model

_OF_A_TYPE = re.compile(r"_(u?int(4|8|16|32)|float(16|32)|fp(16|32))$")

End = tuple[int | None, int | None]
"""The position of an input or output in each model, None if it has none."""


def paired(a: Model, b: Model, kind: str) -> list[End]:
    """Return the positions of corresponding inputs or outputs of the first subgraphs, and then of those without.

    Those of one name correspond: in a signature that both models have, else of their tensors, whether or not a name
    ends in a type, as ``Identity_int8`` does. Others correspond in order.
    """
    keys = [[s.key for s in model.signatures if s.subgraph == 0] for model in (a, b)]
    key = next((key for key in keys[0] if key in keys[1]), None)
    names = [_names(model, kind, key) for model in (a, b)]
    alike = [name for name in names[0] if names[0].count(name) == names[1].count(name) == 1]
    rest = [[i for i, name in enumerate(own) if name not in alike] for own in names]
    return [*((names[0].index(name), names[1].index(name)) for name in alike), *zip_longest(rest[0], rest[1])]


def _names(model: Model, kind: str, key: str | None) -> list[str]:
    """Return the names without a type at their end."""
    graph = model.subgraphs[0]
    signature: Mapping[str, int] = next((getattr(s, kind) for s in model.signatures if s.key == key), {})
    names = {tensor: name for name, tensor in signature.items()}
    return [_OF_A_TYPE.sub("", names.get(t, graph.tensors[t].name)) for t in getattr(graph, kind)]


def aligned(model: Model, side: Literal[0, 1], pairs: Mapping[str, list[End]]) -> Model:
    """Return a model with its inputs and outputs in the order of the pairs."""
    graph, *rest = model.subgraphs
    ends: dict[str, Any] = {
        kind: tuple(getattr(graph, kind)[position] for pair in of if (position := pair[side]) is not None)
        for kind, of in pairs.items()
    }
    return replace(model, subgraphs=(replace(graph, **ends), *rest))


def of_ends(a: Model, b: Model, pairs: Mapping[str, list[End]]) -> Iterator[str]:
    """Describe the differences of inputs and outputs."""
    for kind, of in pairs.items():
        for i, j in of:
            tensors = [
                None if position is None else model.subgraphs[0].tensors[getattr(model.subgraphs[0], kind)[position]]
                for model, position in ((a, i), (b, j))
            ]
            one, other = tensors
            if one is None or other is None:
                (alone,) = filter(None, tensors)
                yield f"{kind[:-1]} {alone.name}: only in {'B' if one is None else 'A'}"
                continue
            name = one.name if one.name == other.name else f"{one.name} -> {other.name}"
            yield from (f"{kind[:-1]} {name}: {text}" for text in of_tensor(one, other))
            if i != j:
                yield f"{kind[:-1]} {name}: position {i} -> {j}"
