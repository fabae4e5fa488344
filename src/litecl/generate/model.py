"""A language model on a device, which runs its steps on the caches of any session."""

import math
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from weakref import WeakSet

import numpy as np

from litecl.generate import feeding, saved
from litecl.generate.embedder import Embedder
from litecl.generate.loop import Asked, Loop
from litecl.generate.runners import Caches, InterpreterRunner, Runner
from litecl.generate.signatures import Entry, Role, Step, lookups, steps
from litecl.generate.whole import Lookup
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError, ModelError
from litecl.interpreter.graph import CONTEXT_LENGTH, Array, Model, Shape

_OPEN_SLOTS = 1024  # cache length if a file leaves it open
_STEP_COST = 8  # of any step beside its tokens, in tokens: 5 for 512 wide layers on a processor, 22 for 64 wide ones
_SHORT_S = 1e-4  # steps up to this gain from a loop: the host takes a third of them, or more
_LOAD_S = 2e-2  # what a loop's loading takes, about
_TURN_S, _IDLE_S = 2e-2, 1e-3  # of a session among others; time after which one that runs no step is passed by
_OPEN_WIDTHS = (128, 32, 8)  # widths for a prefill that takes any number of tokens: each is compiled once


class LanguageModel:
    """The prefill and decode signatures of a file, and those of its embedders.

    interpreter: of the file. embedders: by the input that each computes. context_length: how many tokens the caches
    hold; None: as the file says. sliding_window: see ``feeding.values``.
    run: creates an interpreter's runner; benchmarks pass another runtime's. interpret: loads the model of a whole
    generation.

    may_drop: whether the last tokens may be dropped from caches: ring buffers have lost what these replaced.

    Any number of sessions may run it, in any threads, one at a time. Raises ModelError for a file that is not a
    language model.
    """

    def __init__(
        self,
        interpreter: Interpreter,
        embedders: Mapping[str, Interpreter],
        context_length: int | None = None,
        sliding_window: int | None = None,
        run: Callable[[Interpreter], Runner] = InterpreterRunner,
        interpret: Callable[[Model], Interpreter] = Interpreter,
    ) -> None:
        prefills, decode = steps(interpreter)
        self.context_length = length_of(decode, context_length, interpreter.model)
        self.fingerprint = saved.fingerprint([each.model for each in (interpreter, *embedders.values())])
        self._window = sliding_window
        widths = [(step, width) for step in prefills for width in ([step.width] if step.width else _OPEN_WIDTHS)]
        sized = [step.with_sizes(width, self.context_length) for step, width in widths if width <= self.context_length]
        self._prefills = sorted(sized, key=lambda step: -step.width)
        self._decode = decode.with_sizes(1, self.context_length)
        self.vocabulary = next(entry.shape[-1] for entry in decode.outputs if entry.name == decode.logits)
        self._slots = next((each.shape[-1] for each in self._decode.of(Role.MASK)), _declared(interpreter.model) or 0)
        self.may_drop = self._may_pad = _keep_all(self._decode, self._slots)
        self._runner = run(interpreter)
        self._embedders = {name: Embedder(name, run(given), lookups(given)) for name, given in embedders.items()}
        tables = {name: Lookup.of(given) for name, given in embedders.items()}
        length = self.context_length
        self._looped = partial(Loop, interpret, interpreter.model, self._decode, tables, length, sliding_window)
        self._loops: dict[bool, Loop] = {}  # by whether tokens are drawn
        self._is_looped: dict[bool, bool] = {}  # whether the device runs all of one
        self._stepped_s, self._step_s = 0.0, math.inf  # of all decode steps, and of the shortest
        wanted = {entry.name for entry in self._decode.of(Role.EMBEDDINGS)}
        if absent := sorted(wanted - {*embedders}):
            raise ModelError(f"the model takes {absent}, which an embedder computes: expected one, got none")
        self.renew_lock()
        self._turn = _Turn()
        _models.add(self)

    def renew_lock(self) -> None:
        """Let go of a thread that runs the model: it does not exist in a forked child."""
        self._lock = threading.Lock()

    def caches(self) -> Caches:
        """Return empty caches."""
        return self._runner.caches({name: np.zeros(*spec) for name, spec in self.cache_specs.items()})

    @property
    def cache_specs(self) -> dict[str, tuple[Shape, np.dtype[Any]]]:
        """Shape and type of every cache."""
        return {each.name: (each.shape, each.dtype) for each in self._decode.of(Role.CACHE)}

    @property
    def cache_bytes(self) -> int:
        """Bytes of one set of caches."""
        return sum(math.prod(shape) * dtype.itemsize for shape, dtype in self.cache_specs.values())

    @property
    def device_bytes(self) -> int:
        """Bytes of the models on the device."""
        return sum(each.memory_bytes for runner in self._runners for each in runner.delegations)

    def holding(self, values: Mapping[str, Array]) -> Caches:
        """Return caches with the given values."""
        return self._runner.caches(values)

    def values(self, caches: Caches) -> dict[str, Array]:
        """Return copies of the caches' values."""
        with self._lock:
            return self._runner.values(caches)

    def pieces(self, count: int, start: int) -> list[int]:
        """Split a prompt of ``count`` tokens into steps; return each one's number of tokens. 1 is a decode step.

        start: how many tokens came before. The widest steps that the tokens fill come first; where that costs less, the
        last step is wider than its tokens: it reads padding, which no token sees.
        """
        widths = list[int]()
        cost, best, least = 0, widths, math.inf
        while count:
            exact = next((step.width for step in self._prefills if step.width <= count), 1)
            wider = min((step.width for step in self._prefills if step.width >= count), default=0)
            pads = wider and count > 1 and self._may_pad and start + wider <= self._slots
            if pads and cost + wider + _STEP_COST <= least:
                best, least = [*widths, count], cost + wider + _STEP_COST
            widths.append(exact)
            cost, count, start = cost + exact + _STEP_COST, count - exact, start + exact
        return widths if cost < least else best

    def run(self, tokens: Sequence[int], start: int, caches: Caches) -> Array | None:
        """Run a step on the next tokens, one of ``pieces``, adding their keys and values to the caches.

        start: how many tokens the caches hold. A decode step returns the next token's logits, of shape [vocabulary].
        """
        step = self._step(len(tokens))
        numbers = np.zeros(step.width, np.int64)
        numbers[: len(tokens)] = tokens
        self._turn.wait(caches, self._lock)
        with self._lock:
            self._turn.take(caches)
            start_s = time.perf_counter()
            given = {entry.name: self._embedders[entry.name](numbers, entry) for entry in step.of(Role.EMBEDDINGS)}
            given |= feeding.values(step, numbers, start, len(tokens), self._window)
            results = self._runner.run(step, given, caches)
            self._turn.take(caches)  # from now on it is idle
            if step is not self._decode or step.logits is None:
                return None
            step_s = time.perf_counter() - start_s
            self._stepped_s, self._step_s = self._stepped_s + step_s, min(self._step_s, step_s)
        return np.array(results[step.logits]).reshape(self.vocabulary)

    def leave(self, caches: Caches) -> None:
        """End the turn of a session that runs no more steps for now."""
        self._turn.leave(caches)

    def prepare_loop(self, draws: bool) -> None:
        """Load the loop that generates in one invoke, if it isn't yet. draws: whether tokens are drawn."""
        with self._lock:
            if draws not in self._loops:
                self._loops[draws] = self._looped(draws)

    def loops(self, draws: bool, logits: Array | None = None) -> bool:
        """Return whether tokens come faster from a loop, a few at a time, of which some may then be dropped.

        draws: whether tokens are drawn. logits: of a step; then the loop is loaded once steps have taken about as long
        as that takes. False for a file that gets none, and for logits that aren't finite, which the loop refuses.
        """
        if draws not in self._is_looped:
            if logits is None or not self.may_drop or self._stepped_s < _LOAD_S or self._step_s > _SHORT_S:
                return False
            try:
                self.prepare_loop(draws)
                self._is_looped[draws] = self._loops[draws].is_on_device and bool(np.isfinite(logits).all())
            except LiteclError:
                self._is_looped[draws] = False
        return self._is_looped[draws]

    def generate(self, asked: Asked, caches: Caches) -> list[int] | None:
        """Generate in one invoke; see ``Loop.run``."""
        self.prepare_loop(asked.draws)
        self._turn.wait(caches, self._lock)
        with self._lock:
            self._turn.take(caches)
            tokens = self._loops[asked.draws].run(asked, caches)
            self._turn.take(caches)
        if tokens is None:
            self._is_looped[asked.draws] = False
        return tokens

    def close(self) -> None:
        """Release the models."""
        with self._lock:
            for runner in self._runners:
                runner.close()

    @property
    def _runners(self) -> list[Runner]:
        loops = [loop.runner for loop in self._loops.values()]
        return [self._runner, *(embedder.runner for embedder in self._embedders.values()), *loops]

    def _step(self, count: int) -> Step:
        if count == 1:
            return self._decode
        return next(step for step in reversed(self._prefills) if step.width >= count)


