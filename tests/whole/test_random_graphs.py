"""Random graphs have every operator of the device, and a seed draws the same (``python -m tools.fuzz_graphs``)."""

from collections import Counter

import numpy as np

from litecl.delegate.ops import CL_OPS
from litecl.interpreter import Interpreter
from litecl.perf.feeds import run_on
from litecl.random_graphs.graphs import THEMES, Drawn, draw, families_of, kind_of


def _models(seeds: int) -> list[Drawn]:
    rngs = [np.random.default_rng(seed) for seed in range(seeds)]
    return [draw([7, i], theme, families_of(theme, rng, 12)) for theme in THEMES for i, rng in enumerate(rngs)]


def test_draws_every_operator() -> None:
    """Products of every type, too."""
    counts: Counter[tuple[str, str]] = Counter()
    for drawn in _models(14):
        counts.update((n.op.name, kind_of(g, n)) for g in drawn.model.subgraphs for n in g.nodes)
        if (call := drawn.calls[0]).entry == 0:
            run_on(Interpreter(drawn.model), call.feeds)
    assert not {*(op.name for op in CL_OPS), "IF", "WHILE", "CALL"} - {name for name, _ in counts}
    for name in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"):
        kinds = {"float32", "hybrid", "quantized int8", "quantized uint8", "quantized int16"}
        assert {kind for op, kind in counts if op == name} >= kinds


def test_draws_the_same_again() -> None:
    families = families_of(THEMES[0], np.random.default_rng(0), 8)
    first, second = (draw([1, 2], THEMES[0], families) for _ in range(2))
    assert [node.op for node in first.model.subgraphs[0].nodes] == [node.op for node in second.model.subgraphs[0].nodes]
    assert all(np.array_equal(a, b) for a, b in zip(first.calls[0].feeds, second.calls[0].feeds, strict=True))
