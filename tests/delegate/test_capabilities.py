"""Every capability of a device operator crossed with every variant of every operator that may meet it.

A variant is an operator with weights and activations of some types, as one kernel runs it. A context is a graph around
it in which the delegate fuses, joins or cuts something, if the record of the kernel says that it may. Results, and in a
second run all inner tensors, are compared with the interpreter's.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.matmul import product
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array, Model, Quantization, TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops import binary, unary
from litecl.interpreter.ops.l2_normalization import L2_NORMALIZATION, L2NormOptions
from litecl.interpreter.ops.pack import PACK, PackOptions
from litecl.interpreter.ops.pad import PAD
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D, L2_POOL_2D, MAX_POOL_2D
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.ops.split import SPLIT, SplitOptions
from support import compare, devices
from support.build import model
from support.nets import (
    DOMAINS,
    FLOAT,
    IMAGE,
    INT8,
    Domain,
    Net,
    Variant,
    add_one,
    by,
    conv,
    dense,
    depthwise,
    join,
    matmul,
    plus,
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


def activated(*ops: Op) -> Callable[[Net, Variant], list[int]]:
    return lambda g, f: [g.apply(op, [f(g, g.x(IMAGE))]) for op in ops]


def padded(g: Net, f: Variant) -> list[int]:
    """Zeros around the image, once with two readers."""
    amounts = g.const(np.array([(0, 0), (2, 1), (1, 3), (0, 0)], np.int32))
    one, other = (g.apply(PAD, [g.x(IMAGE), amounts]) for _ in range(2))
    return [f(g, one), f(g, other), other]


def swish(g: Net, f: Variant) -> list[int]:
    y = f(g, g.x(IMAGE))
    return [g.apply(binary.MUL, [y, g.apply(unary.LOGISTIC, [y], by_=_sigmoid(g.domain))], binary.MulOptions())]


def _sigmoid(domain: Domain) -> Quantization:
    """The scale that TensorFlow Lite wants of the results of LOGISTIC."""
    bits = 8 * domain.type.dtype.itemsize
    return by(2.0**-15) if bits == 16 else by(2.0**-8, -128 if domain.type == INT8 else 0)


def residual(g: Net, f: Variant) -> list[int]:
    """An addend that is fed, made before, made after, a part of something, the other's own; and what follows it."""
    y = [f(g, g.x(IMAGE)) for _ in range(4)]
    before = g.apply(unary.RELU, [g.x(g.shape(y[0]))])
    sums = [plus(g, y[0], g.x(g.shape(y[0]))), plus(g, before, y[1])]
    after = g.apply(unary.RELU, [g.x(g.shape(y[0]))])
    part = f(g, g.x(IMAGE))
    joined = join(g, part, after)
    return [g.apply(unary.RELU6, sums[:1]), sums[1], plus(g, y[2], after), plus(g, y[3], part), joined]


def chained(g: Net, f: Variant) -> list[int]:
    """Element-wise operators before and after."""
    x = g.apply(binary.MUL, [g.apply(unary.RELU, [g.x(IMAGE)]), half(g)], binary.MulOptions())
    y = f(g, x)
    for _ in range(2):
        y = times(g, add_one(g, y))
    return [g.apply(unary.RELU6, [y])]


def half(g: Net) -> int:
    """A factor that leaves floats exact, so that what is quantized at run time is the same to the last bit."""
    return g.const(np.float32(0.5)) if g.domain.quantization is None else g.known((1,))


def joined(g: Net, f: Variant) -> list[int]:
    """The first of several parts, a later one, of rows and of whole images, read beside, and in something yet wider."""
    y = [f(g, g.x(IMAGE)) for _ in range(8)]
    wide = conv(32)
    same_image = g.x((*g.shape(y[0])[:-1], 32)) if len(g.shape(y[0])) != 4 else wide(g, g.x((*g.shape(y[0])[:3], 8)))
    inner = join(g, y[0], y[1])
    results = [join(g, same_image, y[2], y[0]), join(g, y[3], same_image), join(g, inner, y[4]), times(g, y[4])]
    return [*results, join(g, y[5], y[6], axis=0), join(g, y[7], axis=0)]


