"""Whole models: a theme's operators and types, signatures, and what is fed in invoke after invoke."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from litecl.interpreter.graph import Array, Model, Node, Shape, Signature, Subgraph, TensorSpec
from litecl.random_graphs import (
    attention,
    boxes,
    control,
    pairs,
    parts,
    recurrent,
    reductions,
    residuals,
    variables,
    volumes,
    weighted,
)
from litecl.random_graphs.kept import Kept
from litecl.random_graphs.sketch import Family, Sketch, T
from litecl.random_graphs.variables import initialised

_FAMILIES: dict[str, tuple[Family, ...]] = {
    **parts.FAMILIES,
    **reductions.FAMILIES,
    **recurrent.FAMILIES,
    **control.FAMILIES,
    **variables.FAMILIES,
    "products": (
        *weighted.FAMILIES["float"],
        attention.attention,
        residuals.inverted_residual,
        volumes.conv_3d,
        volumes.conv_3d_transpose,
    ),
    **pairs.FAMILIES,
    **boxes.FAMILIES,
}


@dataclass(frozen=True)
class Theme:
    """Choices for a batch of graphs, few so that kernels repeat: types of inputs, families, ranks of inputs."""

    types: tuple[T, ...]
    families: tuple[str, ...]
    ranks: tuple[int, ...] = (1, 2, 3, 4, 4)


_EDGES = (0, 5, 6, 7, 8)
_F, _INTS = (T.FLOAT32,), (T.INT32, T.INT64, T.BOOL)
_BYTES: tuple[tuple[T, ...], ...] = ((T.INT8,), (T.UINT8,), (T.INT16,))
THEMES = (
    Theme(_F, ("float", "products", "windows"), (4,)),
    Theme(_F, ("float", "products", "joins"), (4,)),
    Theme(_F, ("products", "float", "shapes"), (2, 4)),
    Theme(_F, ("products", "joins", "windows", "reductions"), (4,)),
    Theme(_F, ("float", "reductions", "shapes", "joins")),
    Theme(_F, ("float", "rows", "joins", "control"), (1, 2, 3)),
    Theme(_F, ("recurrent", "float", "joins"), (2, 3)),
    Theme(_F, ("recurrent", "products", "shapes"), (2, 3)),
    Theme(_F, ("float", "products", "control"), (2, 4)),
    Theme(_F, ("recurrent", "float", "reductions", "control"), (2, 3)),
    Theme((*_F, *_INTS), ("mixed", "integer", "float", "reductions")),
    Theme((*_F, *_INTS), ("integer", "mixed", "rows", "control")),
    Theme(_INTS, ("integer", "reductions", "joins", "shapes")),
    Theme(_INTS, ("integer", "rows", "joins", "control")),
    Theme((T.INT8, T.UINT8, T.INT16, T.INT32), ("shapes", "joins", "rows", "control")),
    Theme((T.INT8,), ("integer recurrent", "quantized", "joins"), (2, 3)),
    Theme((T.UINT8,), ("integer recurrent of bytes", "quantized", "joins"), (2, 3)),
    *(Theme(types, ("quantized", "products", "joins"), (4,)) for types in _BYTES),
    *(Theme(types, ("quantized", "windows", "reductions", "shapes"), (2, 4)) for types in _BYTES),
    *(Theme((*types, T.FLOAT32), ("quantized", "mixed", "products", "rows")) for types in _BYTES),
    *(Theme(types, ("quantized", "products", "control"), (2, 4)) for types in _BYTES),
    Theme(_F, ("variables", "float", "products", "control"), (2, 4)),
    Theme(_F, ("variables", "recurrent", "joins", "control"), (2, 3)),
    Theme(_F, ("variables", "joins", "windows", "rows"), (4,)),
    Theme((*_F, *_INTS), ("variables", "integer", "mixed", "control")),
    *(Theme(types, ("variables", "quantized", "joins", "control"), (2, 4)) for types in _BYTES),
    Theme((*_F, T.INT32), ("variables", "rows", "control"), (1, 2, 3)),
    Theme(_F, ("boxes", "float", "joins")),
    Theme((*_F, *_INTS), ("boxes", "mixed", "control"), (1, 2, 3)),
    Theme(_F, ("float", "shapes", "joins", "reductions"), _EDGES),
    Theme((*_F, *_INTS), ("integer", "mixed", "shapes", "rows"), _EDGES),
    *(Theme(types, ("quantized", "shapes", "joins", "reductions"), _EDGES) for types in _BYTES),
    Theme((*_F, T.INT8, T.BOOL), ("control", "mixed", "joins", "rows"), _EDGES),
)


@dataclass(frozen=True)
class Call:
    """One invoke: an entry point, values for its inputs (other shapes resize them), a reset before it."""

    entry: int
    feeds: tuple[Array, ...]
    reset: bool = False


@dataclass(frozen=True, eq=False)
class Drawn:
    """A random model and the calls made to it."""

    model: Model
    calls: tuple[Call, ...]
    deny: tuple[int, ...] = ()


def families_of(theme: Theme, rng: np.random.Generator, most: int) -> tuple[Family, ...]:
    """Some of a theme's families, one of each of its kinds at the least, so that a batch needs few kernels."""
    pools = [_FAMILIES[name] for name in theme.families]
    chosen = [pool[int(rng.integers(len(pool)))] for pool in pools]
    others = [family for pool in pools for family in pool]
    chosen += [others[int(rng.integers(len(others)))] for _ in range(most - len(chosen))]
    return tuple(chosen)


