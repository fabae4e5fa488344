"""Runs a whole generation in one invoke."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from litecl.generate import drawing
from litecl.generate.runners import Caches, InterpreterRunner
from litecl.generate.sampling import Sampling
from litecl.generate.signatures import Entry, Role, Step
from litecl.generate.whole import KEY, STOPS, Lookup, looped
from litecl.interpreter import Interpreter
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, Model


@dataclass(frozen=True)
class Asked:
    """A request to generate at most ``count`` tokens after ``token``, which is at ``position``, up to one of ``stops``.
    stops: at most ``STOPS`` tokens. uniforms: a random number for each generated token, used if tokens are drawn.
    """

    token: int
    position: int
    count: int
    stops: Sequence[int]
    sampling: Sampling
    uniforms: Array

    @property
    def draws(self) -> bool:
        """True if tokens are drawn at random; else they are the most likely ones."""
        return self.sampling.temperature > 0


class Loop:
    """A model's decode signature as a loop; see ``whole.looped``.

    interpret: loads a model on the same device as the others. draws: whether tokens are drawn at random.
    """

    def __init__(
        self,
        interpret: Callable[[Model], Interpreter],
        model: Model,
        decode: Step,
        lookups: Mapping[str, Lookup],
        length: int,
        window: int | None,
        draws: bool,
    ) -> None:
        numbers = {"count": (), "position": (), "token": (), "stops": (STOPS,)}
        entries = [Entry(name, None, shape, np.dtype(np.int32)) for name, shape in numbers.items()]
        if draws:
            specs = drawing.inputs(length)
            entries += [Entry(name, None, spec.static_shape, spec.dtype) for name, spec in specs.items()]
        self._length, self._draws = length, draws
        self._step = Step(KEY, 1, (*entries, *decode.of(Role.CACHE)), (), None)
        self.runner = InterpreterRunner(interpret(looped(model, decode, lookups, length, window, draws=draws)))

    @property
    def is_on_device(self) -> bool:
        """Whether one device runs all of it."""
        delegations = self.runner.delegations
        return len(delegations) == 1 and all(node.claimed for node in delegations[0].report().nodes)

    def run(self, asked: Asked, caches: Caches) -> list[int] | None:
        """Return the generated tokens, up to one whose draw rounding could change. The caches then hold all but the
        last.

        Returns None if a logit was infinite or NaN: the caches are then unusable.
        """
        given: dict[str, Any] = {
            "count": asked.count,
            "position": asked.position,
            "token": asked.token,
            "stops": [*asked.stops, *[-1] * (STOPS - len(asked.stops))],
        }
        if self._draws:
            given |= _drawn(asked, self._length)
        values = {each.name: np.array(given[each.name], each.dtype) for each in self._step.inputs if each.name in given}
        results = self.runner.run(self._step, values, caches)
        if not results["finite"]:
            return None
        count = int(results["steps"]) - (self._draws and not results["certain"])
        tokens: list[int] = results["text"][:count].tolist()
        return tokens


def _drawn(asked: Asked, length: int) -> dict[str, Any]:
    """Return the values of ``drawing.INPUTS``."""
    uniforms = np.zeros(length, np.float32)
    uniforms[: asked.count] = asked.uniforms
    sampling = asked.sampling
    top_k = drawing.MOST if sampling.top_k is None else sampling.top_k
    return {"temperature": sampling.temperature, "top_k": top_k, "top_p": sampling.top_p, "uniforms": uniforms}