def packed(g: Net, f: Variant) -> list[int]:
    y = [f(g, g.x(IMAGE)) for _ in range(4)]
    return [g.apply(PACK, y[:2], PackOptions(2, 0)), g.apply(PACK, y[2:], PackOptions(2, -1))]


def cut(g: Net, f: Variant) -> list[int]:
    """Return what is read is a part of something: images, channels, a box."""
    results = []
    for axis in (0, 3):
        shape = [2 * size if i == axis else size for i, size in enumerate(IMAGE)]
        whole = g.apply(unary.RELU, [g.x(shape)])
        specs = [TensorSpec(g.domain.type, IMAGE)] * 2
        parts = g.node(SPLIT, [g.const(np.int32(axis)), whole], specs, SplitOptions(2))
        results += [f(g, g.quantized(part)) for part in parts]
    begin, size = (g.const(np.array(values, np.int32)) for values in ([1, 0, 0, 0], IMAGE))
    return [*results, f(g, g.apply(SLICE, [g.apply(unary.RELU, [g.x((4, *IMAGE[1:]))]), begin, size]))]


def read_in_rows(g: Net, f: Variant) -> list[int]:
    """Return what is read lies in something wider: the first part, and a later one."""
    results = []
    for order in (1, -1):
        parts = [conv(32)(g, g.x(IMAGE)), conv(8)(g, g.x(IMAGE))][::order]
        results += [join(g, *parts), *(f(g, part) for part in parts)]
    return results


def kept(g: Net, f: Variant) -> list[int]:
    """Results that others would take in, were they not outputs themselves."""
    y = f(g, g.x(IMAGE))
    return [y, g.apply(unary.RELU6, [y]), join(g, y, y), join(g, f(g, g.x(IMAGE)), y)]


def held(g: Net, f: Variant) -> list[int]:
    """Variables as what is read, what is added, and what a chain meets."""
    y = f(g, g.held(IMAGE))
    sum_ = plus(g, f(g, g.x(IMAGE)), g.held(g.shape(y)))
    return [plus(g, times(g, y), g.held(g.shape(y))), sum_, join(g, g.held(g.shape(y)), y)]


_CONTEXTS: dict[str, Callable[[Net, Variant], list[int]]] = {
    "pads before": padded,
    "activations after": activated(unary.RELU6, unary.RELU),
    "smooth activations after": activated(unary.TANH, unary.HARD_SWISH),
    "SWISH after": swish,
    "a residual after": residual,
    "a chain around": chained,
    "joined": joined,
    "packed": packed,
    "cut before": cut,
    "read in rows": read_in_rows,
    "kept": kept,
    "variables": held,
}
_OF_FLOATS_ONLY = ("smooth activations after",)


def crossed(name: str, *variants: str) -> tuple[Model, list[str]]:
    """One model with variants in every context, and what each of its outputs is of."""
    domain, known = _DOMAINS[name]
    g, outputs, origins = Net(domain), [], []
    for variant in variants:
        for context, build in _CONTEXTS.items():
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
    device, plain = (
        _run(model_, delegates, feeds, experimental_preserve_all_tensors=preserve)
        for delegates in ([CLDelegate(**{"strict": True, **options})], [])
    )
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
    return device


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


@pytest.mark.parametrize(("name", "variants"), [("float", _SOME["float"][:4]), ("hybrid", ("3x3", "depthwise"))])
def test_as_on_a_gpu(
    name: str, variants: Sequence[str], monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any
) -> None:
    options = devices.as_on_a_gpu(monkeypatch, tmp_path_factory.getbasetemp() / "capabilities")
    _check(options, name, *variants)


_ROUNDED = 3e-3  # of what is multiplied twice in a row, each time rounded to 11 bits


@pytest.mark.parametrize("variant", [name for name in _PRODUCTS if "depthwise" not in name and "channel" not in name])
def test_by_matrix_units(variant: str, tmp_path_factory: Any) -> None:
    """Nothing that may be fused, joined or cut is lost where halves are multiplied."""
    with devices.in_tiles("small tiles", tmp_path_factory.getbasetemp() / "matrix units", "mma") as options:
        device = _check(options | {"precision": "fp16"}, "float", variant, tolerance=_ROUNDED)
    kernels = device.delegation_report().partitions[0].kernels
    assert "product_local:product_matrix" in kernels