def draw(seed: Sequence[int], theme: Theme, families: tuple[Family, ...]) -> Drawn:
    """Return the model of a seed. deny: nodes that are to stay on the CPU, which cuts regions."""
    rng = np.random.default_rng(seed)
    graphs: list[Subgraph] = [Subgraph((), (), (), ())]
    main = _sketch(rng, theme, families, graphs, "main")
    graphs[0] = main.build(_outputs(main))
    entries = [(0, main)]
    if main.chance(0.1):
        other = _sketch(rng, theme, families, graphs, "other", main.kept)
        graphs.append(other.build(_outputs(other)))
        entries.append((len(graphs) - 1, other))
    initialised(graphs, [number for number, _ in entries], main.kept)
    signatures = [_signature(number, graphs[number]) for number, _ in entries] if len(entries) > 1 else []
    deny = tuple(i for i in range(len(main.nodes)) if main.chance(0.25)) if main.chance(0.15) else ()
    return Drawn(Model(tuple(graphs), tuple(signatures)), tuple(_calls(main, entries)), deny)


def numbered(seed: int, number: int, families: int) -> Drawn:
    """Return the model of a number, always the same; themes alternate. families: how many of a theme's it has."""
    theme = THEMES[number % len(THEMES)]
    chosen = families_of(theme, np.random.default_rng([seed, number]), families)
    with np.errstate(all="ignore"):
        return draw([seed, number], theme, chosen)


def _sketch(
    rng: np.random.Generator,
    theme: Theme,
    families: tuple[Family, ...],
    graphs: list[Subgraph],
    name: str,
    kept: Kept | None = None,
) -> Sketch:
    """A graph of several inputs and about a dozen nodes. kept: the resource variables that there are already."""
    s = Sketch(rng, theme.types, families, graphs, name, kept=kept or Kept())
    shapes: list[Shape] = []
    while not s.nodes:
        for _ in range(int(rng.integers(1, 4))):
            type_ = s.one_of(*theme.types)
            same = shapes and s.chance(0.5)
            shape = s.one_of(*shapes) if same else s.shape(int(s.one_of(*theme.ranks)))
            if shape and s.chance(0.02):
                axis = int(s.rng.integers(len(shape)))
                shape = (*shape[:axis], 0, *shape[axis + 1 :])
            shapes.append(shape)
            quantized = type_ in (T.INT8, T.UINT8, T.INT16) and ("quantized" in theme.families or s.chance(0.5))
            s.input(type_, shape, s.affine(type_) if quantized else None)
        s.grow(int(rng.integers(2, 14)))
    return s


def _outputs(s: Sketch) -> list[int]:
    """Return the tensors that nothing reads, and a few others."""
    ends = s.ends()
    variables = [t for t in s.pool if s.spec(t).is_variable]
    if variables and s.chance(0.1):
        ends.append(int(s.one_of(*variables)))
    made = [tensor for node in s.nodes for tensor in node.outputs if s.spec(tensor).type != T.RESOURCE]
    found = ends or made[-1:] or [s.inputs[0]]
    return [*found, int(s.one_of(*found, *s.inputs))] if s.chance(0.1) else found


def _signature(number: int, graph: Subgraph) -> Signature:
    inputs = {f"in{i}": t for i, t in enumerate(graph.inputs)}
    outputs = {f"out{i}": t for i, t in enumerate(graph.outputs)}
    return Signature(graph.name, inputs, outputs, number)


def _calls(s: Sketch, entries: list[tuple[int, Sketch]]) -> Iterator[Call]:
    """Two to four invokes of other inputs, of every entry at least one; now and then of other shapes."""
    count = int(s.rng.integers(2, 5))
    resized = s.rng.integers(1, count) if len(entries) == 1 and s.chance(0.15) else count
    for i in range(count):
        number, sketch = entries[i % len(entries)]
        size, axis = int(s.one_of(0, 1, 2, 3, 5, 7, 33)), int(s.one_of(0, 0, 1, 2))
        feeds = tuple(_feed(sketch, t, first=i < len(entries)) for t in sketch.inputs)
        if i >= resized:
            feeds = tuple(
                sketch.random(sketch.spec(t).type, (*(shape := sketch.shape_of(t))[:axis], size, *shape[axis + 1 :]))
                if len(sketch.shape_of(t)) > max(1, axis) and t not in sketch.fixed
                else x
                for t, x in zip(sketch.inputs, feeds, strict=True)
            )
        yield Call(number, feeds, i > 0 and s.chance(0.1))


def _feed(s: Sketch, tensor: int, *, first: bool) -> Array:
    """Return the value that the graph was drawn with, or another."""
    spec = s.spec(tensor)
    return s.values[tensor] if first or tensor in s.fixed else s.random(spec.type, spec.static_shape)


def kind_of(graph: Subgraph, node: Node) -> str:
    """Return the type that a node computes; "hybrid" for floats with integer weights, "quantized" before others."""
    specs: list[TensorSpec] = [graph.tensors[t] for t in (*node.outputs, *node.inputs) if t >= 0]
    if not specs:
        return "none"
    first = graph.tensors[node.inputs[0]] if node.inputs and node.inputs[0] >= 0 else specs[0]
    kind = specs[0].type.name.lower()
    integers = [s for s in specs[1:] if s.type in (T.INT8, T.INT4, T.INT2) and s.quantization is not None]
    constant = [s for s in integers if s.data is not None]
    if specs[0].type == T.FLOAT32 and constant and first.type != T.INT8:
        return "hybrid"
    return f"quantized {kind}" if specs[0].quantization is not None else kind
