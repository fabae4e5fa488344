"""Bodies of STABLEHLO_REDUCE_WINDOW and STABLEHLO_SCATTER, which are declared for scalars and called on arrays."""

from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model, Subgraph, TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops import binary
from litecl.interpreter.ops.reduce_window import STABLEHLO_REDUCE_WINDOW, StablehloReduceWindowOptions
from litecl.interpreter.ops.stablehlo import (
    STABLEHLO_ADD,
    STABLEHLO_MAXIMUM,
    STABLEHLO_MINIMUM,
    STABLEHLO_MULTIPLY,
    STABLEHLO_SCATTER,
    StablehloScatterOptions,
)
from litecl.interpreter.schema import TensorType
from support import compare, devices, oracle
from support.build import Graph, model, randn
from support.shared import SHARED, needs_shared

RNG = np.random.default_rng(97)
COMPUTATIONS = (
    (binary.ADD, STABLEHLO_ADD),
    (binary.MUL, STABLEHLO_MULTIPLY),
    (binary.MAXIMUM, STABLEHLO_MAXIMUM),
    (binary.MINIMUM, STABLEHLO_MINIMUM),
)
"""Operators that the device runs, and those of the same function that LiteRT takes as bodies."""
FLOAT, INT = TensorType.FLOAT32, TensorType.INT32


def _computation(op: Op, given: TensorType = FLOAT) -> Subgraph:
    g = Graph("computation")
    a, b = g.input((), given), g.input((), given)
    return g.build(g.op(op, [a, b], op.options()))


def _reduced(body: Subgraph) -> Model:
    g = Graph()
    x, start = g.input((4, 5)), g.const(np.float32(1.5))
    options = StablehloReduceWindowOptions((2, 3), (2, 1), (1, 1), (1, 2), (1, 0, 2, 1), 1)
    (y,) = g.node(STABLEHLO_REDUCE_WINDOW, (x, start), [TensorSpec(FLOAT, (2, 4))], options)
    return model(g.build(g.op(binary.ADD, [y, y], binary.AddOptions())), body)


def _scattered(body: Subgraph) -> Model:
    g = Graph()
    x, updates = g.input((4, 3)), g.input((3, 3))
    options = StablehloScatterOptions(
        update_window_dims=(1,),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        index_vector_dim=1,
        update_computation_subgraph_index=1,
    )
    indices = g.const(np.array([[2], [0], [2]], np.int64))
    (y,) = g.node(STABLEHLO_SCATTER, (x, indices, updates), [TensorSpec(FLOAT, (4, 3))], options)
    return model(g.build(g.op(binary.ADD, [y, y], binary.AddOptions())), body)


def _outputs(content: bytes, feeds: list[Array], device: Any) -> list[Array]:
    interpreter = Interpreter(model_content=content, delegates=[CLDelegate(device, num_threads=1, strict=True)])
    interpreter.allocate_tensors()
    for detail, feed in zip(interpreter.get_input_details(), feeds, strict=True):
        interpreter.set_tensor(detail["index"], feed)
    for _ in range(2):
        interpreter.invoke()
    assert interpreter.delegation_report().partitions
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


@pytest.mark.parametrize("op, theirs", COMPUTATIONS, ids=lambda op: op.name)
@pytest.mark.parametrize("make", [_reduced, _scattered])
@devices.on_each
def test_a_body_that_the_device_could_run_gets_arrays(device: Any, make: Any, op: Op, theirs: Op) -> None:
    feeds = [randn(RNG, 4, 5)] if make is _reduced else [randn(RNG, 4, 3), randn(RNG, 3, 3)]
    expected = oracle.run(write(make(_computation(theirs))), feeds)
    for got, wanted in zip(_outputs(write(make(_computation(op))), feeds, device), expected, strict=True):
        compare.assert_close(got, wanted, compare.DEVICE["float32"])


@needs_shared
@devices.on_each
def test_a_converted_model(device: Any) -> None:
    content = (SHARED / "llm/torch_conv3d.tflite").read_bytes()
    feeds = [randn(RNG, *detail["shape"]) for detail in Interpreter(model_content=content).get_input_details()]
    for got, wanted in zip(_outputs(content, feeds, device), oracle.run(content, feeds), strict=True):
        compare.assert_close(got, wanted, compare.DEVICE["float32"])


@pytest.mark.parametrize("make", [_reduced, _scattered])
def test_a_body_of_another_type_is_refused(make: Any) -> None:
    interpreter = Interpreter(make(_computation(binary.ADD, INT)))
    with pytest.raises(ModelError, match=r"input 0 of subgraph 1 .*: expected type INT32, got FLOAT32"):
        interpreter.allocate_tensors()
