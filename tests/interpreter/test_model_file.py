"""Reading and writing ``.tflite`` files."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.cases import softmax
from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.encoding import encode
from litecl.interpreter.file.flatbuffer import decode
from litecl.interpreter.file.reader import read
from litecl.interpreter.file.tables import BUILTIN_OPERATORS
from litecl.interpreter.file.writer import write, write_file
from litecl.interpreter.graph import (
    Array,
    DimensionMetadata,
    Model,
    Node,
    Quantization,
    Signature,
    Sparsity,
    Subgraph,
    TensorSpec,
)
from litecl.interpreter.op import Op
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.options import CustomOptions, RawOptions, unknown_op
from litecl.interpreter.schema import TensorType
from support import oracle
from support.build import Graph, model
from support.shared import MODELS, needs_shared, rows

SOFTMAX_FILE = write(softmax.CASES[0].model())
RANDOM = np.random.default_rng(11)


def _files(**wanted: str) -> list[str]:
    return [row["file"] for row in rows() if all(row[key] == value for key, value in wanted.items())]


def _small_static_models(count: int) -> list[str]:
    static = [
        row
        for row in rows()
        if row["litert_invokes"] == "True"
        and row["dynamic_signature"] == "False"
        and row["inputs"].startswith("float32")
        and ";" not in row["inputs"]
    ]
    static.sort(key=lambda row: int(row["bytes"]))
    return [row["file"] for row in static[:: max(1, len(static) // count)][:count]]


def _assert_same(a: Any, b: Any, where: str = "model") -> None:
    """Two models say the same: records field by field, arrays by type and value, operators by identity."""
    assert type(a) is type(b), where
    if isinstance(a, Op) or a is b:
        assert a is b, where
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype, where
        np.testing.assert_array_equal(a, b, err_msg=where)
    elif is_dataclass(a):
        for field in fields(a):
            _assert_same(getattr(a, field.name), getattr(b, field.name), f"{where}.{field.name}")
    elif isinstance(a, Mapping):
        assert list(a) == list(b), where
        for key in a:
            _assert_same(a[key], b[key], f"{where}[{key!r}]")
    elif isinstance(a, tuple):
        assert len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            _assert_same(x, y, f"{where}[{i}]")
    else:
        assert a == b or (a != a and b != b), where


@needs_shared
@pytest.mark.parametrize("file", _files(litert_loads="True"))
def test_real_models_come_back_as_they_were_read(file: str) -> None:
    """Nothing that a model says is lost on the way through a file."""
    model = read(MODELS / file)
    _assert_same(read(write(model)), model)


@needs_shared
@pytest.mark.parametrize("file", _small_static_models(15))
@pytest.mark.parametrize("inline_limit_bytes", [2**31, 0], ids=["inside", "outside"])
def test_litert_runs_what_was_written(file: str, inline_limit_bytes: int) -> None:
    """LiteRT gives bit-equal outputs for the original and for the rewritten file, buffers inside or outside."""
    original = (MODELS / file).read_bytes()
    model = read(original)
    rng = np.random.default_rng(5)
    feeds = [rng.random(model.subgraphs[0].tensors[t].static_shape, np.float32) for t in model.subgraphs[0].inputs]
    written = write(model, inline_limit_bytes=inline_limit_bytes)
    for a, b in zip(oracle.run(written, feeds), oracle.run(original, feeds), strict=True):
        np.testing.assert_array_equal(a, b)


def _constant(data: Array, type_: TensorType | None = None, **more: Any) -> TensorSpec:
    return TensorSpec(TensorType.of(data.dtype) if type_ is None else type_, data.shape, data=data, **more)


def _model(*tensors: TensorSpec, nodes: tuple[Node, ...] = (), **more: Any) -> Model:
    return Model((Subgraph(tensors, (), (), nodes, "main"),), **more)


CONSTANTS = (
    _constant(RANDOM.standard_normal((3, 5)).astype(np.float32)),
    _constant(RANDOM.standard_normal((3, 5)).astype(np.float16)),
    _constant(RANDOM.standard_normal(4) + 1j),
    _constant(RANDOM.integers(-8, 8, (3, 5)).astype(np.int8), TensorType.INT4),
    _constant(RANDOM.integers(0, 16, (3, 3)).astype(np.uint8), TensorType.UINT4),
    _constant(RANDOM.integers(-2, 2, (3, 5)).astype(np.int8), TensorType.INT2),
    _constant(RANDOM.integers(0, 2, 7).astype(bool)),
    _constant(np.array([[b"one", b""], [b"\xc3\xa9", b"four"]], np.object_)),
    _constant(np.array(2.5, np.float32)),
    _constant(np.zeros((0, 3), np.int32)),
    _constant(RANDOM.standard_normal((4, 6)).astype(np.float32).T),
)


@pytest.mark.parametrize("spec", CONSTANTS, ids=lambda spec: f"{spec.type.name}{list(spec.shape)}")
@pytest.mark.parametrize("inline_limit_bytes", [2**31, 0], ids=["inside", "outside"])
def test_constants(spec: TensorSpec, inline_limit_bytes: int) -> None:
    """Constants of every storage come back, also where buffers lie outside the FlatBuffer."""
    (got,) = read(write(_model(spec), inline_limit_bytes=inline_limit_bytes)).subgraphs[0].tensors
    assert got.type == spec.type
    np.testing.assert_array_equal(got.data, spec.data)


def test_int4_is_stored_low_nibble_first() -> None:
    """The order in which LiteRT unpacks: of each byte, the lower four bits come first."""
    content = write(_model(_constant(np.array([1, -2, 3], np.int8), TensorType.INT4)))
    buffers = decode(memoryview(content), "Model", b"TFL3").buffers
    assert buffers[1].data.tobytes() == bytes([0xE1, 0x03])


def test_blocks_lie_where_their_scales_say() -> None:
    """ai-edge-quantizer writes dimension 0 for blocks along the last one."""
    scale, weights = RANDOM.random((3, 2)).astype(np.float16), RANDOM.integers(-8, 8, (3, 64)).astype(np.int8)
    blocks = Quantization(scale, np.zeros((3, 2), np.int64), 0, block_size=32)
    (spec, *_) = read(write(_model(_constant(weights, TensorType.INT4, quantization=blocks)))).subgraphs[0].tensors
    assert spec.quantization is not None and spec.quantization.quantized_dimension == 1
    wrong = replace(blocks, scale=scale[:2], zero_point=blocks.zero_point[:2])
    with pytest.raises(ModelError, match=r"expected scales for blocks of 32 .*got them of shape \[2, 2\]"):
        read(write(_model(_constant(weights, TensorType.INT4, quantization=wrong))))


def test_everything_a_model_can_say() -> None:
    """Signatures, metadata, quantization by axis and by block, sparsity, variables, versions, kept options."""
    scale, weights = RANDOM.random((2, 2)).astype(np.float16), RANDOM.integers(-8, 8, (2, 64)).astype(np.int8)
    block = Quantization(scale, np.zeros((2, 2), np.int64), 1, block_size=32)
    axis = Quantization(np.float32([0.5, 0.25]), np.int64([0, 3]), 1, np.float32([-1]), np.float32([1]))
    levels = (
        DimensionMetadata(dense_size=4),
        DimensionMetadata(segments=np.int32([0, 1, 2, 2, 3]), indices=np.uint8([1, 0, 2])),
    )
    tensors = (
        TensorSpec(TensorType.FLOAT32, (1, 4), "x", shape_signature=(-1, 4)),
        TensorSpec(TensorType.FLOAT32, (1, 4), "y"),
        TensorSpec(TensorType.INT8, (3, 2), "axis", quantization=axis),
        _constant(scale, name="scale"),
        _constant(weights, TensorType.INT4, quantization=block),
        TensorSpec(TensorType.FLOAT32, (4, 3), "sparse", np.float32([1, 2, 3]), None, Sparsity((0, 1), (), levels)),
        TensorSpec(TensorType.FLOAT32, (2, 2), "state", is_variable=True),
    )
    nodes = (
        Node(softmax.SOFTMAX, (0,), (1,), softmax.SoftmaxOptions(2.0), version=3),
        Node(
            unknown_op("STABLEHLO_SLICE", custom=False),
            (-1,),
            (),
            RawOptions(
                "StablehloSliceOptions",
                {"start_indices": np.int64([1, 2]), "limit_indices": np.int64([3]), "strides": None},
            ),
        ),
        Node(unknown_op("mine", custom=True), (0, -1), (), CustomOptions(b"\x01\x02"), intermediates=(2,)),
    )
    main = Subgraph(tensors, (0,), (1,), nodes, "main")
    model = Model(
        (main, Subgraph((tensors[0],), (0,), (0,), (), "other")),
        (Signature("serve", {"a": 0}, {"b": 1}), Signature("other", {"a": 0}, {"b": 0}, subgraph=1)),
        {"vocabulary": b"one two", "empty": b""},
        "made by a test",
    )
    _assert_same(read(write(model)), model)


def test_constants_of_the_same_memory_share_a_buffer() -> None:
    """Two tensors and two subgraphs of one array are written once."""
    data = RANDOM.standard_normal(1000).astype(np.float32)
    other = Subgraph((_constant(data),), (), (), ())
    model = _model(_constant(data), _constant(data[:]), _constant(data.reshape(10, 100)))
    content = write(replace(model, subgraphs=(*model.subgraphs, other)))
    assert len(content) < 3 * data.nbytes
    first, second, *_ = read(content).subgraphs[0].tensors
    assert first.data is second.data


def test_constants_of_the_same_bytes_share_a_buffer() -> None:
    """Weights that were computed twice, of other shapes and types too; a few bytes are no matter."""
    data = RANDOM.standard_normal(1000).astype(np.float32)
    content = write(_model(_constant(data), _constant(data.copy()), _constant(data.view(np.int32).reshape(10, 100))))
    assert len(content) < 2 * data.nbytes
    first, second, third = read(content).subgraphs[0].tensors[:3]
    assert first.data is second.data
    assert first.data is not None and third.data is not None
    np.testing.assert_array_equal(third.data, data.view(np.int32).reshape(10, 100))


def test_a_model_can_be_written_over_its_own_file(tmp_path: Path) -> None:
    """Constants are views of the file that is replaced."""
    path = tmp_path / "model.tflite"
    path.write_bytes(write(_model(CONSTANTS[0])))
    model = read(path)
    write_file(model, path)
    _assert_same(read(path), model)
    assert list(tmp_path.iterdir()) == [path]


# Layout


@pytest.mark.parametrize("inline_limit_bytes", [2**31, 0], ids=["inside", "outside"])
def test_buffers_are_aligned_and_not_copied(tmp_path: Path, inline_limit_bytes: int) -> None:
    """Every constant is a view of the file's content, at a multiple of 16 bytes."""
    path = tmp_path / "model.tflite"
    specs = [_constant(RANDOM.standard_normal(size).astype(np.float32)) for size in (1, 2, 3, 5, 31)]
    write_file(_model(*specs), path, inline_limit_bytes=inline_limit_bytes)
    for spec in read(path).subgraphs[0].tensors:
        assert not spec.data.flags.owndata
        assert not spec.data.flags.writeable
        assert spec.data.__array_interface__["data"][0] % 16 == 0


