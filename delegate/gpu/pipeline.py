"""The passes over a region's graph for GPUs, in order."""

from litecl.delegate.gpu.passes.gates import gates
from litecl.delegate.gpu.passes.heads import heads
from litecl.delegate.gpu.passes.inverted import inverted
from litecl.delegate.gpu.passes.separable import separable
from litecl.delegate.plan.passes.attention import attention
from litecl.delegate.plan.passes.chains import chains
from litecl.delegate.plan.passes.coordinates import coordinates
from litecl.delegate.plan.passes.epilogues import epilogues
from litecl.delegate.plan.passes.in_place import in_place
from litecl.delegate.plan.passes.joins import joins
from litecl.delegate.plan.passes.layer_norms import layer_norms
from litecl.delegate.plan.passes.pads import pads
from litecl.delegate.plan.passes.parts import parts
from litecl.delegate.plan.passes.rope import rope
from litecl.delegate.plan.pipeline import Pass

GPU_PASSES: tuple[Pass, ...] = (
    *(in_place, parts, coordinates, rope, attention, heads, layer_norms, pads, epilogues),
    *(gates, separable, inverted, chains, joins),
)
