"""Weights that a file stores as integers and dequantizes: read as integers, with the same results as floats."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP
from litecl.interpreter.ops.quantize import DEQUANTIZE
from litecl.interpreter.schema import TensorType as T
from support import devices
from support.build import Graph, model
from support.weight_only import RELU, Case, build, stored

CASES = [
    *(Case(type_, 257, depth, blocks) for type_ in (T.INT8, T.INT4) for depth in (256, 300, 333) for blocks in (0, 1)),
    *(Case(type_, 256, 320, blocks) for type_ in (T.INT8, T.INT4) for blocks in (10, 5, 2)),
    Case(T.INT4, 4097, 17, has_bias=False),
    Case(T.INT8, 70000, 1),
    Case(T.INT8, 1, 70001, has_bias=False, activation=RELU),
    *(Case(t, activation=RELU, has_residual=True, blocks=blocks) for t in (T.INT8, T.INT4) for blocks in (1, 10)),
    Case(has_bias=False, has_residual=True),
    Case(T.INT4, rows=2, stays=True),
    Case(rows=7, blocks=10, stays=True),
    Case(zero=3, stays=True),
    Case(T.UINT8, zero=128, stays=True),
    Case(T.INT2, stays=True),
    Case(columns=64, depth=64, stays=True),
    Case(columns=320, depth=320, along=1, stays=True),
    Case(T.INT4, blocks=20, stays=True),  # blocks of 16
]


def run(options: dict[str, Any], cases: list[Case]) -> Iterator[tuple[Case, Array, Array, tuple[str, ...]]]:
    for c in cases:
        g = Graph()
        y, feeds, wanted = build(c, g, np.random.default_rng(7))
        interpreter = Interpreter(model(g.build(y)), delegates=[CLDelegate(strict=True, **options)])
        interpreter.allocate_tensors()
        for tensor, feed in zip(g.inputs, feeds, strict=True):
            interpreter.set_tensor(tensor, feed)
        interpreter.invoke()
        (row,) = interpreter.delegation_report().partitions
        yield c, interpreter.get_tensor(y), wanted, row.kernels


def check(options: dict[str, Any], cases: list[Case], *, on_gpu: bool = False) -> None:
    for c, got, wanted, kernels in run(options, cases):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=2e-5 * np.abs(wanted).max(), err_msg=str(c))
        assert ("weight_only" in kernels) == (not c.stays and not on_gpu), c


@pytest.mark.parametrize("options", [{"num_threads": 1}, {"num_threads": 2}, {"queue_loops": True}], ids=str)
def test_products(options: dict[str, Any]) -> None:
    check(options, CASES)


@pytest.mark.parametrize("device", devices.tested()[:1], ids=devices.named)
def test_products_by_opencl(device: Any) -> None:
    check({"device": device}, CASES[1::5])


def test_products_in_halves() -> None:
    """Where weights may be rounded to halves, integers are read as they are all the same."""
    check({"precision": "fp16"}, [CASES[1], CASES[7]])


def test_products_on_a_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    check(devices.as_on_a_gpu(monkeypatch, tmp_path), [CASES[3], CASES[13]], on_gpu=True)


@pytest.mark.parametrize("c", [Case(), Case(T.INT4), Case(T.INT4, blocks=10), Case(zero=3, stays=True)], ids=str)
def test_lookups(c: Case) -> None:
    g, rng = Graph(), np.random.default_rng(7)
    spec, floats = stored(c, rng)
    g.tensors.append(spec)
    (table,) = g.node(DEQUANTIZE, [len(g.tensors) - 1], [TensorSpec(T.FLOAT32, spec.shape)], NoOptions())
    y = g.op(EMBEDDING_LOOKUP, [g.input((3,), T.INT32), table], NoOptions())
    g.tensors[y] = TensorSpec(T.FLOAT32, (3, c.depth), "y")
    interpreter = Interpreter(model(g.build(y)), delegates=[CLDelegate(strict=True)])
    interpreter.allocate_tensors()
    interpreter.set_tensor(g.inputs[0], np.array([256, 0, 9], np.int32))
    interpreter.invoke()
    np.testing.assert_allclose(interpreter.get_tensor(y), floats[[256, 0, 9]], rtol=1e-6)
    (row,) = interpreter.delegation_report().partitions
    assert row.kernels == (("gather",) if c.stays else ("embedding_lookup",))