def test_constants_are_views_of_the_content_given() -> None:
    """Bytes that are given stay where they are, aligned or not."""
    values = RANDOM.standard_normal(9).astype(np.float32)
    content = write(_model(_constant(values)))
    for shift in range(4):
        shifted = np.frombuffer(bytes(shift) + content, np.uint8)[shift:]
        (spec,) = read(memoryview(shifted)).subgraphs[0].tensors
        assert np.shares_memory(spec.data, shifted)
        np.testing.assert_array_equal(spec.data * 2, values * 2)


def test_deprecated_operator_codes() -> None:
    """Codes above 127 leave their placeholder in the old field; files that have only the old field are read."""
    node = Node(unknown_op("STABLEHLO_ABS", custom=False), (), (), RawOptions())
    content = write(_model(nodes=(node,)))
    (code,) = decode(memoryview(content), "Model", b"TFL3").operator_codes
    assert (code.deprecated_builtin_code, code.builtin_code) == (127, BUILTIN_OPERATORS.index("STABLEHLO_ABS"))
    root = decode(memoryview(SOFTMAX_FILE), "Model", b"TFL3")
    root.operator_codes[0].fields["builtin_code"] = 0
    assert read(bytes(encode(root, b"TFL3"))).subgraphs[0].nodes[0].op is softmax.SOFTMAX