def _renew_locks() -> None:
    for each in _models:
        each.renew_lock()


_models = WeakSet[LanguageModel]()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


class _Turn:
    """Lets a session run steps for some milliseconds while others wait: to change threads at every step would cost more
    than a short step. It only delays: whoever waits takes the lock at the latest at the end of the turn.
    """

    def __init__(self) -> None:
        self._caches: Caches | None = None  # of the session whose turn it is
        self._thread = 0
        self._begin_s = self._step_s = 0.0

    def wait(self, caches: Caches, lock: threading.Lock) -> None:
        """Wait while another session in another thread has its turn, unless that does nothing meanwhile."""
        thread = threading.get_ident()
        while caches is not self._caches and thread != self._thread:
            now_s = time.monotonic()
            is_idle = not lock.locked() and now_s - self._step_s > _IDLE_S
            if is_idle or now_s - self._begin_s > _TURN_S:
                return
            time.sleep(_IDLE_S)

    def take(self, caches: Caches) -> None:
        """Begin a turn, or go on with it. Call this with the lock held."""
        self._step_s = time.monotonic()
        if caches is not self._caches:
            self._caches, self._begin_s = caches, self._step_s
        self._thread = threading.get_ident()

    def leave(self, caches: Caches) -> None:
        """End the turn of a session."""
        if caches is self._caches:
            self._begin_s = self._step_s = 0.0


