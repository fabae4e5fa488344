"""A program with OpenCL memory of its own, for tests of ``TensorBuffer.from_cl_mem``."""

from typing import Any

import numpy as np
import pyopencl as cl

from litecl.compiled_model import CompiledModel, Environment, TensorBuffer
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Model
from litecl.perf.feeds import run_on

from_cl = TensorBuffer.from_cl_mem


class User:
    """A context, a queue and buffers, as a program with kernels of its own has them."""

    def __init__(self, device: Any) -> None:
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context)

    def buffer(self, value: np.ndarray) -> Any:
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        return cl.Buffer(self.context, flags, hostbuf=np.ascontiguousarray(value))

    def holding(self, *values: np.ndarray) -> list[TensorBuffer]:
        return [from_cl(self.buffer(value), value.shape, value.dtype) for value in values]

    def empty(self, *shapes: tuple[int, ...]) -> list[TensorBuffer]:
        return self.holding(*(np.full(shape, np.nan, np.float32) for shape in shapes))

    def compiled(self, content: bytes | Model, **options: Any) -> CompiledModel:
        delegate = CLDelegate(self.context, **options)
        return CompiledModel(Interpreter(content, delegates=[delegate]), Environment())


def by_numpy(content: bytes | Model, *values: np.ndarray) -> list[np.ndarray]:
    interpreter = Interpreter(content)
    return run_on(interpreter, values)


def assert_holds(buffers: list[TensorBuffer], wanted: list[np.ndarray]) -> None:
    for buffer, want in zip(buffers, wanted, strict=True):
        np.testing.assert_allclose(buffer.read().reshape(want.shape), want, rtol=1e-5, atol=1e-6)