def test_missing_options_are_the_schema_defaults() -> None:
    """An operator without its table of options gets the schema's defaults."""
    root = decode(memoryview(SOFTMAX_FILE), "Model", b"TFL3")
    root.subgraphs[0].operators[0].fields["builtin_options"] = None
    assert read(bytes(encode(root, b"TFL3"))).subgraphs[0].nodes[0].options == softmax.SoftmaxOptions(0.0)


def test_custom_options_after_the_flatbuffer() -> None:
    """Large custom options are found by offset and size."""
    node = Node(unknown_op("mine", custom=True), (), (), CustomOptions(b"x"))
    root = decode(memoryview(write(_model(nodes=(node,)))), "Model", b"TFL3")
    operator = root.subgraphs[0].operators[0]
    operator.fields.update(large_custom_options_offset=1, large_custom_options_size=5)
    size = len(encode(root, b"TFL3"))
    operator.fields["large_custom_options_offset"] = size
    model = read(bytes(encode(root, b"TFL3")) + b"large")
    assert model.subgraphs[0].nodes[0].options == CustomOptions(b"large")


def test_a_shape_that_options_lack() -> None:
    """OpenVINO takes an empty ``new_shape`` of RESHAPE for the shape, and tf2onnx refuses options without one: as
    TensorFlow's converter, litecl writes options only if there is one.
    """
    for new_shape in ((), (3, 2)):
        g = Graph()
        shape = g.const(np.array([3, 2], np.int32))
        content = write(model(g.build(g.op(RESHAPE, [g.input((6,)), shape], ReshapeOptions(new_shape)))))
        (operator,) = decode(memoryview(content), "Model", b"TFL3").subgraphs[0].operators
        written = operator.builtin_options
        assert written is None if new_shape == () else written.new_shape.tolist() == [3, 2]
        assert read(content).subgraphs[0].nodes[0].options == ReshapeOptions(new_shape)