def length_of(decode: Step, given: int | None, model: Model) -> int:
    """Return how many tokens to keep in the caches. Raises ModelError if unknown, or if ``given`` doesn't fit."""
    masks: Sequence[Entry] = decode.of(Role.MASK)
    fixed = masks[0].shape[-1] if masks else _declared(model) or -1
    if given is not None and given < 1:
        raise ModelError(f"context_length: expected at least 1, got {given}")
    if fixed > 0:
        if given is not None and given > fixed:
            raise ModelError(f"context_length: the caches of this file hold {fixed} tokens, got {given}")
        return fixed if given is None else given
    if given is None and not masks:
        raise ModelError("the file does not say how many tokens its caches hold: give context_length=")
    return given or _OPEN_SLOTS


def _declared(model: Model) -> int | None:
    """Return how many tokens the caches hold by the file's metadata, None if it doesn't say."""
    value = model.metadata.get(CONTEXT_LENGTH)
    if value is not None and not (value.isdigit() and int(value) > 0):
        raise ModelError(f"metadata {CONTEXT_LENGTH!r}: expected a number of tokens, got {value[:20]!r}")
    return None if value is None else int(value)


def _keep_all(decode: Step, slots: int) -> bool:
    """Return whether every cache has a slot for every token. The mask hides later slots, so padding behind the last
    token changes nothing. Ring buffers and convolution states don't.
    """
    return slots > 0 and all(slots in entry.shape for entry in decode.of(Role.CACHE))


def requires(interpreter: Interpreter) -> list[str]:
    """Return the names of the model inputs that embedders compute."""
    return [entry.name for entry in steps(interpreter)[1].of(Role.EMBEDDINGS)]
