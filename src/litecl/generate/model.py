"""A language model on a device: its steps, run on the caches of any session."""

import math
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from litecl.compiled_model import CompiledModel
from litecl.environment import Environment
from litecl.generate import feeding
from litecl.generate.signatures import Entry, Role, Step, lookups, steps
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, Shape
from litecl.tensor_buffer import TensorBuffer

Caches = dict[str, TensorBuffer]

_OPEN_SLOTS = 1024  # of caches whose length a file leaves open
_OPEN_WIDTHS = (128, 32, 8)  # of a prefill that takes any number of tokens: each is compiled once


class LanguageModel:
    """The prefill and decode signatures of a file, and those of its embedders.

    interpreters: of the file, and of its embedders by the input that each is for. context_length: how many tokens the
    caches hold; None: as many as the file says. sliding_window: see ``feeding.values``. fingerprint: see ``saved``.

    Any number of sessions may run it, in any threads, one at a time. Raises ModelError for a file that is none.
    """

    def __init__(
        self,
        interpreter: Interpreter,
        embedders: Mapping[str, Interpreter],
        context_length: int | None = None,
        sliding_window: int | None = None,
        fingerprint: str = "",
    ) -> None:
        prefills, decode = steps(interpreter)
        self.context_length = _context_length(decode, context_length)
        self.fingerprint = fingerprint
        self._window = sliding_window
        widths = [(step, width) for step in prefills for width in ([step.width] if step.width else _OPEN_WIDTHS)]
        sized = [step.with_sizes(width, self.context_length) for step, width in widths if width <= self.context_length]
        self._prefills = sorted(sized, key=lambda step: -step.width)
        self._decode = decode.with_sizes(1, self.context_length)
        self._runner = _Runner(interpreter)
        self._embedders = {name: _Embedder(name, given) for name, given in embedders.items()}
        wanted = {entry.name for entry in self._decode.of(Role.EMBEDDINGS)}
        if absent := sorted(wanted - {*embedders}):
            raise ModelError(f"the model takes {absent}, which an embedder computes: expected one, got none")
        self._lock = threading.Lock()

    @property
    def vocabulary(self) -> int:
        """How many tokens there are."""
        return next(entry.shape[-1] for entry in self._decode.outputs if entry.name == self._decode.logits)

    def caches(self) -> Caches:
        """Return caches without a token."""
        return {each.name: TensorBuffer(np.zeros(each.shape, each.dtype)) for each in self._decode.of(Role.CACHE)}

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
        return sum(each.memory_bytes for runner in self._runners for each in runner.interpreter._delegations)

    def copies(self, caches: Caches) -> dict[str, Array]:
        """Return copies of what caches hold."""
        with self._lock:
            return {name: buffer.array.copy() for name, buffer in caches.items()}

    def widths(self, count: int) -> list[int]:
        """Return into what pieces that many tokens are divided to be prefilled: 1 is a step of decode."""
        pieces = []
        for width in [*(step.width for step in self._prefills), 1]:
            pieces += [width] * (count // width)
            count %= width
        return pieces

    def run(self, tokens: Sequence[int], start: int, caches: Caches) -> Array | None:
        """Run a step on the next tokens, as many as one of ``widths``, and put their keys and values into caches.

        start: how many tokens the caches hold. Returns the logits of the token that follows, of shape [vocabulary],
        where the signature computes them, as decode does.
        """
        step = self._step(len(tokens))
        numbers = np.array(tokens, np.int64)
        with self._lock:
            given = {entry.name: self._embedders[entry.name](numbers, entry) for entry in step.of(Role.EMBEDDINGS)}
            given |= feeding.values(step, numbers, start, self._window)
            results = self._runner.run(step, given, caches)
            return None if step.logits is None else np.array(results[step.logits]).reshape(-1, self.vocabulary)[-1]

    def close(self) -> None:
        """Let go of the models."""
        with self._lock:
            for runner in self._runners:
                runner.interpreter.close()

    @property
    def _runners(self) -> "list[_Runner]":
        return [self._runner, *(embedder.runner for embedder in self._embedders.values())]

    def _step(self, width: int) -> Step:
        if width == 1:
            return self._decode
        return next(step for step in self._prefills if step.width == width)


class _Runner:
    """Runs signatures of one file, on inputs that lie where the model reads them."""

    def __init__(self, interpreter: Interpreter) -> None:
        self.interpreter = interpreter
        self._model = CompiledModel(interpreter, Environment.create())
        self._inputs: dict[tuple[str, str], TensorBuffer] = {}
        self._outputs: dict[tuple[str, str], TensorBuffer] = {}

    def run(self, step: Step, given: Mapping[str, Array], caches: Caches) -> dict[str, Array]:
        """Run a signature. The caches are its inputs and outputs of those names; the other outputs are returned, which
        are valid until the next run.
        """
        inputs = caches | {name: self._filled(step, name, value) for name, value in given.items()}
        outputs = {each.name: caches.get(each.name) or self._output(step, each.name) for each in step.outputs}
        self._model.run_by_name(step.key, {each.name: inputs[each.name] for each in step.inputs}, outputs)
        return {name: buffer.array for name, buffer in outputs.items() if name not in caches}

    def _filled(self, step: Step, name: str, value: Array) -> TensorBuffer:
        key = step.key, name
        if key not in self._inputs:
            self._inputs[key] = self._model.create_input_buffer_by_name(*key)
        if self._inputs[key].shape != value.shape:
            return TensorBuffer(value)
        self._inputs[key].array[...] = value
        return self._inputs[key]

    def _output(self, step: Step, name: str) -> TensorBuffer:
        key = step.key, name
        if key not in self._outputs:
            self._outputs[key] = self._model.create_output_buffer_by_name(*key)
        return self._outputs[key]


class _Embedder:
    """Looks tokens up in a table that is a model of its own."""

    def __init__(self, name: str, interpreter: Interpreter) -> None:
        self.runner = _Runner(interpreter)
        self._steps = lookups(interpreter)
        for step in self._steps:
            outputs = [entry.name for entry in step.outputs]
            if name not in outputs and len(outputs) != 1:
                raise ModelError(f"embedder, signature {step.key!r}: expected an output {name!r}, got {outputs}")
        self._name = name

    def __call__(self, tokens: Array, wanted: Entry) -> Array:
        """Return the embeddings of tokens, as an input wants them."""
        rows = []
        for step, part in self._parts(tokens):
            (entry,) = step.with_sizes(len(part), 0).inputs
            results = self.runner.run(step, {entry.name: part.astype(entry.dtype).reshape(entry.shape)}, {})
            name = self._name if self._name in results else next(iter(results))
            rows.append(np.array(results[name]).reshape(len(part), -1))
        found = np.concatenate(rows)
        if found.size != np.prod(wanted.shape) or found.dtype != wanted.dtype:
            raise ModelError(
                f"the embedder computes {found.dtype}{[*found.shape]}, the model takes {wanted.dtype}{[*wanted.shape]}"
            )
        return found.reshape(wanted.shape)

    def _parts(self, tokens: Array) -> list[tuple[Step, Array]]:
        """Divide tokens among the signatures: as few runs as a greedy division finds."""
        parts: list[tuple[Step, Array]] = []
        for step in self._steps:
            width = step.width or len(tokens)
            while width and len(tokens) >= width:
                parts.append((step, tokens[:width]))
                tokens = tokens[width:]
        if len(tokens):
            raise ModelError(f"the embedder has no signature for {len(tokens)} tokens or fewer")
        return parts


def _context_length(decode: Step, given: int | None) -> int:
    """Return how many tokens caches hold. Raises ModelError where nothing says so, or another number is given."""
    masks: Sequence[Entry] = decode.of(Role.MASK)
    fixed = masks[0].shape[-1] if masks else -1
    if given is not None and given < 1:
        raise ModelError(f"context_length: expected at least 1, got {given}")
    if fixed > 0:
        if given is not None and given > fixed:
            raise ModelError(f"context_length: the caches of this file hold {fixed} tokens, got {given}")
        return fixed if given is None else given
    if given is None and not masks:
        raise ModelError("the file does not say how many tokens its caches hold: give context_length=")
    return given or _OPEN_SLOTS


def requires(interpreter: Interpreter) -> list[str]:
    """Return the names of the inputs of a model that embedders compute."""
    return [entry.name for entry in steps(interpreter)[1].of(Role.EMBEDDINGS)]
