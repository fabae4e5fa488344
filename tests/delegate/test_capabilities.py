"""Every capability of a device operator crossed with every variant of every operator that may meet it.

A variant is an operator with weights and activations of some types, as one kernel runs it. A context is a graph around
it in which the delegate fuses, joins or cuts something, if the record of the kernel says that it may. Results, and in a
second run all inner tensors, are compared with the interpreter's.
"""

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.matmul import product
from litecl.interpreter import Interpreter
from litecl.interpreter.dynamic_range import DynamicRange
from litecl.interpreter.graph import Array, Model
from litecl.interpreter.ops import unary
from litecl.interpreter.ops.l2_normalization import L2_NORMALIZATION, L2NormOptions
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D, L2_POOL_2D, MAX_POOL_2D
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from support import compare, devices
from support.build import model
from support.contexts import CONTEXTS
from support.nets import (
    DOMAINS,
    FLOAT,
    Net,
    Variant,
    add_one,
    conv,
    dense,
    depthwise,
    matmul,
    pool,
    same,
    times,
    transposed,
)

_PRODUCTS: dict[str, Variant] = {
    "1x1": conv(20),
    "1x1 of 32": conv(32),
    "1x1 of 1": conv(1),
    "3x3": conv(20, 3),
    "3x3 of stride 2": conv(7, 3, 2),
    "in groups": conv(6, 3, groups=2),
    "a group a channel": conv(8, 3, groups=8),
    "depthwise": depthwise(1),
    "depthwise with a multiplier": depthwise(2),
    "dense": dense(20),
    "dense of one row": dense(9, one_row=True),
    "matmul": matmul(20),
    "transposed": transposed(20),
}
_MOVES: dict[str, Variant] = {
    "AVERAGE_POOL_2D": pool(AVERAGE_POOL_2D),
    "MAX_POOL_2D": pool(MAX_POOL_2D),
    "ADD": add_one,
    "MUL": times,
    "RELU6": same(unary.RELU6),
}
_FEW = {name: _PRODUCTS[name] for name in ("1x1", "3x3", "in groups", "depthwise", "dense", "transposed")}
_OF_FLOATS: dict[str, Variant] = {
    "L2_POOL_2D": pool(L2_POOL_2D),
    "3x3 by Winograd": lambda g, x: conv(32, 3)(g, conv(32)(g, x)),
    "TANH": same(unary.TANH),
    "EXP": same(unary.EXP),
    "SOFTMAX": same(SOFTMAX, SoftmaxOptions(1.0)),
    "L2_NORMALIZATION": same(L2_NORMALIZATION, L2NormOptions()),
}

_VARIANTS: dict[str, dict[str, Variant]] = {
    "float": _PRODUCTS | _MOVES | _OF_FLOATS,
    "hybrid": _PRODUCTS,
    "int8": _PRODUCTS | _MOVES,
    "uint8": _FEW | _MOVES,
    "int16": _FEW | _MOVES,
}
_DOMAINS = {name: (DOMAINS[name], variants) for name, variants in _VARIANTS.items()}


_OF_FLOATS_ONLY = ("smooth activations after",)


def crossed(name: str, *variants: str) -> tuple[Model, list[str]]:
    """One model with variants in every context, and what each of its outputs is of."""
    domain, known = _DOMAINS[name]
    g, outputs, origins = Net(domain), [], []
    for variant in variants:
        for context, build in CONTEXTS.items():
            if context in _OF_FLOATS_ONLY and domain.type != FLOAT:
                continue
            made = build(g, known[variant])
            outputs += made
            origins += [f"{variant}, {context}"] * len(made)
    return model(g.build(*outputs)), origins


CROSSED = [(name, variant) for name, (_, variants) in _DOMAINS.items() for variant in variants]
each = pytest.mark.parametrize(("name", "variant"), CROSSED, ids=[f"{name}-{variant}" for name, variant in CROSSED])


