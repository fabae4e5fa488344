"""A language model's signatures, with the roles of inputs by the exporters' names."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

import numpy as np

from litecl.interpreter import Interpreter
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Shape

_PREFILL = re.compile(r"prefill(_\d+)?")
_DECODE = "decode"


class Role(Enum):
    """The role of a signature's input."""

    TOKENS = "numbers of tokens"
    EMBEDDINGS = "embeddings of tokens"
    POSITIONS = "positions"
    MASK = "which slots of the caches each token sees"
    LOCAL_MASK = "the same for caches that keep the latest tokens alone"
    RANGE = "start, end and used length of the caches"
    CACHE = "keys or values, which go in and come out"


_ROLES = {
    "tokens": Role.TOKENS,
    "token_ids": Role.TOKENS,
    "embeddings": Role.EMBEDDINGS,
    "per_layer_embeddings": Role.EMBEDDINGS,
    "input_pos": Role.POSITIONS,
    "positions": Role.POSITIONS,
    "mask": Role.MASK,
    "attn_mask": Role.MASK,
    "local_mask": Role.LOCAL_MASK,
    "param_tensor": Role.RANGE,
}


@dataclass(frozen=True)
class Entry:
    """An input or output of a signature. shape: -1 for open dimensions."""

    name: str
    role: Role | None
    shape: Shape
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class Step:
    """A signature that takes the next ``width`` tokens, or any number if that is 0.

    logits: the name of the logits output; None if a prefill has none.
    """

    key: str
    width: int
    inputs: tuple[Entry, ...]
    outputs: tuple[Entry, ...]
    logits: str | None

    def of(self, role: Role) -> list[Entry]:
        """Return the inputs of a role."""
        return [entry for entry in self.inputs if entry.role is role]

    def with_sizes(self, width: int, slots: int) -> "Step":
        """Return the step with open dimensions set: ``width`` tokens and ``slots`` cache slots."""
        sized = [replace(entry, shape=_sized(entry, width, slots)) for entry in self.inputs]
        return replace(self, width=width, inputs=tuple(sized))


def steps(interpreter: Interpreter) -> tuple[list[Step], Step]:
    """Return a model's prefill steps, widest first, and its decode step.

    Raises ModelError for a model without a signature "decode", for inputs of unknown names, and for a prefill whose
    caches differ from decode's.
    """
    keys = interpreter.get_signature_list()
    if _DECODE not in keys:
        raise ModelError(f"expected a language model with the signatures prefill_N and decode, got {sorted(keys)}")
    decode = _step(interpreter, _DECODE)
    if decode.logits is None or decode.width not in (0, 1):
        raise ModelError(
            f"signature 'decode': expected an output 'logits' for one token, got {_listed(decode.outputs)}"
        )
    prefills = [_step(interpreter, key) for key in keys if _PREFILL.fullmatch(key)]
    for prefill in prefills:
        _require_same_caches(prefill, decode)
    return sorted(prefills, key=lambda step: -step.width), replace(decode, width=1)


def lookups(interpreter: Interpreter) -> list[Step]:
    """Return an embedder's signatures that take only tokens, widest first. Raises ModelError if there are none."""
    known = []
    for key in interpreter.get_signature_list():
        inputs, outputs = _entries(interpreter, key)
        if [entry.role for entry in inputs] == [Role.TOKENS]:
            known.append(Step(key, _width(key, inputs), inputs, outputs, None))
    if not known:
        raise ModelError(
            f"expected an embedder of tokens, got the signatures {sorted(interpreter.get_signature_list())}"
        )
    return sorted(known, key=lambda step: -step.width)


def _step(interpreter: Interpreter, key: str) -> Step:
    inputs, outputs = _entries(interpreter, key)
    given = {entry.name: entry for entry in outputs}
    inputs = tuple(
        replace(entry, role=Role.CACHE) if entry.role is None and entry.name in given else entry for entry in inputs
    )
    if unknown := [entry.name for entry in inputs if entry.role is None]:
        raise ModelError(f"signature {key!r}: inputs {unknown} are none of {sorted(_ROLES)}, and no outputs either")
    for entry in inputs:
        if entry.role is Role.CACHE and (entry.shape, entry.dtype) != (
            given[entry.name].shape,
            given[entry.name].dtype,
        ):
            got = given[entry.name]
            raise ModelError(
                f"signature {key!r}: {entry.name!r} goes in as {entry.dtype}{[*entry.shape]} and comes out as "
                f"{got.dtype}{[*got.shape]}"
            )
    return Step(key, _width(key, inputs), inputs, outputs, "logits" if "logits" in given else None)


def _entries(interpreter: Interpreter, key: str) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    runner = interpreter.get_signature_runner(key)
    details = runner.get_input_details(), runner.get_output_details()
    inputs, outputs = (tuple(_entry(name, each) for name, each in tensors.items()) for tensors in details)
    return inputs, outputs


def _entry(name: str, details: Mapping[str, Any]) -> Entry:
    fixed, signature = (tuple(int(n) for n in details[key]) for key in ("shape", "shape_signature"))
    return Entry(name, _ROLES.get(name), signature or fixed, np.dtype(details["dtype"]))


def _width(key: str, inputs: Sequence[Entry]) -> int:
    """Return how many tokens a signature takes, judging by its positions or else its tokens."""
    for role in (Role.POSITIONS, Role.TOKENS):
        for entry in inputs:
            if entry.role is role:
                if math.prod(entry.shape[:-1]) != 1:
                    raise ModelError(
                        f"signature {key!r}: {entry.name!r}: expected a batch of one, got shape {[*entry.shape]}"
                    )
                return max(entry.shape[-1], 0)
    raise ModelError(f"signature {key!r}: expected tokens or positions among the inputs, got {_listed(inputs)}")


def _sized(entry: Entry, width: int, slots: int) -> Shape:
    """Return an input's shape with open dimensions set. A mask's last dimension and those of caches are slots."""
    shape = list(entry.shape)
    if entry.role is Role.CACHE:
        return tuple(slots if n == -1 else n for n in shape)
    if entry.role in (Role.MASK, Role.LOCAL_MASK) and shape[-1] == -1:
        shape[-1] = slots
    return tuple(width if n == -1 else n for n in shape)


def _require_same_caches(prefill: Step, decode: Step) -> None:
    ours, theirs = ({e.name: (e.shape, e.dtype) for e in step.of(Role.CACHE)} for step in (prefill, decode))
    if ours != theirs:
        differing = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
        raise ModelError(
            f"signatures {prefill.key!r} and 'decode': expected the same caches, got others in {differing}"
        )


def _listed(entries: Sequence[Entry]) -> list[str]:
    return [f"{entry.name} {entry.dtype}{[*entry.shape]}" for entry in entries]
