"""The tolerance of a device: how far slightly different rounding in every operator moves results.

Stochastic arithmetic (CESTAC): the interpreter runs a model several times, with random errors of some units in the
last place added to what every operator computes in floats. Where an element has no spread, as
integers that do not depend on floats, the device must match it exactly.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, replace
from typing import Any
from unittest import mock

import numpy as np

from litecl.comparison import distances
from litecl.interpreter.arithmetic import hybrid
from litecl.interpreter.graph import Array, Model, Node, TensorSpec
from litecl.interpreter.interpreter import Interpreter
from litecl.interpreter.kit import activation, require
from litecl.interpreter.op import Inputs, Op, Run, Specs
from litecl.interpreter.schema import ActivationFunctionType, TensorType
from litecl.random_graphs.graphs import Call
from tools.graph_fuzz.rounding import EXACT, IN_FLOATS, OF_SUMS, SUMS

_ULPS = 24.0  # of the sum of magnitudes: what float32 sums of a few thousand terms and polynomials stay below
_MARGIN = 3.0  # of the spread that a few runs show
_FEW = 6  # runs, where something differs at all
MANY, CERTAIN = 120, 1200
"""Runs where something still differs after a few; and where all of these might have missed what decides a rounding."""

_TILE = 4  # rows and columns of results that one transform gives
_CHAOS = 0.05  # of a tensor's elements, off by this share of themselves
_EXPONENTS = np.finfo(np.float32)
_ACTIVATION = "fused_activation_function"
_EPSILON = float(_EXPONENTS.eps)

Outputs = list[list[Array]]  # of every call


@dataclass(frozen=True)
class Difference:
    """An output of a call in which the device is out of tolerance."""

    call: int
    output: int
    what: str


def run(interpreter: Interpreter, calls: Sequence[Call]) -> Outputs:
    """Return a model's answers, call by call."""
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


def differences(
    model: Model, calls: Sequence[Call], expected: Outputs, got: Outputs, most: int = MANY
) -> list[Difference]:
    """Return the outputs in which the device differs by more than rounding allows. most: how many runs to see that."""
    if _agree(expected, got, []):
        return []
    rng = np.random.default_rng(len(calls))
    runs: list[Outputs] = []
    for count in (_FEW, most):
        for number in range(len(runs), count):  # small errors too: they meet what is decided within an ulp
            errors = _Errors(rng, _ULPS * _EPSILON / 2 ** (number % 6), alike=number % 4 == 3, fine=number % 2 == 0)
            runs.append(run(Interpreter(_noisy(model, errors)), calls[: len(expected)]))
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


def _parts(values: Array) -> Array:
    """Return complex numbers as their real and imaginary parts."""
    return np.stack([values.real, values.imag], axis=-1)


