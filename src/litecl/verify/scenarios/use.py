"""Usage patterns: resizing, several threads, a thousand invokes."""

from collections.abc import Sequence

import numpy as np

from litecl.interpreter.graph import Model
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.perf.models.build import model
from litecl.perf.models.layers import Layers
from litecl.verify.check import Check, Step
from litecl.verify.scenarios.images import sound
from litecl.verify.scenarios.scenario import invokes, scenario


def _dense() -> Model:
    """Return three dense layers and a softmax over rows."""
    layers = Layers(seed=21)
    x = layers.graph.input((1, 24), signature=(-1, 24))
    for units in (33, 16, 7):
        x = layers.dense(x, units)
    return model(layers.graph.build(layers.graph.op(SOFTMAX, (x,), SoftmaxOptions(1.0))))


def _rows(*counts: int) -> Sequence[Step]:
    rng = np.random.default_rng(22)
    return [Step([rng.standard_normal((rows, 24)).astype(np.float32)]) for rows in counts]


CHECKS: tuple[Check, ...] = (
    scenario("resized: 1, 3, 17 and 1 rows", "use", _dense, lambda: _rows(1, 3, 17, 1)),
    scenario("four threads", "use", sound, invokes(2, (1, 24, 20, 1)), threads=4, rounds=5),
    scenario("a thousand invokes", "use", _dense, lambda: _rows(5), rounds=1000),
    scenario("a thousand invokes with a state", "use", sound, invokes(4, (1, 24, 20, 1)), rounds=250, quick=False),
)
