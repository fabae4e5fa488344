"""How fast a device can multiply and add: the yardstick for what kernels reach."""

import time

import numpy as np
import pyopencl as cl

from litecl.delegate.opencl.device import Device, choose
from litecl.delegate.plan.headers import Peak

_STEPS = 20_000
_RUNS = 12


def fma_flops() -> float:
    """The most float32 operations a second, an addition and a product each, of one CPU core or of a whole GPU."""
    device = Device(choose(None, 1, 0.0), profile=False, cache_dir=None)
    target = device.target
    items = target.compute_units * (64 if target.kind == "cpu" else 4096)
    steps = _STEPS // (1 if target.kind == "cpu" else 10)
    kernel = device.programs.kernel("peak", "peak", {})
    out = device.buffer(4 * items)
    kernel.set_args(out, np.int32(steps), np.float32(0.5), np.float32(1.0))
    times_s = []
    for _ in range(_RUNS):
        start_s = time.perf_counter()
        cl.enqueue_nd_range_kernel(device.queue, kernel, (items,), (1,))
        device.queue.finish()
        times_s.append(time.perf_counter() - start_s)
    return 2.0 * items * steps * Peak.CHAINS * target.vector_width / min(times_s)
