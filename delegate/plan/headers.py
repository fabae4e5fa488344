"""The records and codes that kernel files include by name: ``#include <Geometry>``."""

from enum import IntEnum
from functools import cache

from litecl.delegate.kit.shared import text
from litecl.delegate.kit.strided import LocalSquare, Place, Square
from litecl.delegate.matmul.attention import Attention, AttentionBegin
from litecl.delegate.matmul.geometry import Geometry
from litecl.delegate.matmul.heads import LocalAttention, LocalAttentionBegin
from litecl.delegate.matmul.lines import LineConvolution
from litecl.delegate.matmul.local_product import LocalProduct, Slice
from litecl.delegate.matmul.patches import Gather, GatherSize
from litecl.delegate.matmul.product import Begin
from litecl.delegate.matmul.winograd import Winograd
from litecl.delegate.ops.chain import ChainArray, ChainStep, StepCode
from litecl.delegate.ops.conv_2d import Convolution
from litecl.delegate.ops.depthwise_conv_2d import Depthwise
from litecl.delegate.ops.gather import Axis
from litecl.delegate.ops.gpu.integer_products import LocalBytes
from litecl.delegate.ops.gpu.winograd import WinogradPatches
from litecl.delegate.ops.inverted_residual import InvertedResidual
from litecl.delegate.ops.quantized.batch_matmul_16 import WordProducts
from litecl.delegate.ops.quantized.binary import LinearSum, ScaledPair
from litecl.delegate.ops.quantized.depthwise_16 import WordDepthwise
from litecl.delegate.ops.quantized.depthwise_conv_2d import QuantizedDepthwise
from litecl.delegate.ops.resize import Between
from litecl.delegate.plan.region_tables import (
    BranchFlag,
    Control,
    Count,
    Entry,
    LaunchLine,
    LoopFlag,
    NativeCall,
    RegionSize,
    Shift,
    StepTime,
)
from litecl.delegate.quantized.hybrid_product import HybridConvolution, HybridRow
from litecl.delegate.quantized.integer_product import QuantizedConvolution
from litecl.delegate.quantized.integers import Scale, StageRow, WideRow
from litecl.delegate.recurrent.integer_cell import IntegerGate, IntegerRecurrence, IntegerTable
from litecl.delegate.recurrent.time_loop import Gate, Peephole, Recurrence
from litecl.interpreter.errors import KernelBuildError


class Peak(IntEnum):
    """CHAINS: independent multiply-adds in flight in peak.cl; STREAMS: independent reads (``perf/measure/peak.py``)."""

    CHAINS = 12
    STREAMS = 8


RECORDS: tuple[type, ...] = (
    *(Attention, AttentionBegin, LocalAttention, LocalAttentionBegin),
    *(Axis, Begin, Between, ChainStep, Convolution, Depthwise, Entry, Gather, Geometry, HybridConvolution, IntegerGate),
    *(IntegerRecurrence, LinearSum, Place, QuantizedConvolution, QuantizedDepthwise, Recurrence, Scale, ScaledPair),
    *(InvertedResidual, LineConvolution, LocalBytes, LocalProduct, Slice, Winograd, WinogradPatches, WordDepthwise),
    WordProducts,
)
CODES: tuple[type, ...] = (
    *(
        BranchFlag,
        ChainArray,
        Control,
        Count,
        Gate,
        GatherSize,
        HybridRow,
        IntegerTable,
        LaunchLine,
        LocalSquare,
        LoopFlag,
        NativeCall,
    ),
    *(Peak, Peephole, RegionSize, Shift, Square, StageRow, StepCode, StepTime, WideRow),
)
_BY_NAME = {shared.__name__: shared for shared in (*RECORDS, *CODES)}


@cache
def header(name: str) -> str:
    """Return the OpenCL C of a record or of codes. Raises KernelBuildError if there is none of that name."""
    if name not in _BY_NAME:
        raise KernelBuildError(f"#include <{name}>: expected one of {', '.join(sorted(_BY_NAME))}")
    return text(_BY_NAME[name])
