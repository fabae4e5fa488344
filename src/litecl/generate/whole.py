"""Builds a model that runs a whole generation: a WHILE around a decode signature's nodes that also picks each token.

Shares the file's constants without copying.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Self

import numpy as np

from litecl.generate import drawing
from litecl.generate.builder import Builder
from litecl.generate.feeding import hidden
from litecl.generate.signatures import Entry, Role, Step, lookups
from litecl.interpreter import Interpreter
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Model, Node, Signature, Subgraph, TensorSpec, reached
from litecl.interpreter.ops.arg_max import ARG_MAX, ArgMaxOptions
from litecl.interpreter.ops.binary import (
    ADD,
    FLOOR_MOD,
    LOGICAL_AND,
    LOGICAL_OR,
    MUL,
    SUB,
    AddOptions,
    MulOptions,
    SubOptions,
)
from litecl.interpreter.ops.cast import CAST, CastOptions
from litecl.interpreter.ops.compare import EQUAL, GREATER_EQUAL, LESS, LESS_EQUAL
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.control import WHILE, WhileOptions
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.reduce import REDUCE_ANY, SUM, ReducerOptions
from litecl.interpreter.ops.select import SELECT_V2
from litecl.interpreter.ops.unary import LOGICAL_NOT
from litecl.interpreter.schema import TensorType

KEY = "generate"
STOPS = 8
"""The number of tokens that may end a text; unused entries are -1."""

_INT, _BOOL = TensorType.INT32, TensorType.BOOL


@dataclass(frozen=True)
class Lookup:
    """A model that computes an input of decode, and its signature for one token."""

    model: Model
    step: Step

    @classmethod
    def of(cls, embedder: Interpreter) -> Self:
        """Return an embedder's lookup for one token."""
        return cls(embedder.model, lookups(embedder)[-1].with_sizes(1, 0))


def looped(
    model: Model,
    decode: Step,
    lookups: Mapping[str, Lookup],
    length: int,
    window: int | None,
    *,
    draws: bool = False,
    keep: bool = False,
) -> Model:
    """Return a model with the signature "generate": decode steps until there are enough or one picks a stop token.

    decode: with all sizes set. lookups: by the input that each computes. length: the most tokens. window: see
    ``feeding.values``. draws: draw tokens, with the inputs of ``drawing.INPUTS``; else take the most likely ones. keep:
    keep the model's own signatures.

    Its inputs are ``count``, the most steps; ``position`` and ``token`` of the first token to read; ``stops``,
    ``STOPS`` tokens; and the caches. Its outputs are ``steps``, the number of steps; ``text``, the chosen tokens;
    ``finite``, whether all logits were finite; the caches; and where tokens are drawn ``certain``, whether the last one
    is, at which the loop ends if it isn't.

    Raises ModelError for inputs that neither the loop nor a lookup computes, and for a lookup that runs subgraphs.
    """
    signature = next(each for each in model.signatures if each.key == decode.key)
    step = model.subgraphs[signature.subgraph]
    body = _Body(step, signature, decode, lookups, length, window, draws)
    needed = {*range(len(model.subgraphs))} if keep else {*reached(model, step.nodes)} - {signature.subgraph}
    graphs = [graph if i in needed else Subgraph((), (), (), ()) for i, graph in enumerate(model.subgraphs)]
    condition = len(graphs)
    main = _main(body.state, WhileOptions(condition, condition + 1))
    graphs += [_condition(body.state), body.built()]
    index = 0 if 0 not in needed else len(graphs)
    graphs[index : index + 1] = [main]
    given = dict(zip([name for name in body.state if name not in _INITIAL], main.inputs, strict=True))
    results = dict(zip(body.state, main.outputs, strict=True))
    outputs = {name: tensor for name, tensor in results.items() if name not in _UNREAD}
    own = model.signatures if keep else ()
    return Model(tuple(graphs), (*own, Signature(KEY, given, outputs, index)))


_INITIAL = ("steps", "done", "finite", "certain", "text")  # these always start with the same values
_UNREAD = ("count", "position", "token", "done", "stops", *drawing.INPUTS)


