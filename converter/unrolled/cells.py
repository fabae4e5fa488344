"""Recognises one step of an LSTM, a GRU or a simple recurrent layer by the arithmetic after its sums."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from litecl.interpreter.graph import Node
from litecl.interpreter.match import AnyTensor, Number, Pattern, Tree, match, match_node
from litecl.interpreter.ops.binary import ADD, MUL, SUB
from litecl.interpreter.ops.unary import LOGISTIC, RELU, TANH
from litecl.interpreter.recurrent.patterns import LSTM_GATES, lstm_step
from litecl.interpreter.steps.links import OPERATORS, Links
from litecl.interpreter.steps.sums import Product, Sum, sum_of
from litecl.interpreter.steps.views import root

_GATES = (*LSTM_GATES, "reset", "update", "new", "recurrent")


@dataclass(frozen=True, eq=False)
class Cell:
    """A step: the tensors of its hidden state h, of the state that links it to the next step, and of its sums.

    kind: "LSTM", "GRU" or "RNN". h, state: c of an LSTM, else h. before: the initial state; None for zeros, and for an
    RNN's first step.
    gates: the sums by name; an LSTM that starts from zeros has no "forget". A GRU's "recurrent" is the part of its
    "new" gate that "reset" scales; it is missing if "reset" scales the state before the product (``scaled``). A GRU
    that starts from zeros may lack it, and "reset". batch, units: the rows of h and their width. nodes: those that
    compute h from the sums. activation: of an RNN, "tanh" or "relu".
    """

    kind: str
    h: int
    state: int
    before: int | None
    gates: Mapping[str, int]
    batch: int
    units: int
    nodes: tuple[Node, ...] = field(repr=False)
    scaled: int | None = None
    activation: str = "tanh"


def _sigmoid(name: str) -> Pattern:
    return Pattern(LOGISTIC, [AnyTensor(name)])


_SCALED = Pattern(MUL, [AnyTensor("recurrent"), _sigmoid("reset")])
_LATE = Pattern(TANH, [Pattern(ADD, [AnyTensor("new"), _SCALED])], name="n")
_EARLY = Pattern(TANH, [AnyTensor("new")])


def _torch_gru(before: Tree) -> Pattern:
    """Return PyTorch's h = (before - n) * update + n."""
    kept = Pattern(MUL, [Pattern(SUB, [before, AnyTensor("n")]), _sigmoid("update")])
    return Pattern(ADD, [_LATE, kept], name="h")  # the first n is bound, the second compared


def _keras_first(n: Pattern, name: str) -> Pattern:
    return Pattern(MUL, [Pattern(SUB, [Number(1), _sigmoid("update")]), n], name=name)


def _keras_gru(n: Pattern) -> Pattern:
    """Return Keras' h = update * before + (1 - update) * n."""
    return Pattern(ADD, [Pattern(MUL, [_sigmoid("update"), AnyTensor("before")]), _keras_first(n, "")], name="h")


# Zeros come first, since "before" matches them too; "new" with "recurrent" comes before "new", which matches any sum.
_CELLS = (
    ("LSTM", lstm_step(OPERATORS, TANH, AnyTensor)),
    ("LSTM", lstm_step(OPERATORS, TANH, AnyTensor, first=True)),
    ("GRU", _torch_gru(Number(0))),
    ("GRU", _torch_gru(AnyTensor("before"))),
    ("GRU", _keras_gru(_LATE)),
    ("GRU", _keras_gru(_EARLY)),
    ("GRU", _keras_first(_LATE, "h")),
    ("GRU", _keras_first(_EARLY, "h")),
    ("RNN", Pattern(TANH, [AnyTensor("new")], name="h")),
    ("RNN", Pattern(RELU, [AnyTensor("new")], name="h")),
)


def cells(links: Links) -> Iterator[Cell]:
    """Yield the steps of a subgraph in order."""
    for node in links.graph.nodes:
        for kind, pattern in _CELLS:
            cell = _cell(links, kind, pattern, node)
            if cell is not None:
                yield cell
                break


def _cell(links: Links, kind: str, pattern: Pattern, node: Node) -> Cell | None:
    step = match_node(links, pattern, node)
    units = () if step is None else links.shape(step["h"])[-1:]
    if step is None or not units:
        return None
    before = root(links, step["before"]) if "before" in step else None
    gates = {name: step[name] for name in _GATES if name in step}
    batch = links.rows(step["h"], units[0])
    state = step["state"] if kind == "LSTM" else step["h"]
    plain = Cell(kind, step["h"], state, before, gates, batch, units[0], step.nodes)
    is_early = kind == "GRU" and before is not None and "recurrent" not in gates
    cell = _with_early_reset(links, plain) if is_early else plain
    if kind == "RNN":
        cell = _after_another(links, replace(plain, activation=node.op.name.lower()), pattern)
    if cell is None or not batch:
        return None
    read = [*(t for part in cell.nodes for t in part.outputs), *([] if cell.before is None else [cell.before])]
    return cell if all(links.rows(t, units[0]) == batch for t in read) else None


def _with_early_reset(links: Links, cell: Cell) -> Cell | None:
    """Return a GRU whose "new" gate multiplies the state scaled by "reset"; None if there is no such product."""
    total = sum_of(links, cell.gates["new"])
    for product in [] if total is None else total.products:
        x = root(links, product.x)
        reset = match(links, Pattern(MUL, [_sigmoid("reset"), AnyTensor("h")]), x)
        if reset is not None and root(links, reset["h"]) == cell.before:
            gates = {"reset": reset["reset"], **cell.gates}
            return replace(cell, gates=gates, scaled=x, nodes=(*cell.nodes, *reset.nodes))
    return None


def _after_another(links: Links, cell: Cell, pattern: Pattern) -> Cell | None:
    """Return a simple step with the state before it.

    That is the multiplied tensor that is itself the activation of the same products, or of all but those with a zero
    state.
    """
    total = sum_of(links, cell.gates["new"])
    if total is None or not (total.products or total.parts):
        return None
    for product in total.products:
        x = root(links, product.x)
        before = match(links, pattern, x)
        earlier = None if before is None else sum_of(links, before["new"])
        if earlier is not None and _is_earlier(earlier, total):
            return replace(cell, before=x)
    return cell


def _is_earlier(earlier: Sum, later: Sum) -> bool:
    """Return whether a sum may be that of the previous step.

    It may lack the product with a zero state, which is the only one if the products with the sequence are computed
    earlier.
    """
    if not earlier.products:
        return len(later.products) == 1 and len(earlier.parts) == len(later.parts) == 1
    return all(_is_among(product, later.products) for product in earlier.products)


def _is_among(product: Product, others: tuple[Product, ...]) -> bool:
    return any(np.array_equal(product.weights, other.weights) for other in others)
