"""Devices that do not compute in float64: kernels do it in integers there, with the same results to the last bit."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.analysis.explicit import explicit
from litecl.delegate.cl_op import ClOp
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.claim.partition import partition
from litecl.delegate.cpu.target import CpuTarget
from litecl.delegate.opencl.devices import device, programs
from litecl.delegate.ops import CL_OPS
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.unary import EXP
from litecl.interpreter.run.shapes import propagate
from litecl.perf.feeds import run_on
from support import compare, devices
from support.all_cases import DEVICE_CASES, content, expected

_CASES = (
    "FULLY_CONNECTED-INT8 x INT8",
    "FULLY_CONNECTED-INT16 x INT8, 64-bit bias",
    "CONV_2D-INT16 x INT8, halves",
    "DEPTHWISE_CONV_2D-INT16 x INT8, 3x3",
    "TRANSPOSE_CONV-INT16 x INT8, 3x3",
    "CONV_2D-8 bits",
    "FULLY_CONNECTED-8 bits, halves, asymmetric",
    "FULLY_CONNECTED-8 bits, saturates",
    "BATCH_MATMUL-8 bits, asymmetric, adjoint",
    "LSTM-8-bit products",
)
"""One of every kernel, and of every rounding."""
_COUNT = 1 << 14
_RESULTS = """
__kernel void results(__global const ulong *a, __global const ulong *b, __global ulong *mantissas,
                      __global int *exponents, __global float *floats, __global int *wholes) {
    const int i = get_global_id(0), n = get_global_size(0);
    const Real x = real_of_bits(a[i]), y = real_of_bits(b[i]);
    const Real whole = real_of_long((long)a[i]);
    const Real size = {x.mantissa, x.exponent, 0};
    const Real found[] = {PLUS(x, y), MINUS(x, y), times(x, y), OVER(x, y), ROOT(size), REAL(AS_FLOAT(x)), whole};
    for (int k = 0; k < 7; ++k) {
        mantissas[k * n + i] = found[k].negative ? -found[k].mantissa : found[k].mantissa;
        exponents[k * n + i] = found[k].exponent;
    }
    floats[i] = AS_FLOAT(x);
    wholes[i] = LESS(x, y) ? TRUNCATED(y) : TRUNCATED(x);
}
"""


@pytest.fixture(scope="module")
def delegate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CLDelegate]:
    """A delegate for a GPU without float64, whose compiler does not know the word."""
    with pytest.MonkeyPatch.context() as patch:
        options = devices.as_on_a_gpu(patch, tmp_path_factory.mktemp("programs"))
        target, source = device.target_of, programs.source_of
        patch.setattr(device, "target_of", lambda *args: replace(target(*args), float64=False))
        lesser = "#undef cl_khr_fp64\n#define double no_float64\n"
        patch.setattr(programs, "source_of", lambda file: lesser + source(file))
        yield CLDelegate(**options, strict=True, dynamic_range="reference")


@pytest.mark.parametrize("name", _CASES)
def test_kernels_agree(name: str, delegate: CLDelegate) -> None:
    """Integers are equal, and floats as close as with float64."""
    case = next(case for case in DEVICE_CASES if repr(case).startswith(name))
    devices.needs_cells(case)
    interpreter = Interpreter(model_content=content(case), delegates=[delegate])
    run_on(interpreter, case.feeds)
    assert all(row.claimed for row in interpreter.delegation_report().nodes)
    for detail, wanted in zip(interpreter.get_output_details(), expected(case), strict=True):
        got = np.asarray(interpreter.get_tensor(detail["index"]))
        compare.assert_close(got, wanted, compare.DEVICE.get(wanted.dtype.name, 0.0))


def test_a_kernel_that_needs_float64_is_refused() -> None:
    """As an operator of a user's own may; the reason is in the report."""
    case = next(case for case in DEVICE_CASES if case.op is EXP)
    needy = {**CL_OPS, EXP: ClOp(EXP, lambda *node: None, lambda call: [], float64=lambda *node: True)}
    options = CLOptions(custom_ops=[op for op in needy.values() if isinstance(op, ClOp)])
    model = case.model()
    graph = model.subgraphs[0]
    specs = propagate(model, {0: [graph.tensors[t].static_shape for t in graph.inputs]})
    found = partition(0, explicit(model, specs), options, target=CpuTarget(4, 1, float64=False))
    assert found.reasons == {0: "its kernel computes in float64, and the device does not"}
    assert not partition(0, explicit(model, specs), options, preserve=False).reasons


def _operands() -> tuple[Array, Array]:
    """Return pairs of all magnitudes, of equal ones, of whole numbers, and of neighbours."""
    random = np.random.default_rng(3)
    signs = random.choice([-1.0, 1.0], (2, _COUNT))
    a, b = np.exp2(random.uniform(-160, 130, (2, _COUNT))) * signs
    quarter = _COUNT // 4
    b[:quarter] = a[:quarter] * random.uniform(0.5, 2, quarter) * signs[0, :quarter]
    a[quarter : 2 * quarter] = np.rint(random.normal(0, 1e5, quarter))
    b[quarter : 2 * quarter] = random.integers(1, 512, quarter) / 2
    a[:8], b[:8] = [0, 0, 1, -1, 0.5, 2**53 - 1, 2**-149, 3 * 2.0**-150], [1, -3, 1, 1, -0.5, 2**-52, 1, 1]
    return a, b


def _run(any_device: Any, a: Array, b: Array) -> list[Array]:
    """Return what the kernel above computes of float64's bits: seven rows of numbers, floats and whole numbers."""
    before = "#define MAX(a, b) ((a) > (b) ? (a) : (b))\n#undef cl_khr_fp64\n"
    source = f"{before}{programs.source_of('float64.h')}{_RESULTS}"
    context = cl.Context([any_device])
    kernel = cl.Kernel(cl.Program(context, source).build(cache_dir=False), "results")
    queue = cl.CommandQueue(context)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    kinds = (("int64", 7), ("int32", 7), ("float32", 1), ("int32", 1))
    made = [np.zeros((rows, len(a)), kind) for kind, rows in kinds]
    buffers = [cl.Buffer(context, flags, hostbuf=array) for array in (a, b, *made)]
    kernel(queue, a.shape, None, *buffers)
    for array, buffer in zip(made, buffers[2:], strict=True):
        cl.enqueue_copy(queue, array, buffer)
    return made


def test_arithmetic_is_that_of_float64() -> None:
    """Sums, differences, products, quotients, roots and conversions are those of the host, bit for bit."""
    a, b = _operands()
    mantissas, exponents, floats, wholes = _run(devices.tested()[0], a, b)
    got = np.ldexp(mantissas.astype(np.float64), exponents)
    with np.errstate(over="ignore", under="ignore"):
        of_bits = a.view(np.int64).astype(np.float64)
        wanted = np.stack([a + b, a - b, a * b, a / b, np.sqrt(np.abs(a)), a.astype(np.float32), of_bits])
    small = np.abs(a) < 2.0**127  # what a float holds
    np.testing.assert_array_equal(got[:5], wanted[:5])
    np.testing.assert_array_equal(got[5, small], wanted[5, small])
    np.testing.assert_array_equal(got[6], wanted[6])
    np.testing.assert_array_equal(floats[0, small], a[small].astype(np.float32))
    larger = np.maximum(a, b)
    whole = np.abs(larger) < 2**31
    np.testing.assert_array_equal(wholes[0, whole], np.trunc(larger[whole]))
