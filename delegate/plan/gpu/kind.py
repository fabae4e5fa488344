"""Planning for GPUs."""

from functools import partial

from litecl.delegate.ops.gpu import cells
from litecl.delegate.plan.gpu import one_group
from litecl.delegate.plan.gpu.pipeline import GPU_PASSES
from litecl.delegate.plan.kind import Kind
from litecl.delegate.plan.pipeline import fused

GPU = Kind(partial(fused, passes=GPU_PASSES), one_group.narrowed, one_group.gathered, cells.run, lends=False)
