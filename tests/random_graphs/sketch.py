"""A graph under construction in which every tensor has a value: what is added is valid, and values stay moderate."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from litecl.interpreter.errors import FAULTS, LiteclError
from litecl.interpreter.graph import ABSENT, Array, Node, Quantization, Shape, Subgraph, TensorSpec
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.schema import TensorType
from litecl.random_graphs.kept import Kept

T = TensorType
SIZES = (1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 64, 129)
_SIZE_WEIGHTS = np.array([4, 3, 5, 3, 3, 4, 3, 2, 3, 2, 1, 1]) / 34
MOST_ELEMENTS = 12_000
_LARGEST = {"f": 3e3, "i": 1 << 20}  # of a tensor's elements, so that sums of them stay finite
_RECENT = 0.55  # how often the newest suitable tensor is used, which makes chains
_LIMITS = {T.INT8: (-128, 127), T.UINT8: (0, 255), T.INT16: (-32768, 32767)}


Family = Callable[["Sketch"], None]
_Outputs = Sequence[TensorSpec] | None


class Unfit(Exception):
    """A node that cannot be added: no operand suits it, or its result is too large."""


@dataclass
class Sketch:
    """Tensors with values, nodes, and the random choices that add more.

    types: element types to draw inputs of. families: what adds nodes. graphs: the subgraphs of the model so far, which
    all its sketches share. values: of every tensor. pool: the tensors that nodes may read, oldest first. fixed: inputs
    whose values must stay, because they are positions. depth: of control flow around this graph. kept: the model's
    resource variables, which all its sketches share.
    """

    rng: np.random.Generator
    types: tuple[TensorType, ...] = (T.FLOAT32,)
    families: tuple["Family", ...] = ()
    graphs: list[Subgraph] = field(default_factory=list)
    name: str = "main"
    depth: int = 0
    kept: Kept = field(default_factory=Kept)
    tensors: list[TensorSpec] = field(default_factory=list)
    values: list[Array] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    pool: list[int] = field(default_factory=list)
    fixed: set[int] = field(default_factory=set)

    # Random choices

    def one_of(self, *choices: Any) -> Any:
        """Return one of several choices."""
        if not choices:
            raise Unfit("no choice")
        return choices[int(self.rng.integers(len(choices)))]

    def chance(self, probability: float) -> bool:
        """True so often."""
        return bool(self.rng.random() < probability)

    def size(self, most: int = 1 << 30) -> int:
        """Return a size of a dimension."""
        return min(most, int(self.rng.choice(SIZES, p=_SIZE_WEIGHTS)))

    def shape(self, rank: int, most: int = MOST_ELEMENTS) -> Shape:
        """Return a shape of at most so many elements."""
        sizes = [self.size() for _ in range(rank)]
        while np.prod(sizes) > most:
            largest = int(np.argmax(sizes))
            sizes[largest] = max(1, sizes[largest] // 2)
        return tuple(sizes)

    # Tensors

    def tensor(self, spec: TensorSpec, value: Array, *, readable: bool = True) -> int:
        """Add a tensor with its value; return its index."""
        index = len(self.tensors)
        self.tensors.append(replace(spec, name=f"{self.name}_{index}"))
        self.values.append(value)
        if readable and spec.type != T.RESOURCE:
            self.pool.append(index)
        return index

    def input(self, type_: TensorType, shape: Shape, by: Quantization | None = None, value: Array | None = None) -> int:
        """Return an input of the graph, of random elements unless they are given."""
        given = self.random(type_, shape) if value is None else value
        index = self.tensor(TensorSpec(type_, shape, quantization=by), given)
        self.inputs.append(index)
        return index

    def positions(self, value: Array) -> int:
        """Return positions: a constant, or an input of the main graph, whose value is fixed."""
        if self.depth or self.chance(0.5):
            return self.const(value)
        index = self.input(T.of(value.dtype), value.shape, value=value)
        self.fixed.add(index)
        return index

    def exact(self, type_: TensorType, shape: Shape, by: Quantization | None = None) -> int:
        """Return random elements that no node computes, so that comparisons of them end alike everywhere: a constant in
        a body, else an input.
        """
        return self.const(self.random(type_, shape), type_, by) if self.depth else self.input(type_, shape, by)

    def const(self, value: Any, type_: TensorType | None = None, by: Quantization | None = None) -> int:
        """Return a constant."""
        array = np.asarray(value)
        spec = TensorSpec(type_ or T.of(array.dtype), array.shape, data=array, quantization=by)
        return self.tensor(spec, array, readable=False)

    def ints(self, *values: Any, type_: Any = np.int32) -> int:
        """Return a constant vector of integers."""
        return self.const(np.array(values, type_).reshape(-1))

    def variable(self, shape: Shape, type_: TensorType = T.FLOAT32, by: Quantization | None = None) -> int:
        """A variable tensor, zeros at first."""
        spec = TensorSpec(type_, shape, quantization=by, is_variable=True)
        return self.tensor(spec, np.zeros(shape, type_.dtype))

    def random(self, type_: TensorType, shape: Shape) -> Array:
        """Return elements of a type: bytes of the whole range, other integers near zero."""
        if type_ == T.FLOAT32:
            return np.asarray(self.rng.standard_normal(shape) * self.one_of(0.5, 1.0, 3.0), np.float32)
        if type_ == T.BOOL:
            return np.asarray(self.rng.random(shape) < 0.5)
        low, high = _LIMITS.get(type_, (-9, 9))
        return np.asarray(self.rng.integers(low, high + 1, shape)).astype(type_.dtype)

    def affine(self, type_: TensorType, scale: float | None = None, zero_point: int | None = None) -> Quantization:
        """Return a quantization of a whole tensor."""
        exponents = (-18, 6) if self.chance(0.03) else (-6, -1)
        scale = float(np.exp(self.rng.uniform(*exponents))) if scale is None else scale
        low, high = _LIMITS[type_]
        drawn = 0 if type_ == T.INT16 else int(self.one_of(0, low, high, self.rng.integers(low, high + 1)))
        zero = min(high, max(low, drawn if zero_point is None else zero_point))
        return Quantization(np.array([scale], np.float32), np.array([zero], np.int64))

    def spec(self, tensor: int) -> TensorSpec:
        """Return the spec of a tensor."""
        return self.tensors[tensor]

    def shape_of(self, tensor: int) -> Shape:
        """Return the shape of a tensor."""
        return self.tensors[tensor].static_shape

    # Operands

    def pick(
        self,
        *types: TensorType,
        rank: int | Collection[int] | None = None,
        where: Callable[[TensorSpec], bool] = lambda spec: True,
        recent: float = _RECENT,
    ) -> int:
        """Return a tensor of one of these types (any, if none is given) and ranks. Raises Unfit where there is none."""
        ranks = (rank,) if isinstance(rank, int) else rank
        fitting = [
            t
            for t in self.pool
            if (not types or self.tensors[t].type in types)
            and (ranks is None or len(self.shape_of(t)) in ranks)
            and where(self.tensors[t])
        ]
        if not fitting:
            raise Unfit(f"no tensor of {[type_.name for type_ in types]}")
        return fitting[-1] if self.chance(recent) else int(self.one_of(*fitting))

    def like(self, tensor: int) -> int:
        """Return a tensor of the same type, shape and quantization as another, itself or a constant where there is
        none.
        """
        spec = self.tensors[tensor]
        same = [t for t in self.pool if t != tensor and alike(self.tensors[t], spec)]
        if same and self.chance(0.75):
            return int(self.one_of(*same))
        return (
            tensor
            if self.chance(0.3)
            else self.const(self.random(spec.type, spec.static_shape), spec.type, spec.quantization)
        )

    # Nodes

    def node(
        self,
        op: Op,
        inputs: Sequence[int],
        options: Any = None,
        outputs: _Outputs = None,
        inner: Sequence[TensorSpec] = (),
    ) -> list[int]:
        """Add a node; return its outputs. ``outputs`` gives types and quantization that inference leaves open, inner
        the node's intermediates. Raises Unfit if the operator refuses its operands or a result is too large.
        """
        options = op.options() if options is None else options
        specs, values = self.computed(op, inputs, options, outputs, inner)
        count = len(specs)
        if not all(tame(value) for value in values):
            raise Unfit(f"{op.name}: not tame")
        made = [self.tensor(spec, value) for spec, value in zip(specs, values, strict=False)]
        for position, value in zip(op.states, values[count:], strict=True):
            self.values[inputs[position]] = value
        between = tuple(self.tensor(spec, np.zeros((), spec.dtype), readable=False) for spec in inner)
        self.nodes.append(Node(op, tuple(inputs), tuple(made), options, between, op.versions.start))
        return made

    def computed(
        self, op: Op, inputs: Sequence[int], options: Any, outputs: _Outputs = None, inner: Sequence[TensorSpec] = ()
    ) -> tuple[list[TensorSpec], list[Array]]:
        """Return the specs of what a node would compute, and the values."""
        specs = [None if t == ABSENT else self.tensors[t] for t in inputs]
        values = [None if t == ABSENT else self.values[t] for t in inputs]
        try:
            inferred = op.infer(options, specs)
            given = inferred if outputs is None else outputs
            declared = [replace(b, shape=a.shape) for a, b in zip(inferred, given, strict=True)]
            if any(spec.shape is None or spec.size > 8 * MOST_ELEMENTS for spec in declared):
                raise Unfit(f"{op.name}: shape")
            bound = None if op.bind is None else op.bind(options, specs, [*declared, *inner])
            with np.errstate(all="ignore"):
                results = (op.run if bound is None else bound)(options, values)
        except (LiteclError, *FAULTS) as error:
            raise Unfit(f"{op.name}: {error}") from error
        return [TensorSpec(s.type, s.shape, quantization=s.quantization) for s in declared], results

    def op(self, op: Op, inputs: Sequence[int], options: Any = None, outputs: _Outputs = None) -> int:
        """Adds a node of one output; the output."""
        (made,) = self.node(op, inputs, options, outputs)
        return made

    def scaled(self, op: Op, inputs: Sequence[int], options: Any, type_: TensorType, least: float = 0.0) -> int:
        """Add a node with a quantized output, with a scale that spreads results over the type's range.

        least: a scale below which sums may overflow when they are rescaled, which no real model's do.
        """
        low, high = _LIMITS[type_]
        by = self.affine(type_)
        first = scale = float(by.scale[0])
        for left in range(8, -1, -1):
            scale = max(scale if left else first, least)
            by = replace(by, scale=np.array([scale], np.float32))
            _, (value,) = self.computed(op, inputs, options, [TensorSpec(type_, None, quantization=by)])
            if value.size and np.mean((value == low) | (value == high)) > 0.4:
                scale *= 4
            elif value.size > 1 and int(value.max()) - int(value.min()) < (high - low) // 12:
                scale /= 5
            else:
                break
        return self.op(op, inputs, options, [TensorSpec(type_, None, quantization=by)])

    def control(self, op: ControlOp, inputs: Sequence[int], options: Any, results: Sequence[Array]) -> list[int]:
        """Add a node that runs subgraphs; return its outputs, like the last of its operands."""
        if not all(tame(value) for value in results):
            raise Unfit(f"{op.name}: not tame")
        like = [self.tensors[t] for t in inputs[-len(results) :]]
        specs = [TensorSpec(s.type, s.shape, quantization=s.quantization) for s in like]
        made = [self.tensor(spec, value) for spec, value in zip(specs, results, strict=True)]
        self.nodes.append(Node(op, tuple(inputs), tuple(made), options))
        return made

    def grow(self, count: int) -> None:
        """Add about this many nodes of its families."""
        for _ in range(8 * count):
            if len(self.nodes) >= count:
                break
            try:
                self.one_of(*self.families)(self)
            except (Unfit, ArithmeticError, ValueError):  # of numpy and Python: dimensions of 0
                continue

    def build(self, outputs: Sequence[int]) -> Subgraph:
        """Return the subgraph with these outputs."""
        return Subgraph(tuple(self.tensors), tuple(self.inputs), tuple(outputs), tuple(self.nodes), self.name)

    def ends(self) -> list[int]:
        """Return the tensors that nodes compute and none reads, and sometimes another."""
        read = {t for node in self.nodes for t in node.inputs}
        made = [t for node in self.nodes for t in node.outputs if self.tensors[t].type != T.RESOURCE]
        return [t for t in made if t not in read or self.chance(0.08)]


def tame(value: Array) -> bool:
    """Return whether elements are finite and so small that sums of them will be."""
    largest = _LARGEST.get(value.dtype.kind)
    if largest is None or not value.size or value.dtype.itemsize < 4:
        return True
    return bool(np.isfinite(value).all() and np.abs(value).max() <= largest)


def alike(a: TensorSpec, b: TensorSpec) -> bool:
    """Return whether two tensors have one type, shape and quantization."""
    return a.type == b.type and a.shape == b.shape and same_scale(a, b)


def same_scale(a: TensorSpec, b: TensorSpec) -> bool:
    """Return whether two tensors are quantized alike, or both not."""
    if a.quantization is None or b.quantization is None:
        return a.quantization is b.quantization
    x, y = a.quantization, b.quantization
    return bool(np.array_equal(x.scale, y.scale) and np.array_equal(x.zero_point, y.zero_point))
