"""The pass that makes one node of products and their sum, and the kernel, for CPUs only."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.gpu.pipeline import GPU_PASSES
from litecl.delegate.plan.pipeline import PASSES
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array, Quantization, TensorSpec
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops.binary import ADD, MUL, SUB, AddOptions, MulOptions
from litecl.interpreter.ops.reduce import MEAN, REDUCE_MAX, SUM, ReducerOptions
from litecl.interpreter.ops.unary import ABS, SQUARE
from litecl.interpreter.schema import ActivationFunctionType, TensorType
from support import devices
from support.build import Graph, model, randn
from support.regions import after, names

_RNG = np.random.default_rng(19)
Build = Callable[[Graph], Sequence[int]]
_SCALE = Quantization(np.array([0.01], np.float32), np.array([0]))


def summed(g: Graph, products: int, *axes: int, op: Op = SUM, keep: bool = False) -> int:
    return g.op(op, [products, g.const(np.array(axes, np.int32))], ReducerOptions(keep))


def times(g: Graph, a: int, b: int, function: ActivationFunctionType = ActivationFunctionType.NONE) -> int:
    return g.op(MUL, [a, b], MulOptions(function))


_SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    "rows": ((3, 5, 70), (3, 5, 70), (2,)),
    "a negative axis": ((3, 5, 70), (3, 5, 70), (-1,)),
    "columns": ((3, 5, 70), (3, 5, 70), (1,)),
    "columns, the first axis": ((6, 5, 7), (6, 5, 7), (0,)),
    "two axes": ((3, 5, 70), (3, 5, 70), (1, -1)),
    "two axes, one twice": ((3, 5, 7), (3, 5, 7), (2, 1, -1)),
    "two axes around one element": ((2, 3, 1, 9, 4), (2, 3, 1, 9, 4), (3, 1)),
    "all": ((3, 5, 70), (3, 5, 70), (0, 1, 2)),
    "a number": ((3, 5, 70), (), (2,)),
    "weights of rows": ((3, 5, 70), (70,), (2,)),
    "weights of columns": ((3, 5, 70), (5, 1), (1,)),
    "a factor of an outer dimension": ((4, 6, 33), (4, 1, 1), (1,)),
    "factors outside and inside": ((4, 1, 33), (1, 6, 1), (1,)),
    "the larger factor is the second": ((70,), (3, 5, 70), (-1,)),
    "an outer product": ((3, 1, 8), (3, 20, 1), (1,)),
    "one element": ((1,), (1,), (0,)),
}


def _reference(a: Array, b: Array, axes: tuple[int, ...], *, mean: bool, keep: bool) -> Array:
    products = (a * b).astype(np.float64)
    reduced = tuple({axis % products.ndim for axis in axes})
    return np.asarray((np.mean if mean else np.sum)(products, axis=reduced, keepdims=keep), np.float32)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("op", [SUM, MEAN], ids=lambda op: op.name)
@pytest.mark.parametrize("name", _SHAPES)
def test_numbers(name: str, op: Op, keep: bool) -> None:
    """One node, and the sums of float64 numpy; on a GPU the products stay."""
    first, second, axes = _SHAPES[name]
    g = Graph()
    a, b = g.input(first), g.input(second)
    y = summed(g, times(g, a, b), *axes, op=op, keep=keep)
    assert names(after(PASSES, g, y)) == ["PRODUCT_SUM"]
    assert names(after(GPU_PASSES, g, y)) == ["MUL", op.name]
    feeds = [randn(_RNG, *first), randn(_RNG, *second)]
    expected = _reference(*feeds, axes, mean=op is MEAN, keep=keep)
    for device in devices.with_native():
        for threads in (1, 2):
            (got,) = _run(g, [y], feeds, device, num_threads=threads)
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=2e-5 * max(1, np.abs(expected).max()))


def _run(g: Graph, outputs: Sequence[int], feeds: Sequence[Array], device: Any, **options: Any) -> list[Array]:
    delegates = [] if device is None else [CLDelegate(device, strict=True, **options)]
    interpreter = Interpreter(model(g.build(*outputs)), delegates=delegates)
    interpreter.allocate_tensors()
    for detail, feed in zip(interpreter.get_input_details(), feeds, strict=True):
        interpreter.set_tensor(detail["index"], feed)
    interpreter.invoke()
    return [np.array(interpreter.get_tensor(detail["index"])) for detail in interpreter.get_output_details()]


@pytest.mark.parametrize("square", ["MUL", "SQUARE"])
@pytest.mark.parametrize("axis", [1, 2])
def test_squares(square: str, axis: int) -> None:
    """Of one tensor, behind and before others; what reads it twice reads it once."""
    g = Graph()
    x = g.input((4, 6, 40))
    shifted = g.op(SUB, [x, g.const(np.float32(0.5))], AddOptions())
    products = times(g, shifted, shifted) if square == "MUL" else g.op(SQUARE, [shifted], NoOptions())
    y = g.op(ABS, [summed(g, products, axis)], NoOptions())
    assert names(after(PASSES, g, y)) == ["SUB", "PRODUCT_SUM", "ABS"]
    feed = randn(_RNG, 4, 6, 40)
    for device in devices.with_native():
        (got,) = _run(g, [y], [feed], device)
        np.testing.assert_allclose(got, ((feed - np.float32(0.5)) ** 2).sum(axis=axis), rtol=1e-5)


@pytest.mark.parametrize("device", devices.with_native(), ids=devices.named)
def test_products_are_rounded(device: Any) -> None:
    """Products beyond the largest number are infinite, of both signs NaN, and sums keep infinities and NaN."""
    rows = [[3e38, 3e38, 1, 1], [3e38, -3e38, 1, 1], [np.nan, 1, 1, 1], [np.inf, 0, 1, 1], [1e-30, 1e-30, 1e-30, 0]]
    x = np.array(rows, np.float32)
    w = np.array([[10, 10, 1, 1], [10, 10, 1, 1], [0, 0, 0, 0], [0, 1, 1, 1], [1e-30, 1e-30, 1, 1]], np.float32)
    g = Graph()
    y = summed(g, times(g, g.input(x.shape), g.input(w.shape)), 1)
    assert names(after(PASSES, g, y)) == ["PRODUCT_SUM"]
    (got,) = _run(g, [y], [x, w], device)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got, (x * w).sum(axis=1))


def _integers(type_: TensorType, quantization: Quantization | None = None) -> Build:
    def build(g: Graph) -> Sequence[int]:
        spec = TensorSpec(type_, (2, 3, 8), quantization=quantization)
        x, axes = g.input((2, 3, 8), type_), g.const(np.array([2], np.int32))
        g.tensors[x] = spec
        (products,) = g.node(MUL, (x, x), [spec], MulOptions())
        g.tensors[products] = replace(spec, name="products")
        (y,) = g.node(SUM, (products, axes), [spec], ReducerOptions())
        g.tensors[y] = replace(spec, shape=(2, 3), name="y")
        return (y,)

    return build


def _activated(function: ActivationFunctionType) -> Build:
    def build(g: Graph) -> Sequence[int]:
        return (summed(g, times(g, g.input((2, 3, 8)), g.input((2, 3, 8)), function), 2),)

    return build


def _read_twice(g: Graph) -> Sequence[int]:
    products = times(g, g.input((2, 3, 8)), g.input((2, 3, 8)))
    return summed(g, products, 2), g.op(ABS, [products], NoOptions())


def _kept(g: Graph) -> Sequence[int]:
    products = times(g, g.input((2, 3, 8)), g.input((2, 3, 8)))
    return summed(g, products, 2), products


def _of(axes: tuple[int, ...], second: tuple[int, ...] = (2, 3, 8), op: Op = SUM) -> Build:
    return lambda g: (summed(g, times(g, g.input((2, 3, 8)), g.input(second)), *axes, op=op),)


_APART: dict[str, Build] = {
    "no axes": _of(()),
    "axes apart": _of((0, 2)),
    "a factor of one of two reduced dimensions": _of((1, 2), (8,)),
    "a factor of one of two outer dimensions": _of((2,), (3, 1)),
    "a factor of one of two inner dimensions": _of((0,), (8,)),
    "the largest product": _of((2,), op=REDUCE_MAX),
    "RELU": _activated(ActivationFunctionType.RELU),
    "RELU6": _activated(ActivationFunctionType.RELU6),
    "TANH": _activated(ActivationFunctionType.TANH),
    "sums": lambda g: (summed(g, g.op(ADD, [g.input((2, 3, 8)), g.input((2, 3, 8))], AddOptions()), 2),),
    "products that others read": _read_twice,
    "products that are an output": _kept,
    "INT32": _integers(TensorType.INT32),
    "INT64": _integers(TensorType.INT64),
    "int8": _integers(TensorType.INT8, _SCALE),
    "int16": _integers(TensorType.INT16, _SCALE),
}


@pytest.mark.parametrize("name", _APART)
def test_what_stays(name: str) -> None:
    """Other types, dimensions apart, products that are clamped or read elsewhere; the results are the interpreter's."""
    g = Graph()
    outputs = _APART[name](g)
    assert "PRODUCT_SUM" not in names(after(PASSES, g, *outputs))
    tensors = [g.tensors[t] for t in g.inputs]
    feeds = [(_RNG.standard_normal(spec.static_shape) * 5).astype(spec.dtype) for spec in tensors]
    expected = _run(g, outputs, feeds, None)
    for device in devices.with_native():
        for got, wanted in zip(_run(g, outputs, feeds, device), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5 if wanted.dtype.kind == "f" else 0, atol=1e-5)
