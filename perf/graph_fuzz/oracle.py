"""How far a device may be from the interpreter: as far as rounding every operator a little differently moves results.

Stochastic arithmetic (CESTAC): the interpreter runs a model several times, with random errors of some units in the
last place added to what every operator computes in floats. Where the spread of an element is nothing, the device must
have it exactly; integers that rounding decides about may be what any of the runs has.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from litecl.interpreter.graph import Array, Model, Node
from litecl.interpreter.interpreter import Interpreter
from litecl.interpreter.kit import require
from litecl.interpreter.op import Inputs, Op, Run, Specs
from litecl.interpreter.schema import ActivationFunctionType
from litecl.perf.graph_fuzz.graphs import Call

_ULPS = 24.0  # of the sum of magnitudes: what float32 sums of a few thousand terms and polynomials stay below
_MARGIN = 3.0  # of the spread that a few runs show
_FEW, _MANY = 5, 40  # runs: where something differs at all, and where it still does after that
_EPSILON = float(np.finfo(np.float32).eps)

_SUMS = {
    "CONV_2D",
    "DEPTHWISE_CONV_2D",
    "TRANSPOSE_CONV",
    "Convolution2DTransposeBias",
    "FULLY_CONNECTED",
    "BATCH_MATMUL",
    "SUM",
    "MEAN",
    "CUMSUM",
    "AVERAGE_POOL_2D",
    "ADD_N",
    "RESIZE_BILINEAR",
    "ADD",
    "SUB",
}
"""Operators whose error is relative to the sum of their terms' magnitudes."""

_EXACT = {
    "ABS",
    "NEG",
    "RELU",
    "RELU6",
    "RELU_0_TO_1",
    "RELU_N1_TO_1",
    "MAXIMUM",
    "MINIMUM",
    "MAX_POOL_2D",
    "REDUCE_MAX",
    "REDUCE_MIN",
    "RESHAPE",
    "SQUEEZE",
    "EXPAND_DIMS",
    "TRANSPOSE",
    "REVERSE_V2",
    "TILE",
    "BROADCAST_TO",
    "PAD",
    "PADV2",
    "MIRROR_PAD",
    "DILATE",
    "SPACE_TO_DEPTH",
    "DEPTH_TO_SPACE",
    "SPACE_TO_BATCH_ND",
    "BATCH_TO_SPACE_ND",
    "SPLIT",
    "SPLIT_V",
    "UNPACK",
    "PACK",
    "CONCATENATION",
    "SLICE",
    "STRIDED_SLICE",
    "DYNAMIC_UPDATE_SLICE",
    "GATHER",
    "GATHER_ND",
    "EMBEDDING_LOOKUP",
    "ONE_HOT",
    "FILL",
    "ZEROS_LIKE",
    "SELECT",
    "SELECT_V2",
    "TOPK_V2",
    "SIGN",
    "FLOOR",
    "CEIL",
    "ROUND",
    "CAST",
    "RESIZE_NEAREST_NEIGHBOR",
}
"""Operators that hand elements on, or round to integers: these have no error of their own."""

_OF_INPUT = {"GELU"}
"""Operators that take the difference of numbers as large as their input."""

_OF_LARGEST = {"LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM", "LOG_SOFTMAX"}
"""Operators whose elements follow from sums that are as large as the largest of them."""

Outputs = list[list[Array]]  # of every call


@dataclass(frozen=True)
class Difference:
    """An output of a call in which the device is not what it may be."""

    call: int
    output: int
    what: str


def run(interpreter: Interpreter, calls: Sequence[Call]) -> Outputs:
    """What a model answers, call after call."""
    interpreter.allocate_tensors()
    model = interpreter.model
    by_entry = {signature.subgraph: signature for signature in model.signatures}
    results = []
    for call in calls:
        if call.reset:
            interpreter.reset_all_variables()
        graph = model.subgraphs[call.entry]
        signature = by_entry.get(call.entry)
        if signature is not None:
            feeds = dict(zip(graph.inputs, call.feeds, strict=True))
            named = {name: feeds[t] for name, t in signature.inputs.items()}
            answers = interpreter.get_signature_runner(signature.key)(**named)
            results.append([answers[f"out{i}"] for i in range(len(graph.outputs))])
            continue
        for tensor, value in zip(graph.inputs, call.feeds, strict=True):
            interpreter.resize_tensor_input(tensor, value.shape)
        interpreter.allocate_tensors()
        for tensor, value in zip(graph.inputs, call.feeds, strict=True):
            interpreter.set_tensor(tensor, value)
        interpreter.invoke()
        results.append([interpreter.get_tensor(t) for t in graph.outputs])
    return results


def differences(model: Model, calls: Sequence[Call], expected: Outputs, got: Outputs) -> list[Difference]:
    """Where the device's answers are not within what rounding allows."""
    if _agree(expected, got, []):
        return []
    rng = np.random.default_rng(len(calls))
    runs: list[Outputs] = []
    for count in (_FEW, _MANY):
        runs += [run(Interpreter(_noisy(model, rng)), calls[: len(expected)]) for _ in range(count - len(runs))]
        found = _differences(expected, got, runs)
        if not found:
            return []
    return found


