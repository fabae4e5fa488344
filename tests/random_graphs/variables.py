"""Families of resource variables: read and assigned in the main graph, in branches and loops, and by two signatures."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from litecl.interpreter.graph import Node, Subgraph, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import MAXIMUM, MINIMUM
from litecl.interpreter.ops.control import CALL_ONCE, CallOnceOptions
from litecl.interpreter.ops.variables import ASSIGN_VARIABLE, READ_VARIABLE, VAR_HANDLE, VarHandleOptions, handle
from litecl.random_graphs.kept import Kept
from litecl.random_graphs.sketch import Sketch, T, alike

_MOST = 4
_BOUND = 9
_NUMBERS = (T.FLOAT32, T.INT32, T.INT64)


def handle_to(s: Sketch, name: str) -> int:
    """Return a handle: one that the graph has, perhaps because it was given it, or a new one."""
    there = [t for t, value in enumerate(s.values) if value.dtype == np.object_ and value.item() == name]
    if there and s.chance(0.7):
        return int(s.one_of(*there))
    index = s.tensor(TensorSpec(T.RESOURCE, ()), handle(name), readable=False)
    s.nodes.append(Node(VAR_HANDLE, (), (index,), VarHandleOptions("", name[1:])))
    return index


def _made(s: Sketch) -> str:
    """Return a new variable, like a tensor of the graph."""
    like = s.spec(s.pick(*s.types, where=lambda p: not p.is_variable and p.size > 0))
    name = f"/v{len(s.kept.specs)}"
    s.kept.specs[name] = TensorSpec(like.type, like.shape, quantization=like.quantization)
    s.kept.values[name] = s.kept.firsts[name] = s.random(like.type, like.static_shape)
    return name


def _chosen(s: Sketch) -> str:
    names = [*s.kept.specs]
    return _made(s) if not names or (len(names) < _MOST and s.chance(0.4)) else str(s.one_of(*names))


def read(s: Sketch) -> None:
    """READ_VARIABLE."""
    name = _chosen(s)
    variable = handle_to(s, name)
    made = s.tensor(replace(s.kept.specs[name]), s.kept.values[name])
    s.nodes.append(Node(READ_VARIABLE, (variable,), (made,), NoOptions()))


def assign(s: Sketch) -> None:
    """ASSIGN_VARIABLE of a tensor like the variable, numbers kept small, for they may grow from invoke to invoke."""
    name = _chosen(s)
    spec = s.kept.specs[name]
    value = s.pick(spec.type, where=lambda p: alike(p, spec))
    if spec.type in _NUMBERS and spec.quantization is None and s.chance(0.9):
        low, high = (s.const(np.array(bound, spec.dtype)) for bound in (-_BOUND, _BOUND))
        value = s.op(MAXIMUM, [s.op(MINIMUM, [value, high]), low])
    variable = handle_to(s, name)
    s.kept.values[name] = s.values[value]
    s.nodes.append(Node(ASSIGN_VARIABLE, (variable, value), (), NoOptions()))


def initialised(graphs: list[Subgraph], entries: Sequence[int], kept: Kept) -> None:
    """Let a subgraph that runs once give all variables their first values, before any of these entries runs."""
    if not kept.firsts:
        return
    s = Sketch(np.random.default_rng(0), graphs=graphs, name="first")
    for name, value in kept.firsts.items():
        spec = kept.specs[name]
        variable = handle_to(s, name)
        s.nodes.append(Node(ASSIGN_VARIABLE, (variable, s.const(value, spec.type, spec.quantization)), (), NoOptions()))
    graphs.append(s.build([]))
    once = Node(CALL_ONCE, (), (), CallOnceOptions(len(graphs) - 1))
    for index in entries:
        graphs[index] = replace(graphs[index], nodes=(once, *graphs[index].nodes))


FAMILIES = {"variables": (read, assign, assign)}
