"""Turns a chain into one layer: its sequence, weights, and initial states."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from litecl.converter.unrolled.cells import Cell
from litecl.converter.unrolled.chains import Gate, Gates, gates_of
from litecl.interpreter.graph import Array
from litecl.interpreter.steps import views
from litecl.interpreter.steps.links import Links
from litecl.interpreter.steps.sums import product_of

_WITHOUT_STEPS = ("recurrent",)


@dataclass(frozen=True, eq=False)
class LayerGate:
    """A gate, the same in all steps.

    weights [units, depth] of the sequence; None if the sequence holds products, in columns from ``first``.
    recurrent [units, units] of h; None if h is not added. row [units]: the constant.
    """

    first: int
    weights: Array | None
    recurrent: Array | None
    row: Array


@dataclass(frozen=True, eq=False)
class Layer:
    """A recurrent layer. h, c: the tensors of its initial states, None for zeros; c is an LSTM's."""

    chain: Sequence[Cell]
    sequence: views.Sequence
    gates: Mapping[str, LayerGate]
    h: int | None
    c: int | None

    @property
    def kind(self) -> str:
        """The name of the cell: "LSTM", "GRU" or "RNN"."""
        return self.chain[0].kind

    @property
    def batch(self) -> int:
        """The number of sequences it runs over at once."""
        return self.chain[0].batch

    @property
    def units(self) -> int:
        """The width of its states."""
        return self.chain[0].units


def layer_of(links: Links, chain: Sequence[Cell]) -> Layer | None:
    """Return the layer that a chain computes; None if its steps differ."""
    sizes = {(cell.batch, cell.units) for cell in chain}
    taken_apart = gates_of(links, list(chain)) if len(sizes) == 1 else None
    if taken_apart is None:
        return None
    (first, *later), h = taken_apart
    widths = {gate.step.count for gates in later for gate in gates.values() if gate.step and gate.weights is None}
    if not widths <= {chain[0].units}:
        return None
    head, like = chain[0], later[0]
    sequence = _sequence(links, [first, *later], head.batch)
    if sequence is None or any(gates.keys() != like.keys() for gates in later):
        return None
    if not all(_is_like(gates[name], like[name]) for gates in (first, *later) for name in gates):
        return None
    if head.kind == "GRU" and (head.before != h or not _may_lack(first, like)):
        return None
    gates = {name: _layer_gate(gate) for name, gate in like.items()}
    layer = Layer(chain, sequence, gates, h, head.before if head.kind == "LSTM" else None)
    if head.kind != "GRU":
        return _with_weights(links, layer)
    return layer if _is_uniform(links, layer) else None


def _sequence(links: Links, steps: Sequence[Gates], batch: int) -> views.Sequence | None:
    """Return the sequence whose steps the chain reads one by one, completely and in order."""
    read = [
        {gate.step and (gate.step.sequence, gate.step.index) for gate in gates.values()} - {None} for gates in steps
    ]
    if any(len(steps_read) != 1 for steps_read in read):
        return None
    order = [steps_read.pop() for steps_read in read]
    sequences, indices = {pair[0] for pair in order if pair}, [pair[1] for pair in order if pair]
    (sequence,) = sequences if len(sequences) == 1 else (None,)
    if sequence is None:
        return None
    shape, forwards = links.shape(sequence.tensor), list(range(len(steps)))
    if shape[sequence.axis] != len(steps) or shape[1 - sequence.axis] != batch:
        return None
    if list(indices) not in (forwards, forwards[::-1]):
        return None
    return replace(sequence, backwards=list(indices) != forwards)


def _is_like(gate: Gate, other: Gate | None) -> bool:
    """Return whether two gates compute the same; the first may lack the product with a zero h."""
    if other is None or not np.array_equal(gate.row, other.row):
        return False
    if (gate.step is None) != (other.step is None) or (gate.weights is None) != (other.weights is None):
        return False
    columns = [None if g.step is None else (g.step.first, g.step.count) for g in (gate, other)]
    same = columns[0] == columns[1] and _same(gate.weights, other.weights)
    return same and (gate.recurrent is None or _same(gate.recurrent, other.recurrent))


def _same(a: Array | None, b: Array | None) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b))


def _may_lack(first: Gates, like: Gates) -> bool:
    """Return whether a GRU's first step without "recurrent" adds nothing to its "new" gate."""
    return "recurrent" not in like or "recurrent" in first or not like["recurrent"].row.any()


def _layer_gate(gate: Gate) -> LayerGate:
    return LayerGate(0 if gate.step is None else gate.step.first, gate.weights, gate.recurrent, gate.row)


def _is_uniform(links: Links, layer: Layer) -> bool:
    """Return whether all gates read products, or all multiply whole steps."""
    depth = links.shape(layer.sequence.tensor)[-1]
    fed = [gate for name, gate in layer.gates.items() if name not in _WITHOUT_STEPS]
    if all(gate.weights is None for gate in fed):
        return max(gate.first for gate in fed) + layer.units <= depth
    return all(gate.weights is not None and gate.weights.shape == (layer.units, depth) for gate in fed)


def _with_weights(links: Links, layer: Layer) -> Layer | None:
    """Replace products in the sequence by their weights, and the sequence by the products' operand."""
    multiplied = {name: _multiplied(links, layer, gate) for name, gate in layer.gates.items()}
    origins = {pair[0] for pair in multiplied.values() if pair is not None}
    if len(origins) != 1 or None in multiplied.values():
        return None
    gates = {name: pair[1] for name, pair in multiplied.items() if pair is not None}
    whole = replace(layer, sequence=origins.pop(), gates=gates)
    return whole if _is_uniform(links, whole) else None


def _multiplied(links: Links, layer: Layer, gate: LayerGate) -> tuple[views.Sequence, LayerGate] | None:
    outer = views.origin(links, layer.sequence)
    if gate.weights is not None:
        return outer, gate
    view = views.columns(links, outer.tensor).part(gate.first, layer.units)
    node = links.producer(view.source)
    product = None if node is None else product_of(links, node, view)
    axis = None if product is None else views.axis_within(links, product.x, outer)
    if product is None or axis is None:
        return None
    row = gate.row + product.bias.astype(gate.row.dtype)
    before = views.origin(links, replace(outer, tensor=product.x, axis=axis))
    return before, replace(gate, first=0, weights=product.weights, row=row)
