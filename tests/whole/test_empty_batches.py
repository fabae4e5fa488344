"""Recurrent operators and convolutions on batches of no rows: empty outputs, as LiteRT's kernels have them."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT
from ai_edge_litert.interpreter import OpResolverType

from litecl.cases import Case, conv_2d, conv_3d, hybrid, integer_conv, integer_lstm, lstm, rnn
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Shape, TensorSpec
from litecl.interpreter.ops.conv_3d_transpose import CONV_3D_TRANSPOSE
from litecl.interpreter.ops.svdf import SVDF
from support import devices

RECURRENT = ("LSTM", "RNN", "SVDF")


def _kinds() -> Iterator[Case]:
    """Yield the cases of recurrent operators whose states a variable holds, and of 1x1 convolutions."""
    for module in (conv_2d, conv_3d, integer_conv):
        cases = [case for case in module.CASES if "CONV" in case.op.name and "1x1" in case.name]
        yield from (case for case in cases if case.op is not CONV_3D_TRANSPOSE)  # which is told the batch
    for module in (lstm, rnn, hybrid, integer_lstm):
        for case in module.CASES:
            if case.op.name.endswith(RECURRENT) and case.op.states:
                yield case


KINDS = tuple(_kinds())


def _without_rows(case: Case) -> bytes:
    """Return the model of a case with a batch of 0."""
    made = case.model()
    (graph,) = made.subgraphs
    time_major = getattr(case.options, "time_major", True)

    def emptied(tensor: int, spec: TensorSpec) -> TensorSpec:
        rank, data = len(spec.static_shape), spec.data
        if not (spec.is_variable or tensor in graph.inputs or rank == 3):
            return spec  # a weight, or an output, whose shape is inferred
        axis = int(rank == 3 and time_major)
        shape = [0 if i == axis else dim for i, dim in enumerate(spec.static_shape)]
        return replace(spec, shape=tuple(shape), data=None if data is None else data.take([], axis))

    tensors = tuple(emptied(i, spec) for i, spec in enumerate(graph.tensors))
    return write(replace(made, subgraphs=(replace(graph, tensors=tensors),)))


def _shapes(interpreter: Any) -> list[Shape]:
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], np.zeros(detail["shape"], detail["dtype"]))
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]).shape for detail in interpreter.get_output_details()]


def _expected(case: Case, content: bytes) -> list[Shape]:
    if case.op is SVDF:  # LiteRT's reference kernel divides by the number of rows, which ends the process
        return [(0, *spec.static_shape[1:]) for spec in case.op.infer(case.options, _specs(case))]
    return _shapes(LiteRT(model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF))


def _specs(case: Case) -> list[TensorSpec | None]:
    (graph,) = case.model().subgraphs
    return [None if t < 0 else graph.tensors[t] for t in graph.nodes[0].inputs]


@pytest.mark.parametrize("case", KINDS, ids=repr)
def test_interpreter(case: Case) -> None:
    content = _without_rows(case)
    shapes = _shapes(Interpreter(model_content=content))
    assert shapes == _expected(case, content)
    assert all(0 in shape for shape in shapes)


@devices.on_each
def test_devices(device: Any) -> None:
    """Nothing is launched for nothing; the states, which have no elements, stay where they are."""
    for case in {case.op: case for case in KINDS}.values():
        content = _without_rows(case)
        delegates = [CLDelegate(device, num_threads=1, dynamic_range="reference")]
        assert _shapes(Interpreter(model_content=content, delegates=delegates)) == _expected(case, content), repr(case)
