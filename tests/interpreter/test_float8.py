"""FLOAT8 against ml_dtypes; LiteRT 2.3 reads such files, and refuses the operators that its source has for them."""

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from ai_edge_litert import interpreter as litert

from litecl.compiled_model import CompiledModel
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter, feeding
from litecl.interpreter.arithmetic import float8
from litecl.interpreter.errors import LiteclError, ShapeError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model, Node, Quantization, Subgraph, TensorSpec
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops.cast import CAST, CastOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.quantize import DEQUANTIZE, QUANTIZE
from litecl.interpreter.schema import TensorType as T
from litecl.perf.feeds import random_inputs
from support.build import randn
from support.command import data, text

DTYPES: dict[T, Any] = {T.FLOAT8_E4M3FN: ml_dtypes.float8_e4m3fn, T.FLOAT8_E5M2: ml_dtypes.float8_e5m2}
CODES = np.arange(256, dtype=np.uint8)
each = pytest.mark.parametrize("type_", DTYPES, ids=lambda type_: type_.name)


def _file(
    op: Op, options: Any, source: T, result: T, shape: tuple[int, ...], scales: int = 0, data: Array | None = None
) -> bytes:
    by = Quantization(np.full(scales, 0.5, np.float32), np.zeros(scales, np.int64)) if scales else None
    x = TensorSpec(source, shape, "x", data, by if source in DTYPES else None)
    y = TensorSpec(result, shape, "y", quantization=None if source in DTYPES else by)
    node = Node(op, (0,), (1,), options, version=7 if op is CAST else 3)
    return write(Model((Subgraph((x, y), () if data is not None else (0,), (1,), (node,)),)))


def _cast(source: T, result: T, size: int) -> bytes:
    return _file(CAST, CastOptions(source, result), source, result, (size,))


def _run(content: bytes, *values: Array, **options: Any) -> Array:
    interpreter = Interpreter(content, **options)
    interpreter.allocate_tensors()
    for i, value in enumerate(values):
        interpreter.set_tensor(i, value)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


@each
def test_every_code(type_: T) -> None:
    x = CODES.view(DTYPES[type_])
    np.testing.assert_array_equal(
        float8.widen(CODES, type_).view(np.uint32) << 1, x.astype(np.float32).view(np.uint32) << 1
    )
    for result in (T.FLOAT32, T.FLOAT16, T.FLOAT64):
        np.testing.assert_array_equal(_run(_cast(type_, result, 256), x), x.astype(result.dtype))
    np.testing.assert_array_equal(_run(_cast(type_, type_, 256), x).view(np.uint8), CODES)
    (other,) = {*DTYPES} - {type_}
    expected = x.astype(np.float32).astype(DTYPES[other])
    _same(_run(_cast(type_, other, 256), x), expected)


def _same(got: Array, expected: Array) -> None:
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got.view(np.uint8), expected.view(np.uint8))


@each
def test_every_neighbour_of_a_tie(type_: T) -> None:
    """And of the largest number, of the smallest, and infinities and NaN."""
    finite = np.sort(CODES.view(DTYPES[type_]).astype(np.float32))
    finite = finite[np.isfinite(finite)]
    ties = np.concatenate([(finite[1:] + finite[:-1]) / 2, finite, [464, 480, 61440, 65536, 3e38, np.inf, np.nan]])
    ties = ties.astype(np.float32)
    up, down = np.nextafter(ties, np.float32(np.inf)), np.nextafter(ties, np.float32(-np.inf))
    x = np.concatenate([ties, up, down, -ties, -up, -down, randn(np.random.default_rng(3), 4000, scale=99)])
    _same(_run(_cast(T.FLOAT32, type_, x.size), x), x.astype(DTYPES[type_]))


@each
@pytest.mark.parametrize("other", [T.INT8, T.UINT8, T.INT16, T.INT32, T.UINT32, T.INT64, T.BOOL, T.FLOAT16, T.FLOAT64])
def test_other_types(type_: T, other: T) -> None:
    """By way of float32, as in LiteRT's source; integers saturate, and NaN becomes the largest."""
    rng = np.random.default_rng(4)
    x = (
        rng.integers(-(2**40), 2**40, 500).astype(other.dtype)
        if other.dtype.kind in "iub"
        else rng.normal(0, 300, 500).astype(other.dtype)
    )
    _same(_run(_cast(other, type_, x.size), x), x.astype(np.float32).astype(DTYPES[type_]))
    codes = CODES.view(DTYPES[type_])
    expected = _run(_cast(T.FLOAT32, other, 256), codes.astype(np.float32))
    np.testing.assert_array_equal(_run(_cast(type_, other, 256), codes), expected)


@each
def test_dequantize_ignores_a_scale_and_refuses_several(type_: T) -> None:
    """As LiteRT's source does."""
    x = CODES.view(DTYPES[type_])
    for scales in (0, 1):
        content = _file(DEQUANTIZE, NoOptions(), type_, T.FLOAT32, (256,), scales)
        np.testing.assert_array_equal(_run(content, x), x.astype(np.float32))
    with pytest.raises(LiteclError, match=f"no kernel from {type_.name} with 256 scales"):
        _run(_file(DEQUANTIZE, NoOptions(), type_, T.FLOAT32, (256,), 256), x)


