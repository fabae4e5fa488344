"""Cases of REVERSE_V2 and REVERSE_SEQUENCE."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random, i32
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.reverse import REVERSE_SEQUENCE, REVERSE_V2, ReverseSequenceOptions

_random = Random(27)


def _reverse(name: str, x: Array, *axes: int) -> Case:
    return Case(name, REVERSE_V2, NoOptions(), [x, i32(*axes)], frozenset({1}))


def _sequence(name: str, x: Array, lengths: Array, seq: int, batch: int) -> Case:
    return Case(name, REVERSE_SEQUENCE, ReverseSequenceOptions(seq, batch), [x, lengths])


CASES = (
    _reverse("vector", _random.normal(5), 0),
    _reverse("time", _random.normal(2, 5, 3), 1),
    _reverse("last", _random.normal(2, 5, 3), -1),
    _reverse("two axes", _random.normal(2, 3, 4), 1, 2),
    _reverse("int32", _random.integers(2, 3), 0),
    _reverse("bool", _random.bools(2, 3), 1),
    _sequence("time major", _random.normal(5, 3, 2), i32(5, 2, 0), 0, 1),
    _sequence("batch major", _random.normal(3, 5, 2), i32(1, 4, 5), 1, 0),
    _sequence("rank 4", _random.normal(2, 3, 4, 2), i32(3, 1), 2, 0),
    _sequence("int64 lengths", _random.normal(3, 5), np.array([1, 4, 5]), 1, 0),
    _sequence("int32", _random.integers(3, 5), i32(1, 4, 5), 1, 0),
)
