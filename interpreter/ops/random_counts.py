"""RandomGamma and RandomPoisson, litecl's own operators: numpy's numbers in TensorFlow's distributions.

A node with seeds continues its sequence from invoke to invoke.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require
from litecl.interpreter.kit.own import Result, operator
from litecl.interpreter.op import Inputs, Op, Run, Specs
from litecl.interpreter.schema import TensorType

_Draw = Callable[[np.random.Generator, Array, tuple[int, ...]], Array]


@dataclass(frozen=True)
class SeededOptions:
    seed: int = 0
    seed2: int = 0
    dtype: int = int(TensorType.FLOAT32)


def _seeded(name: str, draw: _Draw) -> Op:
    """Return the operator that draws numbers [*shape, *parameter] for every parameter of a distribution."""

    def results(options: SeededOptions, inputs: list[TensorSpec]) -> list[Result]:
        shape, parameter = inputs
        known = require.integers(shape)
        return [(TensorType(options.dtype), None if known is None else (*known, *parameter.static_shape))]

    def bind(options: SeededOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
        seeds = [seed & (1 << 63) - 1 for seed in (options.seed, options.seed2)]
        generator = np.random.default_rng(seeds if any(seeds) else int.from_bytes(os.urandom(8), "little"))

        def run(options: SeededOptions, inputs: Inputs) -> list[Array]:
            shape, parameter = require.arrays(inputs, 2)
            wanted = (*shape.tolist(), *parameter.shape)
            require.elements(wanted)
            return [draw(generator, parameter, wanted).astype(TensorType(options.dtype).dtype)]

        return run

    return replace(operator(name, SeededOptions, require.unbound, results, pure=False), bind=bind)


RANDOM_GAMMA = _seeded("litecl.RandomGamma", lambda generator, alpha, shape: generator.standard_gamma(alpha, shape))
RANDOM_POISSON = _seeded("litecl.RandomPoisson", lambda generator, rate, shape: generator.poisson(rate, shape))
