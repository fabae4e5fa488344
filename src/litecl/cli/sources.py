"""Compares a converted file with its source model, signature by signature, on random inputs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array
from litecl.perf.feeds import random_inputs

# TensorFlow's function, from inputs to results by their names.
Source = Callable[[Mapping[str, Array]], Mapping[str, Array]]

_RUNS = 3  # states are carried from one to the next
TOLERANCE = 1e-4  # of the largest magnitude of a result


@dataclass(frozen=True)
class Difference:
    """How far a result of a signature is from TensorFlow's, as a part of its largest magnitude, over several runs."""

    signature: str
    output: str
    largest: float

    @property
    def small(self) -> bool:
        """True if arithmetic in another order accounts for it."""
        return self.largest <= TOLERANCE


def differences(content: bytes, sources: Mapping[str, Source], seed: int = 0) -> list[Difference]:
    """Return a difference for every result of every signature; infinity where a shape is another."""
    interpreter = Interpreter(model_content=content)
    found: dict[tuple[str, str], float] = {}
    for key, source in sources.items():
        runner = interpreter.get_signature_runner(key)
        details = [{**detail, "name": name} for name, detail in runner.get_input_details().items()]
        for run in range(_RUNS):
            inputs = random_inputs(details, seed + run)
            results, expected = runner(**inputs), source(inputs)
            for name, wanted in expected.items():
                difference = _relative(np.asarray(results[name]), wanted)
                found[key, name] = max(found.get((key, name), 0.0), difference)
    return [Difference(key, name, largest) for (key, name), largest in found.items()]


def _relative(got: Array, wanted: Array) -> float:
    if got.shape != wanted.shape:
        return float("inf")
    if wanted.dtype.kind in "OSU" or wanted.dtype == bool:
        return float((got != wanted).any())
    magnitude = float(np.abs(wanted).max(initial=0)) or 1.0
    return float(np.abs(got.astype(np.float64) - wanted.astype(np.float64)).max(initial=0)) / magnitude
