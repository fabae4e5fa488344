"""Helpers for all scenarios."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from litecl.interpreter.graph import Array, Model
from litecl.verify.check import Check, Labels, Step, edge_of


def scenario(name: str, op: str, model: Callable[[], Model], steps: Callable[[], Sequence[Step]], **more: Any) -> Check:
    """Return a check of a scenario. op: the operator, or kind of model, that it represents."""

    def describe() -> Labels:
        return _labels(op, steps())

    return Check(f"{op}/{name}", op, describe, model, steps, **{"quick": True} | more)


def _labels(op: str, fed: Sequence[Step]) -> Labels:
    shapes = " ".join(str(list(x.shape)).replace(", ", ",") for x in fed[0].feeds)
    types = " ".join(dict.fromkeys(x.dtype.name for x in fed[0].feeds))
    edge = edge_of([x for step in fed for x in step.feeds])
    return Labels(op, 0, types, shapes, edge)


def invokes(count: int, *shapes: tuple[int, ...], seed: int = 0) -> Callable[[], list[Step]]:
    """Return a function that creates steps with random float inputs of these shapes."""

    def steps() -> list[Step]:
        rng = np.random.default_rng(seed)
        return [Step([_normal(rng, shape) for shape in shapes]) for _ in range(count)]

    return steps


def _normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.standard_normal(shape).astype(np.float32)
