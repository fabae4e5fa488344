"""Cases of the random operators with seeds: the first numbers of a sequence."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import i32, scalar
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops import random as ops
from litecl.interpreter.schema import TensorType as T

_SEEDS = ((1, 0), (0, 7), (2**40 + 3, -5))


def _numbers(op: Op, shape: tuple[int, ...], seeds: tuple[int, int], constant: bool = True) -> Case:
    fixed = frozenset({0} if constant else ())
    return Case(f"{shape} of {seeds}, {constant:d}", op, ops.RandomOptions(*seeds), [i32(*shape)], fixed)


def _multinomial(type_: T, samples: int, seeds: tuple[int, int]) -> Case:
    logits = np.array([[0.1, 2.0, -1.0, 0.5], [3.0, -np.inf, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]], np.float32)
    return Case(
        f"{type_.name} {samples} of {seeds}",
        ops.MULTINOMIAL,
        ops.RandomOptions(*seeds),
        [logits, scalar(samples)],
        outputs=(TensorSpec(type_, None),),
    )


def _bits(algorithm: int, type_: T, shape: tuple[int, ...], *state: int) -> Case:
    key = np.array(state, np.uint64)
    outputs = (TensorSpec(T.UINT64, key.shape), TensorSpec(type_, shape))
    return Case(
        f"algorithm {algorithm} {type_.name} {shape} {len(state)}",
        ops.STABLEHLO_RNG_BIT_GENERATOR,
        ops.StablehloRngBitGeneratorOptions(algorithm),
        [key],
        outputs=outputs,
    )


CASES = (
    *(
        _numbers(op, shape, seeds)
        for op in (ops.RANDOM_UNIFORM, ops.RANDOM_STANDARD_NORMAL)
        for shape, seeds in zip(((3, 7), (16,), (2, 3, 4)), _SEEDS, strict=True)
    ),
    _numbers(ops.RANDOM_UNIFORM, (5,), (3, 4), constant=False),
    _numbers(ops.RANDOM_UNIFORM, (0, 2), (3, 4)),
    *(
        _multinomial(type_, samples, seeds)
        for type_ in (T.INT32, T.INT64)
        for samples, seeds in zip((9, 1, 50), _SEEDS, strict=True)
    ),
    *(
        _bits(algorithm, type_, (3, 5), 2**63 + 11, 2**32 - 2)
        for algorithm in (0, 1, 2)
        for type_ in (T.UINT32, T.INT32, T.UINT64, T.INT64)
    ),
    _bits(1, T.UINT32, (9,), 1, 2, 3),
    _bits(0, T.UINT64, (2, 2), 2**40, 2**64 - 1, 2**50 + 1),
)
