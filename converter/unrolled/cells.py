"""One step of an LSTM or a GRU, recognised by the arithmetic after its sums."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from litecl.converter.unrolled.links import Links
from litecl.converter.unrolled.views import root
from litecl.interpreter.graph import Node
from litecl.interpreter.match import Any, Number, Pattern, Tree, match_node
from litecl.interpreter.ops.binary import ADD, MUL, SUB
from litecl.interpreter.ops.unary import LOGISTIC, TANH

LSTM_GATES = ("input", "forget", "cell", "output")
GRU_GATES = ("reset", "update", "new", "recurrent")


@dataclass(frozen=True, eq=False)
class Cell:
    """A step: the tensors of its hidden state h, of the state that links it to the next step, and of its sums.

    kind: "LSTM" or "GRU". h, state: c of an LSTM, h of a GRU. before: the state that it starts from, None for zeros.
    gates: the sums by name; an LSTM that starts from zeros has no "forget". "recurrent" of a GRU is the part of its
    "new" gate that "reset" scales. batch, units: the rows of h and their width. nodes: those that make h from the sums.
    """

    kind: str
    h: int
    state: int
    before: int | None
    gates: Mapping[str, int]
    batch: int
    units: int
    nodes: tuple[Node, ...] = field(repr=False)


def _sigmoid(name: str) -> Pattern:
    return Pattern(LOGISTIC, [Any(name)])


def _lstm(memory: Pattern) -> Pattern:
    return Pattern(MUL, [_sigmoid("output"), Pattern(TANH, [memory])], name="h")


def _gru(before: Tree) -> Pattern:
    """h = (before - n) * update + n, as PyTorch computes it."""
    scaled = Pattern(MUL, [Any("recurrent"), _sigmoid("reset")])
    n = Pattern(TANH, [Pattern(ADD, [Any("new"), scaled])], name="n")
    kept = Pattern(MUL, [Pattern(SUB, [before, Any("n")]), _sigmoid("update")])
    return Pattern(ADD, [n, kept], name="h")  # n is found first, and then compared


_NEW = Pattern(MUL, [_sigmoid("input"), Pattern(TANH, [Any("cell")])])
_FIRST = Pattern(MUL, [_sigmoid("input"), Pattern(TANH, [Any("cell")])], name="state")
_NEXT = Pattern(ADD, [Pattern(MUL, [_sigmoid("forget"), Any("before")]), _NEW], name="state")

# Zeros first: they would also be "before".
_CELLS = (("LSTM", _lstm(_NEXT)), ("LSTM", _lstm(_FIRST)), ("GRU", _gru(Number(0))), ("GRU", _gru(Any("before"))))


def cells(links: Links) -> Iterator[Cell]:
    """Yield the steps of a subgraph in their order."""
    for node in links.graph.nodes:
        for kind, pattern in _CELLS:
            found = match_node(links, pattern, node)
            if found is None:
                continue
            before = root(links, found["before"]) if "before" in found else None
            gates = {name: found[name] for name in (*LSTM_GATES, *GRU_GATES) if name in found}
            state = found["state"] if kind == "LSTM" else found["h"]
            units = links.shape(found["h"])[-1:]
            if not units:
                continue
            batch = links.rows(found["h"], units[0])
            made = [t for part in found.nodes for t in part.outputs]
            read = [*made, *([] if before is None else [before])]
            if batch and all(links.rows(t, units[0]) == batch for t in read):
                yield Cell(kind, found["h"], state, before, gates, batch, units[0], found.nodes)
                break
