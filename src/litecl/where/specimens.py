"""Small models of one node each, with inputs: cases of ``litecl.cases``, and nodes cut out of models.

A node that runs subgraphs has them in its model; one that works on a resource variable shares its model with others.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from litecl.bisection.cut import body, cut
from litecl.comparison import is_float
from litecl.conformance.catalogue import catalogue
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.file.reader import read
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import ABSENT, Array, Model, Node, Subgraph, TensorSpec
from litecl.perf.arithmetic import multiply_adds
from litecl.perf.feeds import prepare, random_inputs
from litecl.where.kinds import WITH_OTHERS, Kind, kind_of
from litecl.where.seen import model_of

_MOST_MULTIPLY_ADDS = 20_000_000  # of a node cut out of a model: the reference takes seconds for more
_MOST_ELEMENTS = 2_000_000  # of its tensors together
_MOST_OF_A_KIND = 3
_LOOP = "WHILE"  # may never end on other inputs
_SHAPE = 8  # most numbers of an operand that gives a shape


@dataclass(frozen=True, eq=False)
class Specimen:
    """A model of a node, which is number ``at`` of the first subgraph, and values of its inputs."""

    name: str
    model: Model
    feeds: Sequence[Array]
    at: int = 0

    @property
    def graph(self) -> Subgraph:
        """The subgraph with the node."""
        return self.model.subgraphs[0]

    @property
    def node(self) -> Node:
        """The node."""
        return self.graph.nodes[self.at]

    @property
    def kind(self) -> Kind:
        """The node's kind."""
        return kind_of(self.model, self.graph, self.node)


def of_cases() -> Iterator[str]:
    """Yield the names of all cases of one operator."""
    for name, check in catalogue().items():
        is_of_op = "/" in name and check.op == name.partition("/")[0]
        if is_of_op and (check.op in WITH_OTHERS or _is_one_node(check.model())):
            yield name


def of_case(name: str) -> Specimen:
    """Return a case of one operator by its name, at the version that its operands and options need."""
    from litecl.converter.versions import version_of  # the converter takes longer to import than all of `litecl where`

    check = catalogue()[name]
    model = check.model()
    graph = model.subgraphs[0]
    at = next(i for i, node in enumerate(graph.nodes) if node.op.name == check.op)
    node = graph.nodes[at]
    needed = version_of(node, [None if t == ABSENT else graph.tensors[t] for t in node.inputs])
    node = replace(node, version=max(node.version, needed))
    graph = replace(graph, nodes=(*graph.nodes[:at], node, *graph.nodes[at + 1 :]))
    return Specimen(name, replace(model, subgraphs=(graph, *model.subgraphs[1:])), check.steps()[0].feeds, at)


def _is_one_node(model: Model) -> bool:
    return len(model.subgraphs) == 1 and len(model.subgraphs[0].nodes) == 1


def of_model(content: bytes, name: str, seed: int = 0) -> Iterator[Specimen]:
    """Yield every node of a model that runs apart from the others, with the values that reach it, as NAME#NODE; one
    of another subgraph than the first as NAME#SUBGRAPH/NODE, with those that follow from random inputs of that one.

    Nodes that share variables, read constants alone, or are too large are left out, and those of other subgraphs that
    loop. Raises LiteclError if the interpreter can't run the model.
    """
    model = read(content)
    yield from _of_first(model, f"{name}#", seed)
    for number in range(1, len(model.subgraphs)):
        with suppress(LiteclError):  # it changes variables, or refuses random inputs
            part = body(model, number, {}).model
            if not any(node.op.name == _LOOP for graph in part.subgraphs for node in graph.nodes):
                yield from _of_first(part, f"{name}#{number}/", seed)


def _of_first(model: Model, name: str, seed: int) -> Iterator[Specimen]:
    runtime = Interpreter(model, experimental_preserve_all_tensors=True)
    prepare(runtime, random_inputs(runtime.get_input_details(), seed))
    runtime.invoke()
    graph = model.subgraphs[0]
    for number, node in enumerate(graph.nodes):
        named = {t for t in (*node.inputs, *node.outputs) if t != ABSENT}
        values = {t: v for t in named if graph.tensors[t].data is None and (v := _value(runtime, t)) is not None}
        try:
            part = cut(model, 0, [number], values)
        except LiteclError:
            continue
        if part.inputs and all(t in values for t in part.inputs) and not _is_large(part.model):
            yield Specimen(f"{name}{number}", part.model, [values[t] for t in part.inputs])


