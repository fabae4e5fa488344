"""LSTM and GRU layers step by step, node for node as litert-torch 0.10 writes those of PyTorch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from litecl.interpreter.graph import Model
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, MINIMUM, MUL, SUB
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.reverse import REVERSE_V2
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.transpose import TRANSPOSE
from litecl.interpreter.ops.unary import LOGISTIC, RELU, TANH
from litecl.perf.models.build import Graph, model, randn

State = tuple[int | None, int | None]


@dataclass(frozen=True)
class Sizes:
    """Of a layer: batch, steps, width of the sequence, units."""

    batch: int = 2
    steps: int = 4
    depth: int = 6
    units: int = 5


@dataclass
class Layer:
    """A layer's weights, in a graph; ``changes`` alter it: by name the step at which it differs from the others.

    lead: what comes before batch and units in the shape of a state.
    """

    g: Graph
    sizes: Sizes
    gates: int
    rng: np.random.Generator
    bias: bool = True
    changes: dict[str, int] = field(default_factory=dict)
    depth: int = 0
    lead: tuple[int, ...] = (1,)

    def __post_init__(self) -> None:
        rows, units = self.gates * self.sizes.units, self.sizes.units
        depth = self.depth or self.sizes.depth
        self.kernel = self.g.const(randn(self.rng, rows, depth, scale=0.4))
        self.matrix = randn(self.rng, rows, units, scale=0.4)
        self.row = randn(self.rng, rows, scale=0.4) if self.bias else np.zeros(rows, np.float32)
        self.recurrent, self.recurrent_bias = self.g.const(self.matrix), self.g.const(self.row) if self.bias else None
        self.input_bias = self.g.const(randn(self.rng, rows, scale=0.4)) if self.bias else None

    def changed(self, name: str, step: int) -> bool:
        return self.changes.get(name) == step

    def op(self, op: Any, *inputs: int | None, options: Any = None) -> int:
        return self.g.op(op, inputs, op.options() if options is None else options)

    def reshape(self, x: int, *shape: int) -> int:
        return self.op(RESHAPE, x, self.ints(*shape), options=ReshapeOptions(shape))

    def box(self, x: int, begin: Sequence[int], size: Sequence[int]) -> int:
        return self.op(SLICE, x, self.ints(*begin), self.ints(*size))

    def gate(self, x: int, k: int) -> int:
        """The columns of a gate."""
        s, none = self.sizes, [0] * len(self.lead)
        return self.box(x, [*none, 0, k * s.units], [*self.lead, s.batch, s.units])

    def ints(self, *numbers: int) -> int:
        return self.g.const(np.array(numbers, np.int32))

    def product(self, x: int, kernel: int, bias: int | None, keep: bool = False) -> int:
        return self.op(FULLY_CONNECTED, x, kernel, bias, options=FullyConnectedOptions(keep_num_dims=keep))

    def steps(self, x: int, backwards: bool = False) -> list[int]:
        """The products of every step [1,B,rows] with a sequence [T,B,F], computed at once."""
        s, rows = self.sizes, self.gates * self.sizes.units
        products = self.product(x, self.kernel, self.input_bias, keep=True)
        if backwards:
            products = self.op(REVERSE_V2, products, self.ints(0))
        order = list(range(s.steps))
        if "order" in self.changes:
            order[0], order[1] = order[1], order[0]
        if "twice" in self.changes:
            order[1] = 0
        return [self.box(products, [t, 0, 0], [1, s.batch, rows]) for t in order]

    def cell_steps(self, x: int) -> list[int]:
        """The products [B,rows] of every step of a sequence [B,T,F], each by itself, as a loop over a cell has them."""
        s = self.sizes
        found = [self.box(x, [0, t, 0], [s.batch, 1, s.depth]) for t in range(s.steps)]
        return [self.product(self.reshape(t, s.batch, s.depth), self.kernel, self.input_bias) for t in found]

    def again(self, step: int) -> int:
        """The recurrent weights at a step."""
        if self.changed("weights", step):
            return self.g.const(self.matrix + np.float32(0.01) * (self.matrix == self.matrix.max()))
        return self.recurrent

    def sequence(self, states: Sequence[int], backwards: bool = False) -> int:
        """All hidden states [T,B,U]."""
        return self.op(CONCATENATION, *states[:: -1 if backwards else 1], options=ConcatenationOptions(axis=0))


def lstm_steps(layer: Layer, products: Sequence[int], state: State) -> tuple[list[int], list[int]]:
    """Hidden and cell states [1,B,U] of all steps."""
    hidden: list[int] = []
    memory: list[int] = []
    for t, product in enumerate(products):
        h, c = (hidden[-1], memory[-1]) if hidden else state
        if layer.changed("skip", t):
            h = hidden[-2]
        new = _lstm_step(layer, t, product, h, c)
        hidden.append(new[0])
        memory.append(new[1])
    return hidden, memory


def _lstm_step(layer: Layer, t: int, product: int, h: int | None, c: int | None) -> tuple[int, int]:
    s = layer.sizes
    z = product
    if h is not None:
        bias = layer.recurrent_bias
        if layer.changed("row", t):
            bias = layer.g.const(layer.row + np.float32(1e-3))
        z = layer.op(ADD, layer.product(h, layer.again(t), bias), product)
    elif layer.bias:
        z = layer.op(ADD, product, layer.g.const(np.tile(layer.row, (s.batch, 1))))
    order = [0, 2, 1, 3] if layer.changed("gates", t) else [0, 1, 2, 3]
    i, f, g, o = (layer.gate(z, k) for k in order)
    i, o = layer.op(LOGISTIC, i), layer.op(LOGISTIC, o)
    g = layer.op(RELU if layer.changed("activation", t) else TANH, g)
    new = layer.op(MUL, i, g)
    if c is not None:
        new = layer.op(ADD, layer.op(MUL, layer.op(LOGISTIC, f), c), new)
    if layer.changed("clip", t):
        new = layer.op(MINIMUM, new, layer.g.const(np.float32(0.1)))
    out = layer.op(MUL, o, layer.op(TANH, new))
    if layer.changed("scale", t):
        out = layer.op(MUL, out, layer.g.const(np.float32(0.9)))
    return out, new


def gru_steps(layer: Layer, products: Sequence[int], state: State) -> tuple[list[int], list[int]]:
    """Hidden states [1,B,U] of all steps, twice."""
    hidden: list[int] = []
    s = layer.sizes
    for t, product in enumerate(products):
        h = hidden[-1] if hidden else state[0]
        if layer.changed("skip", t):
            h = hidden[-2]
        flat = layer.reshape(product, s.batch, 3 * s.units) if layer.lead else product
        x = [layer.box(flat, [0, k * s.units], [s.batch, s.units]) for k in range(3)]
        hidden.append(_gru_step(layer, t, x, h))
    return hidden, hidden


def _gru_step(layer: Layer, t: int, x: Sequence[int], h: int | None) -> int:
    s = layer.sizes
    if h is None:
        row = np.tile(layer.row.reshape(3, 1, s.units), (s.batch, 1))
        parts = [layer.g.const(part.reshape(*layer.lead, *part.shape)) for part in row]
    else:
        product = layer.product(h, layer.again(t), layer.recurrent_bias, keep=True)
        parts = [layer.gate(product, k) for k in range(3)]
    gate = RELU if layer.changed("activation", t) else LOGISTIC
    r, z = (layer.op(LOGISTIC, layer.op(ADD, parts[0], x[0])), layer.op(gate, layer.op(ADD, parts[1], x[1])))
    n = layer.op(TANH, layer.op(ADD, x[2], layer.op(MUL, parts[2], r)))
    if layer.changed("clip", t):
        n = layer.op(MINIMUM, n, layer.g.const(np.float32(0.1)))
    before = layer.g.const(np.float32(0)) if h is None else h
    return layer.op(ADD, layer.op(MUL, layer.op(SUB, before, n), z), n)


_STEPS: dict[str, tuple[int, Callable[..., tuple[list[int], list[int]]]]] = {
    "LSTM": (4, lstm_steps),
    "GRU": (3, gru_steps),
}


def unrolled(
    kind: str,
    sizes: Sizes = Sizes(),
    *,
    batch_first: bool = True,
    states: bool = False,
    bias: bool = True,
    layers: int = 1,
    bidirectional: bool = False,
    read: Sequence[str] = ("sequence",),
    seed: int = 0,
    **changes: int,
) -> Model:
    """A model of layers of a kind. read: what are its outputs: "sequence", "h", "c" (the last ones), "h1", "c1", ..."""
    g, rng = Graph(), np.random.default_rng(seed)
    s = sizes
    x = g.input((s.batch, s.steps, s.depth) if batch_first else (s.steps, s.batch, s.depth))
    gates, steps = _STEPS[kind]
    given: State = (None, None)
    if states:
        h = g.input((1, s.batch, s.units))
        given = (h, g.input((1, s.batch, s.units)) if kind == "LSTM" else None)
    layer = Layer(g, s, gates, rng, bias, changes)
    if batch_first:
        x = _swapped(layer, x, s)
    depth, found = s.depth, ([0], [0])
    for number in range(layers):
        directions = []
        for backwards in (False, True)[: 1 + bidirectional]:
            if number or backwards:
                layer = Layer(g, s, gates, rng, bias, depth=depth)
            found = steps(layer, layer.steps(x, backwards), given)
            directions.append(layer.sequence(found[0], backwards))
        x = directions[0]
        if bidirectional:
            x = layer.op(CONCATENATION, *directions, options=ConcatenationOptions(axis=2))
        depth = len(directions) * s.units
    outputs = []
    for name in read:
        if name == "sequence":
            outputs.append(_swapped(layer, x, Sizes(s.steps, s.batch, 0, depth)) if batch_first else x)
        else:
            outputs.append(found["hc".index(name[0])][int(name[1:] or -1)])
    return model(g.build(*outputs))


def unrolled_cells(kind: str, sizes: Sizes = Sizes(), *, layers: int = 1, seed: int = 0, **changes: int) -> Model:
    """A model of loops over cells, from given states; the outputs are the sequence [B,T,U] and the last state."""
    g, rng, s = Graph(), np.random.default_rng(seed), sizes
    x = g.input((s.batch, s.steps, s.depth))
    gates, steps = _STEPS[kind]
    given = (g.input((s.batch, s.units)), g.input((s.batch, s.units)) if kind == "LSTM" else None)
    products: list[int] = []
    hidden: list[int] = []
    for number in range(layers):
        layer = Layer(g, s, gates, rng, changes=changes, depth=s.units if number else s.depth, lead=())
        fed = [layer.product(h, layer.kernel, layer.input_bias) for h in hidden]
        products = fed if number else layer.cell_steps(x)
        hidden, _ = steps(layer, products, given)
    joined = layer.op(CONCATENATION, *hidden, options=ConcatenationOptions(axis=1))
    return model(g.build(layer.reshape(joined, s.batch, s.steps, s.units), hidden[-1]))


def _swapped(layer: Layer, x: int, s: Sizes) -> int:
    """A sequence with time and batch in the other order; a batch of 1 makes it a RESHAPE."""
    if 1 in (s.batch, s.steps):
        return layer.reshape(x, s.steps, s.batch, layer.g.tensors[x].static_shape[-1])
    return layer.op(TRANSPOSE, x, layer.ints(1, 0, 2), options=NoOptions())
