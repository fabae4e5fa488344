"""The records and enums that kernel files include by name: ``#include <Geometry>``.

A record named after its operator's module (``FooBar`` in ``delegate/ops/foo_bar.py``) needs no row.
"""

from collections.abc import Mapping
from enum import IntEnum
from functools import cache
from importlib import import_module

from litecl.delegate.kit.shared import snake, text
from litecl.interpreter.errors import KernelBuildError


class Peak(IntEnum):
    """CHAINS: independent multiply-adds in flight in peak.cl; STREAMS: independent reads (``perf/peak.py``)."""

    CHAINS = 12
    STREAMS = 8


# By declaring module, which is imported when a kernel file includes one of its names.
_DECLARED: Mapping[str, str] = {
    "cpu.lines": "LineConvolution",
    "cpu.winograd": "Winograd",
    "gpu.heads": "LocalAttention LocalAttentionBegin",
    "gpu.local_product": "LocalProduct Slice",
    "gpu.ops.integer_products": "LocalBytes",
    "gpu.ops.inverted_residual": "InvertedResidual",
    "gpu.ops.transpose": "LocalSquare",
    "kit.strided": "Place Square",
    "matmul.attention": "Attention AttentionBegin",
    "matmul.geometry": "Geometry",
    "matmul.patches": "Gather GatherSize",
    "matmul.product": "Begin",
    "ops.chain": "ChainArray ChainStep",
    "ops.chain_steps": "FunctionStep StepCode",
    "ops.conv_2d": "Convolution",
    "ops.conv_3d": "Slide Volume",
    "ops.depthwise_conv_2d": "Depthwise",
    "ops.gather": "Axis",
    "ops.quantized.batch_matmul_16": "WordProducts",
    "ops.quantized.binary": "LinearSum ScaledPair",
    "ops.quantized.depthwise_16": "WordDepthwise",
    "ops.quantized.depthwise_conv_2d": "QuantizedDepthwise",
    "ops.quantized.depthwise_pairs": "PairedDepthwise",
    "ops.resize": "Between",
    "ops.rope": "RopeLoop",
    "ops.weight_only": "WeightOnly",
    "plan.region_tables": "BranchFlag Control Count Entry LaunchLine LoopFlag NativeCall RegionSize Shift StepTime",
    "quantized.hybrid_product": "HybridConvolution HybridRow",
    "quantized.integer_product": "QuantizedConvolution",
    "quantized.integers": "Scale StageRow WideRow",
    "recurrent.integer_cell": "IntegerGate IntegerRecurrence IntegerTable",
    "recurrent.time_loop": "Gate Peephole Recurrence",
    "plan.headers": "Peak",
}
_MODULES = {name: module for module, names in _DECLARED.items() for name in names.split()}
NAMES = tuple(_MODULES)


def shared(name: str) -> type:
    """Return a record or enum by name. Raises KernelBuildError if there is none."""
    own = f"ops.{snake(name)}"
    try:
        record: type = getattr(import_module(f"litecl.delegate.{_MODULES.get(name, own)}"), name)
    except (ModuleNotFoundError, AttributeError):
        raise KernelBuildError(f"#include <{name}>: expected one of {', '.join(sorted(NAMES))}") from None
    return record


@cache
def header(name: str) -> str:
    """Return the OpenCL C of a record or enum by name. Raises KernelBuildError if there is none."""
    return text(shared(name))