def _run(model_: Model, delegates: Sequence[CLDelegate], feeds: dict[int, Array], **options: Any) -> Interpreter:
    interpreter = Interpreter(model_, delegates=delegates, **options)
    interpreter.allocate_tensors()
    for tensor, feed in feeds.items():
        interpreter.set_tensor(tensor, feed)
    interpreter.invoke()
    return interpreter


def _check(
    options: dict[str, Any], name: str, *variants: str, preserve: bool = False, tolerance: float | None = None
) -> Interpreter:
    model_, origins = crossed(name, *variants)
    graph, domain = model_.subgraphs[0], _DOMAINS[name][0]
    rng = np.random.default_rng(78)
    fed = (t for t, spec in enumerate(graph.tensors) if t in graph.inputs or spec.is_variable)
    feeds = {t: domain.feed(rng, graph.tensors[t].static_shape) for t in fed}
    for mode in get_args(DynamicRange) if name == "hybrid" else ("reference",):
        delegate = CLDelegate(**{"strict": True, "dynamic_range": mode, **options})
        device, plain = (
            _run(model_, delegates, feeds, experimental_preserve_all_tensors=preserve, dynamic_range=mode)
            for delegates in ([delegate], [])
        )
        _compare(device, plain, model_, origins, preserve, tolerance)
    return device


def _compare(
    device: Interpreter, plain: Interpreter, model_: Model, origins: list[str], preserve: bool, tolerance: float | None
) -> None:
    graph = model_.subgraphs[0]
    assert [(row.op, row.reason) for row in device.delegation_report().nodes if not row.claimed] == []
    compared = dict(zip(graph.outputs, origins, strict=True))
    if preserve:
        compared = {t: f"{node.op.name}, tensor {t}" for node in graph.nodes for t in node.outputs}
    wrong = []
    for tensor, origin in compared.items():
        got, expected = device.get_tensor(tensor), plain.get_tensor(tensor)
        try:
            known = compare.DEVICE.get(expected.dtype.name, 0.0) if tolerance is None else tolerance
            compare.assert_close(got, expected, known)
        except AssertionError as error:
            wrong.append(f"{origin}: {error}")
    assert wrong == []


@each
def test_queued(name: str, variant: str) -> None:
    _check({"num_threads": 1, "queue_loops": True}, name, variant)


@pytest.mark.parametrize("variant", _PRODUCTS)
def test_weights_as_halves(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that halves hold exactly, so that results are those of floats."""
    monkeypatch.setattr(product, "CACHED_WEIGHTS", 0)
    _check({"num_threads": 1, "queue_loops": True, "precision": "fp16"}, "float", variant)


_SOME = {
    "float": ("1x1", "3x3", "depthwise", "dense", "matmul", "transposed", "MAX_POOL_2D", "MUL", "3x3 by Winograd"),
    "hybrid": ("1x1", "3x3", "depthwise", "dense", "matmul", "transposed"),
    "int8": ("3x3", "dense", "ADD"),
}


@pytest.mark.parametrize("name", _SOME)
@pytest.mark.parametrize("queue", [False, True])
def test_several_threads(name: str, queue: bool) -> None:
    """Work-items side by side, in one kernel and in launches of their own."""
    _check({"num_threads": 2, "queue_loops": queue}, name, *_SOME[name])


@pytest.mark.parametrize("name", _SOME)
def test_inner_tensors(name: str) -> None:
    """Nothing is fused or lies within another tensor where all tensors are kept."""
    _check({"num_threads": 1, "queue_loops": True}, name, *_SOME[name], preserve=True)


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "variants"), [("float", _SOME["float"][:4]), ("hybrid", ("3x3", "depthwise"))])
def test_as_on_a_gpu(
    name: str, variants: Sequence[str], monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any
) -> None:
    options = devices.as_on_a_gpu(monkeypatch, tmp_path_factory.getbasetemp() / "capabilities")
    _check(options, name, *variants)