def compare(expected: Array, got: Array, runs: Sequence[Array]) -> str | None:
    """Return what is wrong with a tensor, None if nothing is. ``runs``: the same tensor with other roundings."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f"{got.dtype}{list(got.shape)}, expected {expected.dtype}{list(expected.shape)}"
    if any(r.shape != expected.shape for r in runs):
        return None
    if expected.dtype.kind == "c":
        return compare(_parts(expected), _parts(got), [_parts(r) for r in runs])
    apart = distances(got, expected)
    if expected.dtype.kind not in "biuf":  # handles of variables
        return f"{got} instead of {expected}" if apart.any() else None
    wide = expected.astype(np.float64)
    others = np.array([wide, *runs], np.float64)
    with np.errstate(all="ignore"):
        last_bits = 2 * _EPSILON * np.abs(wide) + 1e-30 if expected.dtype.kind == "f" else 0.0
        spread = np.abs(others - wide).max(0)
        allowed = _MARGIN * spread + last_bits
        if expected.dtype.kind == "f" and np.mean(spread > _CHAOS * np.abs(wide)) > _CHAOS:
            return None  # chaos: nothing follows from some runs for others
        wrong = np.isfinite(others).all(0) & ~((apart <= allowed) & np.isfinite(got))
        wrong |= _alike(others) & ~np.isfinite(wide) & ~_alike(np.array([wide, got]))
    if not wrong.any():
        return None
    worst = np.flatnonzero(wrong.ravel())
    largest = float(apart.ravel()[worst].max())
    at = [int(i) for i in np.unravel_index(worst[0], expected.shape)]
    return (
        f"{len(worst)} of {expected.size} {expected.dtype} elements, by up to {largest:.3g}; the first at {at}: "
        f"{got.ravel()[worst[0]]} instead of {expected.ravel()[worst[0]]}"
    )


def _alike(values: Array) -> Array:
    """Return where all are infinite with the same sign, or all are no number, or neither."""
    signs = np.where(np.isnan(values), 2.0, np.where(np.isinf(values), values, 0.0))
    return np.asarray((signs == signs[0]).all(0))


@dataclass(frozen=True)
class _Errors:
    """Sources of errors, and how large they are at most, relative to a magnitude.

    alike: all elements of a tensor are off by the same share, as equal ones are on a device. fine: elements of hybrid
    products are off by shares of themselves, as sums of integers are exact; else of the largest, for a bias may cancel.
    """

    rng: np.random.Generator
    most: float
    alike: bool = False
    fine: bool = False

    def of(self, values: Array, magnitude: Array | None = None, share: float = 1.0) -> Array:
        """Return floats with errors, 0 where they cancel but for these; other elements as they are."""
        if values.dtype != np.float32:
            return values
        size = np.abs(values) if magnitude is None else np.maximum(np.abs(values), np.abs(magnitude))
        by = self.rng.uniform(-1, 1, () if self.alike else values.shape)
        error = by * (self.most * share) * size
        noisy = values + np.where(np.isfinite(error), error, 0)
        return np.asarray(np.where(np.abs(noisy) < _EPSILON / 2 * size, 0, noisy), np.float32)


def _noisy(model: Model, errors: _Errors) -> Model:
    """Return the model with operators that err by a few units in the last place."""
    graphs = [replace(g, nodes=tuple(_noisy_node(n, errors) for n in g.nodes)) for g in model.subgraphs]
    return replace(model, subgraphs=tuple(graphs))


def _noisy_node(node: Node, errors: _Errors) -> Node:
    if not isinstance(node.op, Op) or (node.op.name in EXACT and not _applies_tanh(node)):
        return node
    op = node.op

    def bind(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
        def bound(options: Any) -> Run:
            return (None if op.bind is None else op.bind(options, inputs, outputs)) or op.run

        plain = _plain(options)
        is_hybrid = any(s is not None and s.data is not None and s.quantization is not None for s in inputs)
        if plain is options or outputs[0].type != TensorType.FLOAT32 or op.name in OF_SUMS:
            return _with_errors(op.name, bound(options), lambda x: bound(plain)(plain, x), errors, is_hybrid=is_hybrid)
        sums = bound(plain)
        erring = _with_errors(op.name, sums, lambda x: sums(plain, x), errors, is_hybrid=is_hybrid)
        return _activated(options.fused_activation_function, lambda x: erring(plain, x), errors)

    return replace(node, op=replace(op, bind=bind))


def _applies_tanh(node: Node) -> bool:
    """Return whether a function that errs is applied to what an operator computes."""
    return getattr(node.options, _ACTIVATION, None) == ActivationFunctionType.TANH


def _plain(options: Any) -> Any:
    """Return the options without a fused activation."""
    if not any(f.name == _ACTIVATION for f in fields(options)) or not getattr(options, _ACTIVATION):
        return options
    return replace(options, **{_ACTIVATION: ActivationFunctionType.NONE})


def _activated(function: ActivationFunctionType, run: Callable[[Inputs], list[Array]], errors: _Errors) -> Run:
    """Return the activation of what errs: bounds are exact, and so are the largest elements that reach them."""

    def activated(options: Any, inputs: Inputs) -> list[Array]:
        results = [activation.apply(function, r) for r in run(inputs)]
        return [errors.of(r) for r in results] if function == ActivationFunctionType.TANH else results

    return activated


def _with_errors(
    name: str, run: Run, plain: Callable[[Inputs], list[Array]], errors: _Errors, *, is_hybrid: bool
) -> Run:
    # Of errors in operands: hybrid products round these, recurrent ones what they compute themselves as well.
    share = 1.0 if name in OF_SUMS else 1 / _ULPS if is_hybrid else 0.0

    def noisy(options: Any, inputs: Inputs) -> list[Array]:
        with np.errstate(all="ignore"), _erring_rows(name, errors) if is_hybrid else nullcontext():
            results = run(options, [x if x is None else errors.of(x, share=share) for x in inputs] if share else inputs)
            if not any(r.dtype == np.float32 for r in results):
                return results
            if name == "REDUCE_PROD" and results[0].size:
                results = [_in_any_order(inputs, results[0], errors.rng)]
            if is_hybrid and errors.fine and name not in OF_SUMS | IN_FLOATS:
                return [errors.of(r) for r in results]
            magnitudes = _magnitudes(name, inputs, results, plain, is_hybrid=is_hybrid)
            return [errors.of(r, m) for r, m in zip(results, magnitudes, strict=True)]

    return noisy


@contextmanager
def _erring_rows(name: str, errors: _Errors) -> Iterator[None]:
    """Let rows that a hybrid product rounds to integers err after their range is known, as the quotient does: that
    decides where the range puts an element half-way between two integers. A state is rounded in every time step, and
    is off by errors relative to 1.
    """

    def erring(rounded: Callable[..., Any]) -> Callable[..., Any]:
        if name in OF_SUMS:
            return lambda x, *bounds: rounded(errors.of(x, np.ones_like(x)), *bounds)
        return lambda x, *bounds: rounded(errors.of(x, share=2 / _ULPS), *bounds)

    quantizers: dict[str, Any] = {
        function: erring(getattr(hybrid, function)) for function in ("_symmetric", "_asymmetric")
    }
    with mock.patch.multiple(hybrid, **quantizers):
        yield


def _in_any_order(inputs: Inputs, product: Array, rng: np.random.Generator) -> Array:
    """Return a product, anything where that of some of its factors leaves the range of floats, as the order decides."""
    x, axes = require.arrays(inputs, 2)
    exponents = np.log2(np.abs(x, dtype=np.float64), where=x != 0, out=np.zeros(x.shape))
    reduced = tuple({int(axis) % x.ndim for axis in np.ravel(axes)}) if x.ndim else ()
    over, under = (f(exponents, 0).sum(reduced).reshape(product.shape) for f in (np.maximum, np.minimum))
    anything = rng.choice(np.array([np.nan, np.inf, -np.inf, 0], np.float32), product.shape)
    return np.where((over > _EXPONENTS.maxexp) | (under < _EXPONENTS.minexp), anything, product)


def _size(x: Array) -> Array:
    """Return magnitudes; 0 for what is infinite or no number, as is all that it is a part of."""
    return np.nan_to_num(np.abs(x), nan=0, posinf=0)


def _magnitude(x: Array) -> Array:
    return _size(x if x.dtype == np.float32 else x.clip(-127)) if x.dtype in (np.float32, np.int8) else x


def _nearby(magnitude: Array) -> Array:
    """Return the largest magnitude around every pixel: Winograd's transforms add up pixels of a tile that cancel."""
    around = ((0, 0), (_TILE - 1, _TILE - 1), (_TILE - 1, _TILE - 1), (0, 0))
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(magnitude, around), (2 * _TILE - 1,) * 2, (1, 2))
    return np.asarray(windows.max((-1, -2)))


def _magnitudes(
    name: str, inputs: Inputs, results: list[Array], plain: Callable[[Inputs], list[Array]], *, is_hybrid: bool
) -> list[Array]:
    """Return the magnitudes that errors of results are relative to."""
    if name in OF_SUMS:
        return [np.full_like(r, _size(r).max(initial=1.0)) for r in results]
    if is_hybrid and name in IN_FLOATS:
        return plain([None if x is None else _magnitude(x) for x in inputs])
    if is_hybrid:
        return [np.full_like(r, _size(r).max(initial=0.0)) for r in results]
    if name == "SUB":
        a, b = require.arrays(inputs, 2)
        return [np.asarray(_size(a) + _size(b))]
    if name == "CONV_2D":
        return [_nearby(m) for m in plain([None if x is None else _magnitude(x) for x in inputs])]
    if name in SUMS:
        return plain([_size(x) if x is not None and x.dtype == np.float32 else x for x in inputs])
    # GELU takes the difference of numbers as large as its input.
    return [*require.arrays(inputs, 1)] if name == "GELU" else results
