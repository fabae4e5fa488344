"""litecl inspect: multiplications of products, and tensors as a file stores them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from litecl.cli import main
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import ABSENT, Model, Quantization, Subgraph, TensorSpec
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.control import STABLEHLO_COMPOSITE, StableHLOCompositeOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.conv_3d import CONV_3D, Conv3DOptions
from litecl.interpreter.ops.conv_3d_transpose import CONV_3D_TRANSPOSE
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.transpose_conv import TRANSPOSE_CONV, TransposeConvOptions
from litecl.interpreter.ops.unary import ABS
from litecl.interpreter.schema import Padding, TensorType
from litecl.perf.summary import CompositeLine, node_lines, stored_tensors, summarize
from support.build import Graph, model
from support.small_models import chain, lstm

_VALID: dict[str, Any] = {"padding": Padding.VALID}
_PRODUCTS: dict[str, tuple[Op, Any, list[tuple[int, ...]]]] = {
    "convolution": (CONV_2D, Conv2DOptions(stride_w=2, stride_h=1, **_VALID), [(2, 7, 9, 3), (5, 3, 2, 3), (5,)]),
    "groups": (CONV_2D, Conv2DOptions(stride_w=1, stride_h=1, **_VALID), [(1, 6, 6, 4), (6, 3, 3, 2), (6,)]),
    "depthwise": (
        DEPTHWISE_CONV_2D,
        DepthwiseConv2DOptions(stride_w=1, stride_h=1, depth_multiplier=2, **_VALID),
        [(1, 6, 5, 3), (1, 3, 3, 6), (6,)],
    ),
    "volume": (
        CONV_3D,
        Conv3DOptions(stride_d=1, stride_w=1, stride_h=1, **_VALID),
        [(1, 4, 5, 6, 2), (2, 3, 2, 2, 3), (3,)],
    ),
    "dense": (FULLY_CONNECTED, FullyConnectedOptions(), [(4, 6), (5, 6), (5,)]),
    "transposed": (
        TRANSPOSE_CONV,
        TransposeConvOptions(stride_w=2, stride_h=2, **_VALID),
        [(1, 9, 11, 3), (3, 3, 3, 4), (1, 4, 5, 4)],
    ),
    "transposed over volumes": (
        CONV_3D_TRANSPOSE,
        Conv3DOptions(stride_d=2, stride_h=2, stride_w=2, **_VALID),
        [(1, 5, 7, 9, 4), (3, 3, 3, 4, 5), (1, 2, 3, 4, 5)],
    ),
    "matmul": (BATCH_MATMUL, BatchMatMulOptions(adj_x=True), [(2, 6, 3), (2, 6, 5)]),
}


def _ones(op: Op, options: Any, shapes: list[tuple[int, ...]]) -> Model:
    """An operator whose factors are all one, so that its results add up to the number of its products."""
    g = Graph()
    values = [np.ones(shape, np.float32) for shape in shapes]
    if op in (TRANSPOSE_CONV, CONV_3D_TRANSPOSE):
        inputs = [g.const(np.int32(shapes[0])), g.const(values[1]), g.input(shapes[2])]
    else:
        zeros = [g.const(np.zeros(shapes[2], np.float32))] if len(shapes) > 2 else []
        inputs = [g.input(shapes[0]), g.const(values[1]), *zeros]
    return model(g.build(g.op(op, inputs, options)))


@pytest.mark.parametrize("name", _PRODUCTS)
def test_products_are_counted(name: str) -> None:
    made = _ones(*_PRODUCTS[name])
    interpreter = Interpreter(made)
    interpreter.allocate_tensors()
    (x,), (y,) = interpreter.get_input_details(), interpreter.get_output_details()
    interpreter.set_tensor(x["index"], np.ones(x["shape"], np.float32))
    interpreter.invoke()
    assert node_lines(made)[0].multiply_adds == int(interpreter.get_tensor(y["index"]).sum())


def test_recurrent_products_are_counted() -> None:
    """Three steps of four gates: 6 x 4 weights and 6 x 6 recurrent ones each."""
    assert summarize(lstm()).multiply_adds == 3 * 4 * (6 * 4 + 6 * 6)
    assert [line.multiply_adds for line in node_lines(chain())] == [2 * 7 * 5, None, None, None]


def _composites() -> Model:
    """A norm, one of another version without attributes, and one whose attributes are damaged."""
    g, b = Graph(), Graph("body")
    y = g.input((2, 4))
    body = b.build(b.op(ABS, [b.input((2, 4))], NoOptions()))
    epsilon = bytes(flexbuffers.Dumps({"epsilon": float(np.float32(1e-6)), "axes": [1, 2], "mode": "rows"}))
    for name, attributes, version in (("odml.rms_norm", epsilon, 0), ("mine", b"", 3), ("mine", b"\xff\x00\x01", 0)):
        options = StableHLOCompositeOptions(name, 1, attributes, version=version)
        (y,) = g.node(STABLEHLO_COMPOSITE, (y,), [TensorSpec(TensorType.FLOAT32, (2, 4))], options)
    return model(g.build(y), body)


def test_composites_are_told_by_name_with_their_attributes() -> None:
    """Numbers are as short as a float32 is written, not as a double with the same value."""
    norm, other, damaged = node_lines(_composites())[:3]
    assert norm.options == "odml.rms_norm(axes=[1, 2], epsilon=1e-06, mode=rows), decomposition_subgraph_index=1"
    assert norm.composite == CompositeLine("odml.rms_norm", 0, {"axes": [1, 2], "epsilon": 1e-6, "mode": "rows"})
    assert other.options == "mine() version 3, decomposition_subgraph_index=1"
    assert damaged.options == "mine(attributes that are no map), decomposition_subgraph_index=1"
    assert damaged.composite == CompositeLine("mine", 0, None)
    assert node_lines(chain())[0].composite is None
    assert summarize(_composites()).subgraphs[0].composites == {"mine": 2, "odml.rms_norm": 1}


def test_the_command_shows_composites(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    path = tmp_path / "composites.tflite"
    path.write_bytes(write(_composites()))
    assert main(["inspect", str(path), "--nodes"]) == 0
    shown = capsys.readouterr().out
    assert "composites: 2 mine, 1 odml.rms_norm" in shown and "epsilon=1e-06" in shown
    assert main(["inspect", str(path), "--nodes", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [node["composite"] and node["composite"]["name"] for node in found["nodes"]] == [
        *("odml.rms_norm", "mine", "mine"),
        None,
    ]
    assert found["nodes"][0]["composite"]["attributes"]["epsilon"] == 1e-6
    assert found["subgraphs"][0]["composites"] == {"mine": 2, "odml.rms_norm": 1}


def _tensors() -> Model:
    """Tensors of every kind: per tensor, per channel, packed, without a shape, strings, floats."""
    one = Quantization(np.float32([0.5]), np.array([-3], np.int64))
    many = Quantization(np.float32([0.25, 0.125, 1.0]), np.zeros(3, np.int64), quantized_dimension=1)
    weights = np.zeros((2, 3), np.int8)
    specs = (
        TensorSpec(TensorType.INT8, (1, 5), "x", quantization=one, shape_signature=(-1, 5)),
        TensorSpec(TensorType.INT8, (2, 3), "w", weights, many),
        TensorSpec(TensorType.INT4, (3, 3), "packed", np.zeros((3, 3), np.int8), one),
        TensorSpec(TensorType.FLOAT32, None, "late"),
        TensorSpec(TensorType.STRING, (4,), "words"),
    )
    return model(Subgraph(tensors=specs, nodes=(), inputs=(0,), outputs=(0,), name="main"))


def test_tensors_are_told_with_scales_and_bytes() -> None:
    x, w, packed, late, words = stored_tensors(_tensors())
    assert (x.shape, x.size_bytes, x.scale, x.zero_point, x.scales, x.dimension) == (
        (-1, 5),
        5,
        (0.5, 0.5),
        (-3, -3),
        1,
        None,
    )
    assert (w.size_bytes, w.scale, w.zero_point, w.scales, w.dimension) == (6, (0.125, 1.0), (0, 0), 3, 1)
    assert (x.constant, w.constant, packed.size_bytes) == (False, True, 5)
    assert (late.shape, late.size_bytes, late.scale) == (None, None, None)
    assert (words.size_bytes, words.scales) == (None, 0)


def test_the_command_shows_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    g = Graph()
    x = g.input((2, 6), TensorType.FLOAT32)
    weights = g.const(np.ones((4, 6), np.int8), scale=0.03125)
    y = g.op(FULLY_CONNECTED, [x, weights, ABSENT], FullyConnectedOptions())
    path = tmp_path / "dense.tflite"
    path.write_bytes(write(model(g.build(y))))
    assert main(["inspect", str(path), "--tensors", "--nodes"]) == 0
    shown = capsys.readouterr().out
    assert "48 multiply-adds" in shown and "0.03125" in shown and "INT8 constant" in shown
    assert main(["inspect", str(path), "--tensors", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [t["scale"] for t in found["stored_tensors"]] == [None, [0.03125, 0.03125], None]
    assert found["multiply_adds"] == 48
