"""Estimates how far results of a few operators spread if each is off by its tolerance."""

from collections.abc import Sequence

import numpy as np

from litecl.bisection.cut import cut
from litecl.bisection.tolerance import Tolerance
from litecl.comparison import distances
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.graph import Array, Model
from litecl.perf.feeds import run_on

_RUNS = 16
_MARGIN = 3.0  # factor, because so few runs underestimate the spread


def explains(
    model: Model, given: Sequence[Array], expected: Sequence[Array], got: Sequence[Array], by: Tolerance
) -> bool | None:
    """Return whether errors of each operator within the tolerance explain the results; None if its nodes don't run
    apart. Tries random errors, and errors of only one sign.
    """
    rng = np.random.default_rng(0)
    try:
        runs = [_run(model, given, by, rng, sign) for sign in (1, -1, *[0] * _RUNS)]
    except (KeyError, LiteclError):
        return None
    pairs = enumerate(zip(expected, got, strict=True))
    return all(_within([run[i] for run in runs], want, have, by) for i, (want, have) in pairs)


def _within(runs: Sequence[Array], expected: Array, got: Array, by: Tolerance) -> bool:
    if got.shape != expected.shape or got.dtype != expected.dtype or expected.dtype.kind not in "fiub":
        return False
    if not all(x.shape == expected.shape and np.isfinite(x).all() for x in (expected, got, *runs)):
        return False
    spread = np.max([distances(run, expected) for run in runs], axis=0, initial=0.0)
    slack = by.of(expected.dtype) * (1.0 if expected.dtype.kind in "iub" else float(np.abs(expected).max(initial=0.0)))
    return bool((distances(got, expected) <= _MARGIN * spread + slack).all())


def _run(model: Model, given: Sequence[Array], by: Tolerance, rng: np.random.Generator, sign: int) -> list[Array]:
    """Run a model node by node, adding errors to each result. sign: of all errors; 0 draws random ones."""
    graph = model.subgraphs[0]
    values = {t: spec.data for t, spec in enumerate(graph.tensors) if spec.data is not None}
    values |= dict(zip(graph.inputs, given, strict=True))
    for number, node in enumerate(graph.nodes):
        alone = cut(model, 0, [number], values)
        results = run_on(Interpreter(alone.model), [values[t] for t in alone.inputs])
        by_tensor = dict(zip(alone.outputs, results, strict=True))
        values |= {t: _erring(x, by, rng, sign) if t in node.outputs else x for t, x in by_tensor.items()}
    return [values[t] for t in graph.outputs]


def _erring(x: Array, by: Tolerance, rng: np.random.Generator, sign: int) -> Array:
    by_element = np.full(x.shape, sign, np.float64) if sign else rng.uniform(-1, 1, x.shape)
    if x.dtype.kind == "f":
        return np.asarray(x + by_element * by.relative * np.abs(x).max(initial=0.0), x.dtype)
    if not by.of(x.dtype):
        return x
    info = np.iinfo(x.dtype)
    return np.asarray(np.clip(x + np.round(by_element * by.steps), info.min, info.max), x.dtype)
