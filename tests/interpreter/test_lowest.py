"""A node is written with the lowest version that supports it, as in TensorFlow Lite's op_version.cc."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from litecl.cases import Case
from litecl.converter.versions import version_of
from litecl.interpreter.graph import Node, Quantization, TensorSpec
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops.binary import ADD, SUB, AddOptions, SubOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.gather import GATHER, GatherOptions
from litecl.interpreter.ops.pad import PAD
from litecl.interpreter.ops.quantize import DEQUANTIZE
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.ops.transpose_conv import TRANSPOSE_CONV, TransposeConvOptions
from litecl.interpreter.schema import Padding, TensorType
from support.all_cases import CASES

F, I8, I16, I64, BOOL = (TensorType[name] for name in ("FLOAT32", "INT8", "INT16", "INT64", "BOOL"))
_CONV, _TRANSPOSED = Conv2DOptions(Padding.SAME, 1, 1), TransposeConvOptions(Padding.SAME, 1, 1)
_OF_ROWS = Quantization(np.ones(3, np.float32), np.zeros(3, np.int64), 0)

# Operator, options, types of inputs, the number of their dimensions, version.
_KNOWN: Sequence[tuple[Op, Any, Sequence[TensorType], int, int]] = (
    (CONV_2D, _CONV, (F, F, F), 4, 1),
    (CONV_2D, _CONV, (F, I8, F), 4, 5),
    (CONV_2D, _CONV, (I8, I8), 4, 3),
    (CONV_2D, _CONV, (I16, I8), 4, 4),
    (FULLY_CONNECTED, FullyConnectedOptions(), (F, F, F), 2, 1),
    (FULLY_CONNECTED, FullyConnectedOptions(), (F, F), 2, 6),
    (FULLY_CONNECTED, FullyConnectedOptions(keep_num_dims=True), (F, F, F), 2, 5),
    (FULLY_CONNECTED, FullyConnectedOptions(), (F, I8, F), 2, 12),
    (FULLY_CONNECTED, FullyConnectedOptions(), (I16, I8, I64), 2, 7),
    (ADD, AddOptions(), (F, F), 2, 1),
    (ADD, AddOptions(), (I8, I8), 2, 2),
    (ADD, AddOptions(), (I64, I64), 2, 4),
    (SUB, SubOptions(), (F, F), 5, 1),
    (GATHER, GatherOptions(0, 1), (F, I64), 2, 5),
    (GATHER, GatherOptions(0, 0), (BOOL, I64), 2, 3),
    (PAD, NoOptions(), (F, I64), 5, 4),
    (SOFTMAX, SoftmaxOptions(1.0), (I16,), 2, 3),
    (TRANSPOSE_CONV, _TRANSPOSED, (I64, F, F, F), 4, 3),
)


def version(op: Op, options: Any, inputs: Sequence[TensorSpec | None]) -> int:
    return version_of(Node(op, tuple(range(len(inputs))), (len(inputs),), options), inputs)


@pytest.mark.parametrize(("op", "options", "types", "rank", "known"), _KNOWN)
def test_known(op: Op, options: Any, types: Sequence[TensorType], rank: int, known: int) -> None:
    assert version(op, options, [TensorSpec(type_, (2,) * rank) for type_ in types]) == known


def test_by_shapes_and_scales() -> None:
    """Operands that broadcast in five dimensions, and a scale for every row."""
    wide, narrow = TensorSpec(F, (2, 1, 2, 2, 2)), TensorSpec(F, (2,))
    assert version(SUB, SubOptions(), [wide, narrow]) == 3
    assert version(DEQUANTIZE, NoOptions(), [TensorSpec(I8, (3, 2), quantization=_OF_ROWS)]) == 5
    assert version(DEQUANTIZE, NoOptions(), [TensorSpec(I8, (3, 2))]) == 2


@pytest.mark.parametrize("case", CASES[::7], ids=repr)
def test_versions_are_among_those_that_are_read(case: Case) -> None:
    (graph,) = case.model().subgraphs
    (node,) = graph.nodes
    assert version_of(node, [None if t < 0 else graph.tensors[t] for t in node.inputs]) in case.op.versions