def _value(runtime: Any, tensor: int) -> Array | None:
    try:
        return np.asarray(runtime.get_tensor(tensor))
    except (LiteclError, ValueError):
        return None


def _is_large(model: Model) -> bool:
    graph = model.subgraphs[0]
    elements = sum(spec.size for spec in graph.tensors if spec.shape is not None)
    return elements > _MOST_ELEMENTS or (multiply_adds(graph.nodes[0], graph.tensors) or 0) > _MOST_MULTIPLY_ADDS


def varied(specimens: Sequence[Specimen]) -> list[Specimen]:
    """Return a few specimens of every kind, of different models."""
    chosen: dict[str, list[Specimen]] = {}
    for specimen in specimens:
        alike = chosen.setdefault(str(specimen.kind), [])
        models = {model_of(other.name) for other in alike}
        if len(alike) < _MOST_OF_A_KIND and model_of(specimen.name) not in models:
            alike.append(specimen)
    return [specimen for alike in chosen.values() for specimen in alike]


def save(specimens: Sequence[Specimen], folder: Path) -> list[str]:
    """Write specimens to a folder, for ``load`` in another process; return their names there."""
    paths = []
    for number, specimen in enumerate(specimens):
        path = folder / f"{number}.npz"
        feeds: Mapping[str, Any] = {f"feed_{i}": value for i, value in enumerate(specimen.feeds)}
        np.savez(path, model=np.frombuffer(write(specimen.model), np.uint8), name=specimen.name, **feeds)
        paths.append(str(path))
    return paths


def load(name: str) -> Specimen:
    """Return a case by its name, or a specimen by the path that ``save`` returned."""
    if not name.endswith(".npz"):
        return of_case(name)
    with np.load(name, allow_pickle=True) as arrays:  # strings are objects
        feeds = [arrays[f"feed_{i}"] for i in range(len(arrays.files) - 2)]
        return Specimen(str(arrays["name"]), read(arrays["model"].tobytes()), feeds)


def draws(specimen: Specimen, count: int) -> Iterator[list[Array]]:
    """Yield a specimen's own inputs, then up to ``count`` sets of others, unless these would be the same.

    Integers with a scale are from their whole range, floats like its own, scaled by one half to one. Other values of
    the result's type are its own in another order; indices, sizes and the like stay as they are.
    """
    yield [*specimen.feeds]
    if specimen.node.op.name == _LOOP:
        return
    rng = np.random.default_rng(0)
    specs = [specimen.graph.tensors[t] for t in specimen.graph.inputs]
    types = {specimen.graph.tensors[t].type for t in specimen.graph.outputs}
    for _ in range(count):
        feeds = [
            _drawn(rng, spec, feed, moves=spec.type in types) for spec, feed in zip(specs, specimen.feeds, strict=True)
        ]
        if all(drawn is feed for drawn, feed in zip(feeds, specimen.feeds, strict=True)):
            return
        yield feeds


def _drawn(rng: np.random.Generator, spec: TensorSpec, feed: Array, *, moves: bool) -> Array:
    if feed.dtype.kind in "iu" and spec.quantization is not None and feed.dtype.itemsize <= 2 and not _packed(spec):
        info = np.iinfo(feed.dtype)
        return np.asarray(rng.integers(info.min, info.max + 1, feed.shape)).astype(feed.dtype)
    if is_float(feed.dtype) and feed.size:
        values = rng.choice(feed.ravel(), feed.shape).astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(values * rng.uniform(0.5, 1.0, feed.shape)).astype(feed.dtype)
    if feed.dtype == np.bool_ and feed.size == 1:  # takes either branch
        return np.asarray(rng.integers(2, size=feed.shape)).astype(np.bool_)
    return rng.permutation(feed.ravel()).reshape(feed.shape) if moves and feed.size > _SHAPE else feed


def _packed(spec: TensorSpec) -> bool:
    return spec.type.name in ("INT4", "INT2", "UINT4")
