"""Floats that random numbers never are: infinite, no number, denormal, or of an extreme scale."""

from dataclasses import replace

import numpy as np

from litecl.delegate.tuning import Tuning
from litecl.interpreter.graph import Array
from litecl.random_graphs.graphs import Drawn
from tools.graph_fuzz.modes import Mode

_STRANGE = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 1e-38, 1e-15, 1e15, -1e15, 88.5, -104.0, 1e5)
_FINITE = tuple(x for x in _STRANGE if np.isfinite(x))
_SHARES = (0.02, 0.1, 0.5)  # of a tensor's elements


def with_strange_inputs(drawn: Drawn, rng: np.random.Generator) -> Drawn:
    """Return a model with strange values among the floats that it is fed. Those of one graph are of a few kinds."""
    kinds = rng.choice(_FINITE if _transforms(drawn) else _STRANGE, int(rng.integers(1, 5)))
    calls = [replace(call, feeds=tuple(_strewn(x, kinds, rng) for x in call.feeds)) for call in drawn.calls]
    return replace(drawn, calls=tuple(calls))


def _transforms(drawn: Drawn) -> bool:
    """Return whether a model has RFFT2D, which on a device spreads what is not finite over more frequencies."""
    return any(node.op.name == "RFFT2D" for graph in drawn.model.subgraphs for node in graph.nodes)


def for_strange_inputs(mode: Mode) -> Mode:
    """Return a mode without Winograd's algorithm, of which a tile has no numbers where one of its pixels is none."""
    return replace(mode, options={**mode.options, "tuning": Tuning(winograd_channels=1e15)})


def _strewn(x: Array, kinds: Array, rng: np.random.Generator) -> Array:
    if x.dtype != np.float32:
        return x
    chosen = rng.random(x.shape) < rng.choice(_SHARES)
    return np.asarray(np.where(chosen, rng.choice(kinds, x.shape), x), np.float32)
