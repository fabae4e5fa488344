"""Infers the shapes of a model with open dimensions by trying sizes that it can run with."""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from litecl.interpreter.errors import ConversionError, ModelError
from litecl.interpreter.graph import Model, Shape, Subgraph
from litecl.interpreter.ops.reshape import RESHAPE
from litecl.interpreter.run import shapes

Sizes = tuple[int, int]
"""Batch size, and the size of all other open dimensions."""

_FIRST: tuple[Sizes, ...] = ((1, 1), (1, 8), (1, 32), (1, 128), (1, 256), (8, 8), (32, 32), (256, 256))
_RANKS = range(5)  # tried for inputs of unknown rank
_EVERY = 64  # all sizes up to this are tried
_MOST = 1 << 16  # divisors are tried for RESHAPEs of up to this many elements


def with_shapes(model: Model, entries: int) -> Model:
    """Return the model with the shapes that follow from the inputs of its first ``entries`` subgraphs.

    Open dimensions get the first candidate sizes that work; an open batch is 1 if possible.
    Raises ConversionError if none works, and names the inputs that need shapes.
    """
    try:
        known = shapes.propagate(model, {i: _shapes(model.subgraphs[i], _FIRST[0]) for i in range(entries)})
    except ModelError:
        known = _searched(model, entries)
    pairs = zip(model.subgraphs, known, strict=True)
    return replace(model, subgraphs=tuple(_completed(subgraph, specs) for subgraph, specs in pairs))


def _searched(model: Model, entries: int) -> tuple[shapes.Known, ...]:
    """Return the known tensor shapes, with sizes searched for each entry point by itself."""
    given = {i: _fitting(model, i) for i in range(entries)}
    try:
        return shapes.propagate(model, given)
    except ModelError as error:
        raise ConversionError(f"the converted model is inconsistent{_said(model, error)}") from error


def _fitting(model: Model, entry: int) -> Sequence[Shape]:
    """Return input shapes that an entry point can run with. Raises ConversionError if there are none."""
    failures: dict[tuple[Shape, ...], ModelError] = {}
    for sizes, rank in itertools.product(_candidates(model), _RANKS):
        given = tuple(_shapes(model.subgraphs[entry], sizes, rank))
        if given in failures:
            continue
        try:
            shapes.propagate(model, {entry: given})
        except ModelError as error:
            failures[given] = error
        else:
            return given
    first = next(iter(failures.values()))
    raise ConversionError(_told(model, entry, first)) from first


def _candidates(model: Model) -> Iterator[Sizes]:
    """Yield candidate sizes, likely ones first."""
    yield from _FIRST
    numbers = sorted({*range(1, _EVERY + 1), *_divisors(model)})
    for ways in ([(1, n) for n in numbers], [(n, 1) for n in numbers], [(n, n) for n in numbers]):
        yield from ways
    yield from ((batch, size) for batch in numbers[:_EVERY] for size in (8, 32))


def _divisors(model: Model) -> set[int]:
    """Return the divisors of RESHAPEs' element counts."""
    counts = set()
    for graph in model.subgraphs:
        for node in graph.nodes:
            wanted = graph.tensors[node.inputs[1]].data if node.op is RESHAPE and len(node.inputs) == 2 else None
            if wanted is not None:
                counts.add(abs(int(np.prod(wanted, dtype=np.int64))))
    return {d for count in counts if count <= _MOST for d in range(1, count + 1) if count % d == 0}


def _shapes(subgraph: Subgraph, sizes: Sizes, rank: int = 0) -> list[Shape]:
    """Return the input shapes with open dimensions set to ``sizes``, and unknown ranks to ``rank``."""
    batch, size = sizes
    declared = _declared(subgraph, rank)
    return [tuple(d if d >= 0 else size if axis else batch for axis, d in enumerate(s)) for s in declared]


def _declared(subgraph: Subgraph, rank: int = 0) -> list[tuple[int, ...]]:
    specs = [subgraph.tensors[t] for t in subgraph.inputs]
    return [spec.shape_signature or ((-1,) * rank if spec.shape is None else spec.shape) for spec in specs]


def _told(model: Model, entry: int, failure: ModelError) -> str:
    """Return the error message: where and why, and the inputs with open dimensions."""
    said = _said(model, failure)
    names = {tensor: name for s in model.signatures if s.subgraph == entry for name, tensor in s.inputs.items()}
    subgraph = model.subgraphs[entry]
    declared = zip(subgraph.inputs, _declared(subgraph), strict=True)
    unknown = {names[t]: [None if d < 0 else d for d in shape] for t, shape in declared if min(shape, default=0) < 0}
    if not unknown:
        return f"the converted model is inconsistent{said}"
    return (
        f"no size that was tried fits the open dimensions of {unknown}; with a size of 1 it fails{said}\n"
        f"give the shapes to convert with: input_shapes={{{', '.join(f'{name!r}: (...)' for name in unknown)}}}"
    )


def _said(model: Model, failure: ModelError) -> str:
    """Return where a model fails, why, and what to do if a type is to blame."""
    advice = "; TFLite does not compute with uint64: use int64 in the model" if "got UINT64" in str(failure) else ""
    return f"{_place(model, failure)}: {failure}{advice}"


def _place(model: Model, failure: ModelError) -> str:
    """Return the name of the first result of the node that an error comes from."""
    for note in getattr(failure, "__notes__", ()):
        numbers = re.search(r"subgraph (\d+), node (\d+)", note)
        if numbers is not None:
            graph = model.subgraphs[int(numbers[1])]
            outputs = graph.nodes[int(numbers[2])].outputs
            return f" at {graph.tensors[outputs[0]].name!r}" if outputs else ""
    return ""


def _completed(subgraph: Subgraph, known: shapes.Known) -> Subgraph:
    tensors = tuple(
        declared if spec.shape is None else replace(declared, shape=spec.shape)
        for declared, spec in zip(subgraph.tensors, known, strict=True)
    )
    return replace(subgraph, tensors=tensors)