class _Body:
    """The loop's body: reads a token and chooses the next."""

    def __init__(
        self,
        graph: Subgraph,
        signature: Signature,
        decode: Step,
        lookups: Mapping[str, Lookup],
        length: int,
        window: int | None,
        draws: bool,
    ) -> None:
        self._draws = draws
        self._graph, self._signature, self._decode = graph, signature, decode
        self._lookups, self._window = lookups, window
        scalar, flag = TensorSpec(_INT, (), "scalar"), TensorSpec(_BOOL, (), "flag")
        self.state: dict[str, TensorSpec] = {
            **dict.fromkeys(("steps", "count", "position", "token"), scalar),
            **dict.fromkeys(("done", "finite"), flag),
            "stops": TensorSpec(_INT, (STOPS,), "stops"),
            "text": TensorSpec(_INT, (length,), "text"),
            **({"certain": flag, **drawing.inputs(length)} if draws else {}),
            **{
                entry.name: replace(graph.tensors[signature.inputs[entry.name]], shape=entry.shape)
                for entry in decode.of(Role.CACHE)
            },
        }

    def built(self) -> Subgraph:
        g = Builder()
        x = {name: g.input(replace(spec, name=name)) for name, spec in self.state.items()}
        given = {entry.name: self._value(g, entry, x) for entry in self._decode.inputs}
        at = g.inlined(self._graph, {self._signature.inputs[name]: tensor for name, tensor in given.items()})
        outputs = {name: at(tensor) for name, tensor in self._signature.outputs.items()}
        logits = g.reshaped(outputs[str(self._decode.logits)], (1, -1))
        token, certain = drawing.token(g, logits, x) if self._draws else (self._most_likely(g, logits), None)
        one = g.const(1)
        following = {
            "steps": g.op(ADD, [x["steps"], one], AddOptions()),
            "position": g.op(ADD, [x["position"], one], AddOptions()),
            "token": token,
            "done": g.op(REDUCE_ANY, [g.op(EQUAL, [x["stops"], token]), g.const([0])], ReducerOptions()),
            "finite": g.op(LOGICAL_AND, [x["finite"], self._finite(g, logits)]),
            "text": g.op(DYNAMIC_UPDATE_SLICE, [x["text"], g.reshaped(token, (1,)), g.reshaped(x["steps"], (1,))]),
        }
        if certain is not None:
            done = g.op(LOGICAL_OR, [following["done"], g.op(LOGICAL_NOT, [certain])])
            following |= {"certain": certain, "done": done}
        return g.built([following.get(name, outputs.get(name, x[name])) for name in self.state], "generate_step")

    def _most_likely(self, g: Builder, logits: int) -> int:
        return g.reshaped(g.op(ARG_MAX, [logits, g.const(1)], ArgMaxOptions(_INT)), ())

    def _finite(self, g: Builder, logits: int) -> int:
        """Return whether all logits are finite: only then do their products with 0 sum to 0."""
        dtype = g.tensors[logits].dtype
        zeros = g.op(MUL, [logits, g.const(0, dtype)], MulOptions())
        total = g.op(SUM, [zeros, g.const([0, 1])], ReducerOptions())
        return g.op(EQUAL, [total, g.const(0, dtype)])

    def _value(self, g: Builder, entry: Entry, x: Mapping[str, int]) -> int:
        """Return an input's value, as ``feeding.values`` computes it."""
        if entry.role is Role.CACHE:
            return x[entry.name]
        if entry.role is Role.TOKENS:
            return self._shaped(g, x["token"], entry)
        if entry.role is Role.POSITIONS:
            return self._shaped(g, x["position"], entry)
        if entry.role is Role.EMBEDDINGS:
            return self._embedded(g, entry, x["token"])
        if entry.role is Role.RANGE:
            end = g.op(ADD, [x["position"], g.const(1)], AddOptions())
            start, end = g.reshaped(x["position"], (1,)), g.reshaped(end, (1,))
            rest = g.const(np.zeros(int(np.prod(entry.shape)) - 3))
            return self._shaped(g, g.op(CONCATENATION, [start, end, end, rest], ConcatenationOptions()), entry)
        return self._mask(g, entry, x["position"])

    def _shaped(self, g: Builder, value: int, entry: Entry) -> int:
        type_ = TensorType.of(entry.dtype)
        if type_ is not _INT:
            value = g.op(CAST, [value], CastOptions(_INT, type_))
        return g.reshaped(value, entry.shape)

    def _mask(self, g: Builder, entry: Entry, position: int) -> int:
        slots = g.const(np.arange(entry.shape[-1]).reshape((1,) * (len(entry.shape) - 1) + (-1,)))
        if entry.role is Role.MASK:
            seen = g.op(LESS_EQUAL, [slots, position])
        else:
            if self._window is None:
                raise ModelError(f"input {entry.name!r}: the file does not say how many tokens are seen")
            before = g.op(SUB, [position, slots], SubOptions())
            age = g.op(FLOOR_MOD, [before, g.const(entry.shape[-1])])  # of each slot's token
            held = g.op(GREATER_EQUAL, [g.op(SUB, [position, age], SubOptions()), g.const(0)])
            seen = g.op(LOGICAL_AND, [held, g.op(LESS, [age, g.const(self._window)])])
        if entry.dtype == np.bool_:
            return seen
        return g.op(SELECT_V2, [seen, g.const(0, entry.dtype), g.const(hidden(entry.dtype), entry.dtype)])

    def _embedded(self, g: Builder, entry: Entry, token: int) -> int:
        if entry.name not in self._lookups:
            raise ModelError(f"input {entry.name!r}: expected an embedder that computes it, got none")
        lookup = self._lookups[entry.name]
        signature = next(each for each in lookup.model.signatures if each.key == lookup.step.key)
        graph = lookup.model.subgraphs[signature.subgraph]
        if reached(lookup.model, graph.nodes):
            raise ModelError(f"the embedder of {entry.name!r} runs subgraphs, which cannot be part of a loop")
        (tokens,) = lookup.step.inputs
        at = g.inlined(graph, {signature.inputs[tokens.name]: self._shaped(g, token, tokens)})
        name = entry.name if entry.name in signature.outputs else next(iter(signature.outputs))
        return g.reshaped(at(signature.outputs[name]), entry.shape)


def _condition(state: Mapping[str, TensorSpec]) -> Subgraph:
    g = Builder()
    x = {name: g.input(replace(spec, name=name)) for name, spec in state.items()}
    goes_on = g.op(LOGICAL_AND, [g.op(LESS, [x["steps"], x["count"]]), g.op(LOGICAL_NOT, [x["done"]])])
    return g.built([goes_on], "generate_goes_on")


def _main(state: Mapping[str, TensorSpec], options: WhileOptions) -> Subgraph:
    """Return a subgraph that runs the loop from the caller's initial values."""
    g = Builder()
    first = {"steps": 0, "done": False, "finite": True, "certain": True, "text": np.zeros(state["text"].static_shape)}
    x = [
        g.const(first[name], spec.dtype) if name in _INITIAL else g.input(replace(spec, name=name))
        for name, spec in state.items()
    ]
    results = [g.add(replace(spec, name=f"{name}_out", data=None)) for name, spec in state.items()]
    g.nodes.append(Node(WHILE, tuple(x), tuple(results), options))
    return g.built(results, KEY)