def _agree(expected: Outputs, got: Outputs, runs: Sequence[Outputs]) -> bool:
    return not _differences(expected, got, runs)


def _differences(expected: Outputs, got: Outputs, runs: Sequence[Outputs]) -> list[Difference]:
    found = []
    for call, (wanted, answers) in enumerate(zip(expected, got, strict=True)):
        for output, (a, b) in enumerate(zip(wanted, answers, strict=True)):
            what = compare(a, b, [r[call][output] for r in runs])
            if what is not None:
                found.append(Difference(call, output, what))
    return found


def compare(expected: Array, got: Array, runs: Sequence[Array]) -> str | None:
    """What is wrong with a tensor, None if nothing is. ``runs``: the same tensor with other roundings."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f"{got.dtype}{list(got.shape)}, expected {expected.dtype}{list(expected.shape)}"
    if any(r.shape != expected.shape for r in runs):
        return None
    if expected.dtype.kind != "f":
        same = got == expected
        low, high = (np.array([expected, *runs]).min(0), np.array([expected, *runs]).max(0)) if runs else (got, got)
        wrong = ~same & ((got < low) | (got > high)) if runs else ~same
    else:
        wide = expected.astype(np.float64)
        others = np.array([wide, *runs])
        steady = np.isfinite(others).all(0)
        with np.errstate(all="ignore"):
            spread = np.abs(others - wide).max(0)
            allowed = _MARGIN * spread + 2 * _EPSILON * np.abs(wide) + 1e-30
            wrong = steady & ~(np.abs(got - wide) <= allowed)
    if not wrong.any():
        return None
    worst = np.flatnonzero(wrong.ravel())
    largest = float(np.abs(got.ravel()[worst].astype(np.float64) - expected.ravel()[worst]).max())
    at = [int(i) for i in np.unravel_index(worst[0], expected.shape)]
    return (
        f"{len(worst)} of {expected.size} {expected.dtype} elements, by up to {largest:.3g}; the first at {at}: "
        f"{got.ravel()[worst[0]]} instead of {expected.ravel()[worst[0]]}"
    )


def _noisy(model: Model, rng: np.random.Generator) -> Model:
    """The model with operators that err by a few units in the last place."""
    graphs = [replace(g, nodes=tuple(_noisy_node(n, rng) for n in g.nodes)) for g in model.subgraphs]
    return replace(model, subgraphs=tuple(graphs))


def _noisy_node(node: Node, rng: np.random.Generator) -> Node:
    if not isinstance(node.op, Op) or node.op.name in _EXACT:
        return node
    op = node.op
    bare = op.bind

    def bind(options: Any, inputs: Specs, outputs: Any) -> Run:
        run = (None if bare is None else bare(options, inputs, outputs)) or op.run
        of_magnitudes = _plain(options)
        absolute = (
            run
            if of_magnitudes is options
            else ((None if bare is None else bare(of_magnitudes, inputs, outputs)) or op.run)
        )
        hybrid = any(s is not None and s.data is not None and s.quantization is not None for s in inputs)
        return _with_errors(op.name, run, absolute, of_magnitudes, rng, hybrid=hybrid)

    return replace(node, op=replace(op, bind=bind))


def _plain(options: Any) -> Any:
    """The options without a fused activation."""
    name = "fused_activation_function"
    if not any(f.name == name for f in fields(options)) or not getattr(options, name):
        return options
    return replace(options, **{name: ActivationFunctionType.NONE})


def _with_errors(
    name: str, run: Run, absolute: Run, plain: Any, rng: np.random.Generator, *, hybrid: bool
) -> Callable[[Any, Inputs], list[Array]]:
    def noisy(options: Any, inputs: Inputs) -> list[Array]:
        with np.errstate(all="ignore"):
            given = [_shaken(x, _EPSILON, rng) for x in inputs] if hybrid else inputs  # it rounds its input
            results = run(options, given)
            if not any(r.dtype == np.float32 for r in results):
                return results
            magnitudes = results
            if name == "SUB":
                a, b = require.arrays(inputs, 2)
                magnitudes = [np.asarray(np.abs(a) + np.abs(b))]
            elif name in _SUMS and not hybrid:
                terms = [np.abs(x) if x is not None and x.dtype == np.float32 else x for x in inputs]
                magnitudes = absolute(plain, terms)
            elif name in _OF_INPUT:
                magnitudes = [*require.arrays(inputs, 1)]
            elif hybrid or name in _OF_LARGEST:
                magnitudes = [np.full_like(r, np.abs(r).max(initial=0)) for r in results]
            return [_moved(r, m, rng) for r, m in zip(results, magnitudes, strict=True)]

    return noisy


def _shaken(x: Array | None, by: float, rng: np.random.Generator) -> Array | None:
    if x is None or x.dtype != np.float32:
        return x
    return np.asarray(x * (1 + rng.uniform(-by, by, x.shape)), np.float32)


def _moved(result: Array, magnitude: Array, rng: np.random.Generator) -> Array:
    if result.dtype != np.float32:
        return result
    errors = rng.uniform(-1, 1, result.shape) * (_ULPS * _EPSILON) * np.maximum(np.abs(result), np.abs(magnitude))
    return np.asarray(result + errors, np.float32)
