"""FLOAT16 files that onnx2tf writes of five small networks, against LiteRT on them and on the float32 files."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.converter.importer import onnx_file
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import MissingExtra
from litecl.interpreter.graph import Array
from support import oracle

onnx = pytest.importorskip("onnx")
node = pytest.importorskip("onnx.helper").make_node
pytestmark = pytest.mark.nightly

RNG = np.random.default_rng(0)
REFUSED = {"residual": "MAX_POOL_2D", "upscaling": "transpose_conv"}
"""The networks whose FLOAT16 files LiteRT 2.3 refuses, with the operator."""


def _conv(x: str, weights: str, y: str, size: int = 3, **options: Any) -> Any:
    return node("Conv", [x, weights, f"{weights}_bias"], [y], kernel_shape=[size] * 2, pads=[size // 2] * 4, **options)


def _weights(**shapes: Sequence[int]) -> dict[str, Array]:
    """Return random weights, and a bias for each with an entry for every output."""
    made = {name: RNG.standard_normal(shape).astype(np.float32) * np.float32(0.3) for name, shape in shapes.items()}
    return made | {f"{name}_bias": RNG.standard_normal(len(value)).astype(np.float32) for name, value in made.items()}


MOBILE = [
    _conv("x", "first", "a", strides=[2, 2]),
    node("Clip", ["a", "low", "high"], ["b"]),
    _conv("b", "depthwise", "c", group=8),
    node("HardSwish", ["c"], ["d"]),
    _conv("d", "pointwise", "e", size=1),
    node("GlobalAveragePool", ["e"], ["f"]),
    node("Flatten", ["f"], ["g"]),
    node("Gemm", ["g", "dense", "dense_bias"], ["h"], transB=1),
    node("Softmax", ["h"], ["y"]),
]
RESIDUAL = [
    _conv("x", "first", "a"),
    node("Relu", ["a"], ["b"]),
    _conv("b", "second", "c"),
    node("Add", ["c", "a"], ["d"]),
    node("LeakyRelu", ["d"], ["e"], alpha=0.1),
    node("MaxPool", ["e"], ["f"], kernel_shape=[2, 2], strides=[2, 2]),
    node("AveragePool", ["f"], ["y"], kernel_shape=[2, 2], strides=[2, 2]),
]
PERCEPTRON = [
    node("Gemm", ["x", "first", "first_bias"], ["a"], transB=1),
    node("Elu", ["a"], ["b"]),
    node("Gemm", ["b", "second", "second_bias"], ["c"], transB=1),
    node("PRelu", ["c", "second_bias"], ["d"]),
    node("Abs", ["d"], ["e"]),
    node("Neg", ["e"], ["f"]),
    node("Exp", ["f"], ["y"]),
]
NORMED = [
    node("ReduceMean", ["x"], ["mean"], axes=[-1]),
    node("Sub", ["x", "mean"], ["a"]),
    node("Mul", ["a", "a"], ["b"]),
    node("ReduceMean", ["b"], ["variance"], axes=[-1]),
    node("Add", ["variance", "epsilon"], ["c"]),
    node("Sqrt", ["c"], ["d"]),
    node("Div", ["a", "d"], ["e"]),
    node("MatMul", ["e", "dense"], ["f"]),
    node("Tanh", ["f"], ["g"]),
    node("Sigmoid", ["g"], ["y"]),
]
UPSCALING = [
    _conv("x", "first", "a"),
    node("Relu", ["a"], ["b"]),
    node("ConvTranspose", ["b", "wider"], ["c"], kernel_shape=[2, 2], strides=[2, 2]),
    node("Resize", ["c", "", "scales"], ["d"], mode="linear", coordinate_transformation_mode="half_pixel"),
    node("Concat", ["d", "d"], ["y"], axis=1),
]
_LIMITS = {"low": np.float32(0), "high": np.float32(6)}
_SCALES = {"scales": np.array([1, 1, 2, 2], np.float32)}
NETWORKS: dict[str, tuple[list[Any], dict[str, Any], list[int], list[int]]] = {
    "mobile": (
        MOBILE,
        _LIMITS | _weights(first=(8, 3, 3, 3), depthwise=(8, 1, 3, 3), pointwise=(16, 8, 1, 1), dense=(10, 16)),
        [1, 3, 32, 32],
        [1, 10],
    ),
    "residual": (RESIDUAL, _weights(first=(8, 3, 3, 3), second=(8, 8, 3, 3)), [1, 3, 16, 16], [1, 8, 4, 4]),
    "perceptron": (PERCEPTRON, _weights(first=(64, 20), second=(12, 64)), [4, 20], [4, 12]),
    "normed": (NORMED, {"epsilon": np.float32(1e-3)} | _weights(dense=(24, 16)), [2, 6, 24], [2, 6, 16]),
    "upscaling": (UPSCALING, _SCALES | _weights(first=(6, 3, 3, 3), wider=(6, 4, 2, 2)), [1, 3, 8, 8], [1, 8, 32, 32]),
}


def _files(name: str, folder: Path) -> tuple[bytes, bytes]:
    """Return the float32 and the FLOAT16 file of a network. Skips without onnx2tf."""
    try:
        command = onnx_file._command()
    except MissingExtra as missing:
        pytest.skip(str(missing))
    nodes, constants, shape, result = NETWORKS[name]
    used = {input_ for each in nodes for input_ in each.input}
    given = [onnx.numpy_helper.from_array(np.asarray(value), key) for key, value in constants.items() if key in used]
    ends = [onnx.helper.make_tensor_value_info(*end) for end in (("x", 1, shape), ("y", 1, result))]
    graph = onnx.helper.make_graph(nodes, name, ends[:1], ends[1:], given)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / f"{name}.onnx")
    arguments = "-i", str(folder / f"{name}.onnx"), "-o", str(folder / "out")
    subprocess.run([*command, *arguments], cwd=folder, capture_output=True, check=True, timeout=300)
    wide, half = (next((folder / "out").glob(f"*_{kind}.tflite")).read_bytes() for kind in ("float32", "float16"))
    return wide, half


def _run(content: bytes, x: Array, delegates: Sequence[Any] = ()) -> tuple[Array, Interpreter]:
    interpreter = Interpreter(content, delegates=[*delegates])
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), interpreter


@pytest.mark.parametrize("name", NETWORKS)
def test_network(name: str, tmp_path: Path) -> None:
    wide, half = _files(name, tmp_path)
    (detail,) = Interpreter(half).get_input_details()
    assert detail["dtype"] == np.float16
    x = np.random.default_rng(1).standard_normal(detail["shape"]).astype(np.float16)
    on_cpu, _ = _run(half, x)
    on_device, interpreter = _run(half, x, [CLDelegate("native")])
    assert all(row.claimed for row in interpreter.delegation_report().nodes)
    (expected,) = oracle.run(wide, [x.astype(np.float32)], oracle.RESOLVERS["default"])
    largest = np.abs(expected).max()
    for got in (on_cpu, on_device):
        assert got.dtype == np.float16
        assert np.abs(got.astype(np.float32) - expected).max() < 2e-3 * largest  # 4 units in FLOAT16's last place
    if name in REFUSED:
        with pytest.raises(RuntimeError, match=REFUSED[name]):
            oracle.run(half, [x], oracle.RESOLVERS["default"])
        return
    (theirs,) = oracle.run(half, [x], oracle.RESOLVERS["default"])
    for got in (on_cpu, on_device):
        assert np.abs(got.astype(np.float32) - theirs.astype(np.float32)).max() < 4e-3 * largest  # it rounds each step
