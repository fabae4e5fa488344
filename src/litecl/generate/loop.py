"""Runs a whole generation in one invoke."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from litecl.generate.runners import Caches, InterpreterRunner
from litecl.generate.signatures import Entry, Role, Step
from litecl.generate.whole import KEY, STOPS, Lookup, looped
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Model


class Loop:
    """A model's decode signature as a loop; see ``whole.looped``. interpret: loads a model where the others run."""

    def __init__(
        self,
        interpret: Callable[[Model], Interpreter],
        model: Model,
        decode: Step,
        lookups: Mapping[str, Lookup],
        length: int,
        window: int | None,
    ) -> None:
        numbers = {"count": (), "position": (), "token": (), "stops": (STOPS,)}
        entries = [Entry(name, None, shape, np.dtype(np.int32)) for name, shape in numbers.items()]
        self._step = Step(KEY, 1, (*entries, *decode.of(Role.CACHE)), (), None)
        self.runner = InterpreterRunner(interpret(looped(model, decode, lookups, length, window)))

    def run(self, token: int, position: int, count: int, stops: Sequence[int], caches: Caches) -> list[int] | None:
        """Return what is generated from a token on, at most so many tokens, up to one of ``stops``.

        The caches then hold all but the last. None: a logit was infinite or no number, and the caches are of no use.

        Raises ModelError for more stop tokens than it takes.
        """
        if len(stops) > STOPS:
            raise ModelError(f"whole: expected at most {STOPS} stop tokens, got {len(stops)}")
        ends = np.full(STOPS, -1, np.int32)
        ends[: len(stops)] = stops
        numbers = {"count": count, "position": position, "token": token}
        given = {name: np.array(value, np.int32) for name, value in numbers.items()}
        results = self.runner.run(self._step, given | {"stops": ends}, caches)
        if not results["finite"]:
            return None
        tokens: list[int] = results["text"][: int(results["steps"])].tolist()
        return tokens
