"""ADD_N: the sum of any number of tensors of one shape."""

from functools import reduce

import numpy as np

from litecl.interpreter.arithmetic import halves
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require, types
from litecl.interpreter.op import Inputs, NoOptions, Op, Specs


def _infer(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    terms = require.present(inputs, max(1, len(inputs)))
    require.types(terms[0], types.REAL)
    require.same_type(*terms)
    for term in terms[1:]:
        if term.shape != terms[0].shape:
            raise ShapeError(f"shapes differ: {terms[0].shape} and {term.shape}")
    return [TensorSpec(terms[0].type, terms[0].shape)]


def _run(options: NoOptions, inputs: Inputs) -> list[Array]:
    terms = require.arrays(inputs, len(inputs))
    return [np.asarray(reduce(np.add, terms))]


ADD_N = halves.also(Op("ADD_N", options=NoOptions, infer=_infer, run=_run))
