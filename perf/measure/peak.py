"""How fast a device can multiply and add: the yardstick for what kernels reach."""

import time

import numpy as np

from litecl.delegate.cl_op import Launch, Scratch, Target
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.claim.partition import Region
from litecl.delegate.devices import choose
from litecl.delegate.plan.headers import Peak
from litecl.delegate.plan.memory import Arena
from litecl.delegate.plan.plan import Plan
from litecl.delegate.plan.steps import Work
from litecl.delegate.report import Counters

_STEPS = 20_000
_RUNS = 12


def fma_flops() -> float:
    """Return the most float32 operations a second, an addition and a product each, of one CPU core or of a whole
    GPU.
    """
    device = choose(num_threads=1).open(profile=False, directory=None)
    launch = _launch(device.target)
    execution = device.bind(_plan(launch), CLOptions())
    times_s = []
    for _ in range(_RUNS):
        start_s = time.perf_counter()
        execution.run(Counters())
        execution.finish()
        times_s.append(time.perf_counter() - start_s)
    return launch.flops / min(times_s)


def _launch(target: Target) -> Launch:
    cpu = target.kind == "cpu"
    items, steps = target.compute_units * (64 if cpu else 4096), _STEPS // (1 if cpu else 10)
    args = Scratch(4 * items), np.int32(steps), np.float32(0.5), np.float32(1.0)
    return Launch("peak", "peak", args, (items,), flops=2 * items * steps * Peak.CHAINS * target.vector_width)


def _plan(launch: Launch) -> Plan:
    """Return a plan of one launch, whose memory is all scratch."""
    out, work = launch.args[0], Work(0, launch)
    assert isinstance(out, Scratch)
    return Plan(Region(0, (), (), ()), (work,), (work,), (), (), (), {}, {}, (), Arena({out: 0}, out.size_bytes))
