"""LSTMs and their states, over several invokes and after resets."""

from collections.abc import Callable

import numpy as np

from litecl.interpreter.graph import Model
from litecl.perf.models.build import model
from litecl.perf.models.layers import Layers
from litecl.verify.check import Check, Step
from litecl.verify.scenarios.scenario import invokes, scenario


def _lstm(batch: int, steps: int, depth: int, units: int) -> Callable[[], Model]:
    def build() -> Model:
        layers = Layers(seed=4)
        x = layers.lstm(layers.graph.input((batch, steps, depth)), units)
        return model(layers.graph.build(layers.dense(x, 5)))

    return build


def _two() -> Model:
    """Return two stacked LSTMs: two pairs of states in a region."""
    layers = Layers(seed=5)
    x = layers.lstm(layers.graph.input((1, 4, 6)), 9)
    return model(layers.graph.build(layers.lstm(x, 7)))


def _reset() -> list[Step]:
    rng = np.random.default_rng(6)
    x = rng.standard_normal((1, 3, 8)).astype(np.float32)
    return [Step([x]), Step([x]), Step([x], reset=True), Step([x])]


_NAME = "UNIDIRECTIONAL_SEQUENCE_LSTM"
CHECKS: tuple[Check, ...] = (
    scenario("a state over four invokes", _NAME, _lstm(1, 5, 10, 16), invokes(4, (1, 5, 10))),
    scenario("batch of 3, odd sizes", _NAME, _lstm(3, 4, 7, 13), invokes(3, (3, 4, 7))),
    scenario("states set back", _NAME, _lstm(1, 3, 8, 8), _reset),
    scenario("two layers", _NAME, _two, invokes(3, (1, 4, 6))),
    scenario("a state, queued", _NAME, _lstm(1, 5, 10, 16), invokes(3, (1, 5, 10)), options={"queue_loops": True}),
)
