"""No tensor larger than the machine bears: refused where its shape becomes known, before anything is allocated."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from litecl.interpreter import Interpreter, limits
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops import broadcast_to, fill, one_hot, pad, resize, tile
from litecl.interpreter.schema import TensorType
from support.build import Graph, model

# Operator, options, operands and the position of the one that gives the size, with the bytes that it asks for.
_ASKING = [
    (fill.FILL, NoOptions(), [np.int64([1 << 20, 1 << 25]), np.float32(1)], 0, 1 << 47),
    (fill.RANGE, NoOptions(), [np.float32(0), np.float32(2**45), np.float32(1)], 1, 1 << 47),
    (fill.RANGE, NoOptions(), [np.int64(0), np.int64(1 << 45), np.int64(1)], 1, 1 << 48),
    (tile.TILE, NoOptions(), [np.ones((2, 2), np.int16), np.int32([1 << 22, 1 << 22])], 1, 1 << 47),
    (broadcast_to.BROADCAST_TO, NoOptions(), [np.int8([[1]]), np.int32([1 << 25, 1 << 25])], 1, 1 << 50),
    (
        resize.RESIZE_BILINEAR,
        resize.ResizeBilinearOptions(),
        [np.ones((1, 2, 2, 1), np.float32), np.int32([1 << 22, 1 << 22])],
        1,
        1 << 46,
    ),
    (pad.PAD, NoOptions(), [np.ones((1, 1), np.float32), np.int32([[0, (1 << 22) - 1]] * 2)], 1, 1 << 46),
    (
        one_hot.ONE_HOT,
        one_hot.OneHotOptions(),
        [np.zeros((1 << 16, 1), np.int32), np.int32(1 << 30), np.float32(1), np.float32(0)],
        1,
        1 << 48,
    ),
]


@pytest.mark.parametrize(("op", "options", "operands", "size", "size_bytes"), _ASKING)
@pytest.mark.parametrize("constant", [True, False], ids=["constant", "fed"])
def test_outputs(op: Op, options: Any, operands: list[Any], size: int, size_bytes: int, constant: bool) -> None:
    graph = Graph()
    values = [np.asarray(value) for value in operands]
    tensors = [
        graph.const(value) if constant or i != size else graph.input(value.shape, TensorType.of(value.dtype))
        for i, value in enumerate(values)
    ]
    (output,) = graph.node(op, tensors, [TensorSpec(TensorType.of(_output_type(op, values)), None)], options)
    graph.nodes = [replace(node, version=op.versions[0]) for node in graph.nodes]
    interpreter = Interpreter(model(graph.build(output)))
    with pytest.raises(ModelError, match=rf"'{op.name}_\d+' of shape .* takes {size_bytes} bytes") as caught:
        interpreter.allocate_tensors()
        interpreter.set_tensor(tensors[size], values[size])
        interpreter.invoke()
    doing = "preparing" if constant else "running"
    assert caught.value.__notes__ == [f"while {doing} {op.name} (subgraph 0, node 0)"]


def _output_type(op: Op, operands: list[Array]) -> np.dtype[Any]:
    return operands[{fill.FILL: 1, one_hot.ONE_HOT: 2}.get(op, 0)].dtype


def test_inputs_and_variables() -> None:
    graph = Graph()
    x = graph.input((2, 2))
    interpreter = Interpreter(model(graph.build(x)))
    interpreter.resize_tensor_input(x, (1 << 24, 1 << 24))
    with pytest.raises(ModelError, match=f"'main_in0' .* takes {1 << 50} bytes"):
        interpreter.allocate_tensors()
    graph = Graph()
    state = graph.variable((1 << 24, 1 << 24))
    interpreter = Interpreter(model(graph.build(state)))
    interpreter.allocate_tensors()
    with pytest.raises(ModelError, match=f"'var0' .* takes {1 << 50} bytes"):
        interpreter.invoke()


def test_the_limit_itself_is_within(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of sizes that differ from invoke to invoke too, given by a floating-point number."""
    monkeypatch.setattr(limits, "MOST_BYTES", 400)
    graph = Graph()
    limit = graph.input(())
    (output,) = graph.node(
        fill.RANGE,
        [graph.const(np.float32(0)), limit, graph.const(np.float32(1))],
        [TensorSpec(TensorType.FLOAT32, None)],
        NoOptions(),
    )
    interpreter = Interpreter(model(graph.build(output)))
    interpreter.allocate_tensors()
    for count in (100, 99, 101):
        interpreter.set_tensor(limit, np.float32(count))
        if count <= 100:
            interpreter.invoke()
            assert interpreter.get_tensor(output).shape == (count,)
    with pytest.raises(ModelError, match="takes 404 bytes, expected at most 400"):
        interpreter.invoke()
