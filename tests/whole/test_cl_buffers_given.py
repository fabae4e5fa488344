"""The context and buffers that a user gives to a ``CompiledModel``: those accepted, and those refused."""

import numpy as np
import pyopencl as cl
import pytest

from litecl.compiled_model import (
    CompiledModel,
    CpuKernelMode,
    CpuOptions,
    Environment,
    EnvironmentOptions,
    HardwareAccelerator,
    Options,
    TensorBuffer,
)
from litecl.delegate import CLDelegate
from litecl.delegate.opencl.devices.device import devices
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ArgumentError, DeviceNotFound, ModelError, ShapeError
from support.cl_user import User, assert_holds, from_cl
from support.compiled import CONTENT, A, X, expected

SINGLE = devices()[0]


@pytest.mark.parametrize(
    ("accelerator", "mode"),
    [
        (HardwareAccelerator.CPU, None),
        (HardwareAccelerator.GPU | HardwareAccelerator.CPU, None),
        (HardwareAccelerator.CPU, CpuKernelMode.REFERENCE),
    ],
)
def test_the_environment_gives_the_context(accelerator: HardwareAccelerator, mode: CpuKernelMode | None) -> None:
    """Kernels of numpy get copies."""
    user = User(SINGLE)
    environment = Environment.create(options=EnvironmentOptions(cl_context=user.context))
    options = Options(accelerator, CpuOptions(kernel_mode=mode))
    model_ = CompiledModel.from_buffer(CONTENT, environment=environment, options=options)
    assert model_.is_fully_accelerated() == (mode is None)
    outputs = user.empty((1, 4), (1, 4))
    model_.run_by_index(0, user.holding(X, A), outputs)
    assert_holds(outputs, [want.reshape(1, 4) for want in expected(X, A)])


def test_a_context_of_several_devices_is_none_for_a_model() -> None:
    interpreter = Interpreter(CONTENT, delegates=[CLDelegate(cl.Context(devices()[:2]))])
    with pytest.raises(DeviceNotFound, match="one device, got one of 2"):
        interpreter.allocate_tensors()


def test_what_does_not_fit_is_refused() -> None:
    user, other = User(SINGLE), User(SINGLE)
    model_, inputs, outputs = user.compiled(CONTENT), user.holding(X, A), user.empty((1, 4), (1, 4))

    def refused(ins: list[TensorBuffer], outs: list[TensorBuffer], message: str) -> None:
        with pytest.raises(ModelError, match=message):
            model_.run_by_index(0, ins, outs)

    refused([*other.holding(X), inputs[1]], outputs, "another OpenCL context than the model")
    refused(inputs, [outputs[0], *other.empty((1, 4))], "another OpenCL context than the model")
    whole = np.zeros((1, 4), np.int32)
    refused(inputs, [outputs[0], *user.holding(whole)], r"float32\[1, 4\], got int32\[1, 4\]")
    refused(inputs, [outputs[0], *user.empty((2, 2))], r"float32\[1, 4\], got float32\[2, 2\]")
    refused([*user.holding(whole), inputs[1]], outputs, "expected a buffer of float32, got int32")
    model_.run_by_index(0, inputs, outputs)  # is as it was
    assert_holds(outputs, [want.reshape(1, 4) for want in expected(X, A)])
    outputs[0].destroy()
    refused(inputs, outputs, "destroyed")
    with pytest.raises(ModelError, match="destroyed"):
        outputs[0].read()


def test_what_is_no_buffer_is_refused() -> None:
    user = User(SINGLE)
    with pytest.raises(ShapeError, match="takes 16 bytes, the buffer has 12"):
        from_cl(user.buffer(np.zeros(3, np.float32)), (4,))
    for shape, dtype in (((-1, 4), np.float32), ((4,), np.object_)):
        with pytest.raises(ShapeError, match="from_cl_mem"):
            from_cl(user.buffer(X), shape, dtype)
    with pytest.raises(ArgumentError, match=r"pyopencl.Buffer, got ndarray"):
        from_cl(X, X.shape)
    (buffer,) = user.holding(X)
    with pytest.raises(ModelError, match="device memory"):
        _ = buffer.array
    assert buffer.get_tensor_details() == {"dtype": "float32", "shape": [1, 4]}
