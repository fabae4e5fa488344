"""Chains of steps, each starting from the states of the previous one."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from litecl.converter.unrolled.cells import Cell
from litecl.interpreter.graph import Array
from litecl.interpreter.steps.links import Links
from litecl.interpreter.steps.sums import Product, Sum, sum_of
from litecl.interpreter.steps.views import Step, columns, root, step_of


@dataclass(frozen=True, eq=False)
class Gate:
    """A sum of a step, taken apart: its parts from the sequence and from h, and the constant row.

    step: columns of a step of the sequence, or the operand of ``weights``. recurrent: weights [units, units] of h; None
    if h is zeros.
    """

    step: Step | None
    weights: Array | None
    recurrent: Array | None
    row: Array


Gates = dict[str, Gate]


def chains(steps: Iterable[Cell], links: Links) -> Iterator[list[Cell]]:
    """Yield the chains of two or more steps, except those that end where two steps start from one state."""
    cells = list(steps)
    by_state = {(cell.kind, root(links, cell.state)): cell for cell in cells}
    followers: dict[Cell, list[Cell]] = {}
    heads = []
    for cell in cells:
        before = None if cell.before is None else by_state.get((cell.kind, cell.before))
        if before is None:
            heads.append(cell)
        else:
            followers.setdefault(before, []).append(cell)
    for head in heads:
        chain = [head]
        while len(after := followers.get(chain[-1], [])) == 1:
            chain += after
        if len(chain) > 1 and not after:
            yield chain


def gates_of(links: Links, chain: list[Cell]) -> tuple[list[Gates], int | None] | None:
    """Return the gates of every step, and the tensor of the first h (None for zeros); None if a sum doesn't fit."""
    rest = [_gates(links, cell, before.h) for before, cell in pairwise(chain)]
    if any(gates is None for gates in rest):
        return None
    first = _first(links, chain[0], rest[0] or {})
    return None if first is None else ([first[0], *(gates or {} for gates in rest)], first[1])


def _gates(links: Links, cell: Cell, h: int) -> Gates | None:
    """Return the gates of a step after one whose hidden state is ``h``."""
    gates: Gates = {}
    for name, tensor in cell.gates.items():
        total = sum_of(links, tensor)
        if total is None:
            return None
        state = cell.scaled if name == "new" and cell.scaled is not None else h
        recurrent = [product for product in total.products if root(links, product.x) == state]
        gate = _gate(links, cell, total, recurrent)
        if gate is None or (gate.recurrent is None) != (name == "new" and "recurrent" in cell.gates):
            return None
        gates[name] = gate
    return gates


def _first(links: Links, cell: Cell, later: Gates) -> tuple[Gates, int | None] | None:
    """Return the gates of the first step; its h is the operand of the same weights as in ``later``."""
    gates: Gates = {}
    states: set[int | None] = set()
    for name, tensor in cell.gates.items():
        total, weights = sum_of(links, tensor), later[name].recurrent if name in later else None
        if total is None or name not in later:
            return None
        recurrent = [p for p in total.products if weights is not None and np.array_equal(p.weights, weights)]
        gate = _gate(links, cell, total, recurrent)
        if gate is None:
            return None
        gates[name] = gate
        if weights is not None:
            state = root(links, recurrent[0].x) if recurrent else None
            scales = name == "new" and cell.scaled is not None
            states.add(cell.before if scales and state == cell.scaled else state)
    return (gates, states.pop()) if len(states) == 1 else None


def _gate(links: Links, cell: Cell, total: Sum, recurrent: list[Product]) -> Gate | None:
    inputs = [product for product in total.products if product not in recurrent]
    if len(recurrent) > 1 or len(inputs) + len(total.parts) > 1:
        return None
    if any(links.rows(p.x, p.weights.shape[1]) != cell.batch for p in (*recurrent, *inputs)):
        return None
    row = total.row + sum(p.bias.astype(total.row.dtype) for p in (*recurrent, *inputs))
    matrix = recurrent[0].weights if recurrent else None
    if matrix is not None and matrix.shape != (cell.units, cell.units):
        return None
    if not inputs and not total.parts:
        return Gate(None, None, matrix, row)
    step = step_of(links, columns(links, inputs[0].x) if inputs else total.parts[0])
    return None if step is None else Gate(step, inputs[0].weights if inputs else None, matrix, row)