@each
def test_quantize_is_refused(type_: T) -> None:
    """There is no such kernel in LiteRT's source."""
    with pytest.raises(LiteclError, match=f"QUANTIZE.*{type_.name}"):
        _run(_file(QUANTIZE, NoOptions(), T.FLOAT32, type_, (4,), 1), np.ones(4, np.float32))
    with pytest.raises(LiteclError, match=f"QUANTIZE.*{type_.name}"):
        _run(_file(QUANTIZE, NoOptions(), type_, T.INT8, (4,), 1), np.ones(4, DTYPES[type_]))


@each
def test_what_litert_does(type_: T) -> None:
    """It reads such files, and has bytes for their tensors."""
    with pytest.raises(RuntimeError, match=f"{type_.name} is unsupported by op Cast"):
        _litert(_cast(T.FLOAT32, type_, 4))
    with pytest.raises(RuntimeError, match="is_supported_type"):
        _litert(_file(DEQUANTIZE, NoOptions(), type_, T.FLOAT32, (4,)))


def _litert(content: bytes) -> None:
    interpreter = litert.Interpreter(
        model_content=content, experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF
    )
    interpreter.allocate_tensors()
    interpreter.invoke()


def _dense(type_: T) -> tuple[Model, Array, Array]:
    """FULLY_CONNECTED by weights of FLOAT8, and an input with its product."""
    weights = randn(np.random.default_rng(5), 8, 32).astype(DTYPES[type_])
    tensors = (
        TensorSpec(T.FLOAT32, (3, 32), "x"),
        TensorSpec(type_, (8, 32), "weights", weights.view(np.uint8)),
        TensorSpec(T.FLOAT32, (8, 32), "wide"),
        TensorSpec(T.FLOAT32, (3, 8), "y"),
    )
    nodes = Node(DEQUANTIZE, (1,), (2,), NoOptions()), Node(FULLY_CONNECTED, (0, 2), (3,), FullyConnectedOptions())
    x = randn(np.random.default_rng(6), 3, 32)
    expected = x.astype(np.float64) @ weights.astype(np.float64).T
    return Model((Subgraph(tensors, (0,), (3,), nodes),)), x, expected


@each
def test_weights(type_: T) -> None:
    """Widened once, ahead of time; the product is on the device."""
    model, x, expected = _dense(type_)
    for delegates in ([], [CLDelegate("native")]):
        interpreter = Interpreter(write(model), delegates=delegates)
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, x)
        interpreter.invoke()
        np.testing.assert_allclose(interpreter.get_tensor(3), expected, rtol=1e-5, atol=1e-5)
    rows = interpreter.delegation_report().nodes
    assert [row.claimed for row in rows] == [True, True], rows


@each
def test_a_device_leaves_its_tensors_to_the_cpu(type_: T) -> None:
    content, x = _cast(T.FLOAT32, type_, 5), np.array([1, -2.3, 500, np.nan, 1e-9], np.float32)
    interpreter = Interpreter(content, delegates=[CLDelegate("native")])
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    _same(interpreter.get_tensor(1), x.astype(DTYPES[type_]))
    assert f"output 0 has type {type_.name}" in interpreter.delegation_report().nodes[0].reason


@each
def test_callers_see_its_numbers_or_bits(type_: T, monkeypatch: pytest.MonkeyPatch) -> None:
    content = _cast(type_, T.FLOAT32, 256)
    value = CODES.view(DTYPES[type_])
    compiled = CompiledModel.from_buffer(content)
    inputs, outputs = compiled.create_input_buffers(0), compiled.create_output_buffers(0)
    inputs[0].write(value)
    compiled.run_by_index(0, inputs, outputs)
    np.testing.assert_array_equal(outputs[0].read(256, np.float32), value.astype(np.float32))
    (made,) = random_inputs(Interpreter(content).get_input_details(), 3).values()
    assert made.dtype == value.dtype
    with pytest.raises(ShapeError, match="expected float8"):
        _run(content, CODES)
    monkeypatch.setattr(feeding, "_seen", lambda kind: kind.dtype)
    np.testing.assert_array_equal(_run(content, CODES), value.astype(np.float32))


@each
def test_commands(type_: T, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "dense.tflite"
    file.write_bytes(write(_dense(type_)[0]))
    assert f'"{type_.name}"' in json.dumps(data(capsys, "inspect", file))
    assert "DEQUANTIZE" in text(capsys, "where", file)
    assert data(capsys, "diff", file, file)["same_structure"]
    assert data(capsys, "run", file, "--cpu")["outputs"][0]["shape"] == [3, 8]
    assert data(capsys, "bisect", file)["verdict"] == "right"
    cast = tmp_path / "cast.tflite"
    cast.write_bytes(_cast(type_, type_, 8))
    (shown,) = data(capsys, "run", cast)["outputs"]
    assert shown["dtype"] == np.dtype(DTYPES[type_]).name
    assert shown["min"] < shown["mean"] < shown["max"]
