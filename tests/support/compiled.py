"""A model for ``CompiledModel``, and runs of it by litecl and by LiteRT."""

from typing import Any

import ai_edge_litert.compiled_model as theirs
import numpy as np
import pytest

import litecl.compiled_model as ours
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model, Signature, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.control import CALL_ONCE, CallOnceOptions
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.ops.variables import ASSIGN_VARIABLE, READ_VARIABLE, VAR_HANDLE, VarHandleOptions
from litecl.interpreter.schema import TensorType
from support.build import Graph, model, randn

RNG = np.random.default_rng(21)


def _content() -> bytes:
    """Two inputs whose names are in no order, two outputs, one with an open batch dimension."""
    g = Graph()
    x, a = g.input((1, 4), signature=(-1, 4)), g.input((4,))
    sums = g.op(ADD, [g.op(MUL, [x, a], MulOptions()), g.const(randn(RNG, 4))], AddOptions())
    y = g.op(SOFTMAX, [sums], SoftmaxOptions(1.0))
    return write(model(g.build(y, sums), signatures=[Signature("main", {"x": x, "a": a}, {"y": y, "sums": sums})]))


CONTENT = _content()
X, A = randn(RNG, 1, 4), randn(RNG, 4)
LIBRARIES = pytest.mark.parametrize("library", [ours, theirs], ids=["litecl", "LiteRT"])


def compiled(library: Any, content: bytes = CONTENT, **keywords: Any) -> Any:
    return library.CompiledModel.from_buffer(content, **keywords)


def run(model_: Any, inputs: list[Any], outputs: list[Any], *values: Any) -> None:
    """Write inputs and run the first signature."""
    for buffer, value in zip(inputs, values, strict=True):
        buffer.write(value)
    model_.run_by_index(0, inputs, outputs)


def buffers(model_: Any) -> tuple[list[Any], list[Any]]:
    return model_.create_input_buffers(0), model_.create_output_buffers(0)


def expected(x: Any, a: Any) -> list[Any]:
    """What LiteRT computes."""
    model_ = compiled(theirs)
    model_.resize_input_tensor(0, x.shape)
    inputs, outputs = buffers(model_)
    run(model_, inputs, outputs, x, a)
    return [outputs[0].read(x.size, np.float32), outputs[1].read(x.size, np.float32)]


def cpu(mode: str) -> ours.CpuOptions:
    kernels = ours.CpuKernelMode.REFERENCE if mode == "numpy" else ours.CpuKernelMode.DELEGATE
    return ours.CpuOptions(kernel_mode=kernels)


def accumulator() -> Model:
    """A variable, to which the input is added before it is read."""
    resource, value = TensorSpec(TensorType.RESOURCE, ()), TensorSpec(TensorType.FLOAT32, (3,))
    main, init = Graph("main"), Graph("init")
    x = main.input((3,))
    main.node(CALL_ONCE, (), (), CallOnceOptions(1))
    (handle,) = main.node(VAR_HANDLE, (), (resource,), VarHandleOptions("", "sum"))
    (before,) = main.node(READ_VARIABLE, (handle,), (value,), NoOptions())
    (after,) = main.node(ADD, (before, x), (value,), AddOptions())
    main.node(ASSIGN_VARIABLE, (handle, after), (), NoOptions())
    (result,) = main.node(READ_VARIABLE, (handle,), (value,), NoOptions())
    (filled,) = init.node(VAR_HANDLE, (), (resource,), VarHandleOptions("", "sum"))
    init.node(ASSIGN_VARIABLE, (filled, init.const(np.zeros(3, np.float32))), (), NoOptions())
    return model(main.build(result), init.build())
