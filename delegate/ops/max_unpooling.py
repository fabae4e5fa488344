"""MaxPoolingWithArgmax2D and MaxUnpooling2D: maxima of windows with their positions, and the inverse."""

from collections.abc import Sequence
from typing import Any

from litecl.delegate.cl_op import Call, ClOp, Pads, Refusal, Step
from litecl.delegate.kit.claims import FLOAT, Specs, activated, fused_activation, takes
from litecl.delegate.kit.schedule import chunks
from litecl.delegate.matmul.geometry import Geometry, geometry
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.max_unpooling import (
    LITERT_MAX_UNPOOLING_2D,
    MAX_POOLING_WITH_ARGMAX_2D,
    MAX_UNPOOLING_2D,
    Pooling,
    c_structure,
    pooling_of,
)
from litecl.interpreter.ops.pool_2d import Pool2DOptions
from litecl.interpreter.schema import ActivationFunctionType, TensorType

_KERNEL = "max_unpooling"


def _pool_options(pooling: Pooling) -> Pool2DOptions:
    """Return the same options as those of MAX_POOL_2D."""
    (height, width), (stride_h, stride_w) = pooling.size, pooling.strides
    return Pool2DOptions(pooling.padding, stride_w, stride_h, width, height, ActivationFunctionType(pooling.function))


def _claim_pool(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    pooling = pooling_of(options)
    if pooling.function not in tuple(ActivationFunctionType):
        return Refusal(f"fused activation {pooling.function}")
    return activated(_pool_options(pooling), TensorType.FLOAT32)


def _pool(call: Call) -> list[Step]:
    x, (y, places) = call.input(0), call.outputs
    pooling = pooling_of(call.options)
    options = _pool_options(pooling)
    g = geometry(options, x.shape, pooling.size, 1, y.shape, Pads())
    activation = fused_activation(options)
    work = g.taps * g.channels
    share = chunks(_KERNEL, g.pixels, call.target, work=work)
    args = (x, y, places, g, *share.args, *activation.bounds)
    return [share.launch("max_pooling", args, _defines(pooling.in_window) | activation.defines, g.pixels * work)]


def _defines(in_window: bool) -> dict[str, str | int | float]:
    return {"IN_WINDOW": 1} if in_window else {}


def _unpool(call: Call) -> list[Step]:
    x, places, (out,) = call.input(0), call.input(1), call.outputs
    pooling, in_window = c_structure(call.options.data), places.spec.type in FLOAT
    images, height, width, channels = x.shape
    strides = [stride if n > 1 else 1 for n, stride in zip((height, width), pooling.strides, strict=True)]
    reach = [(n - 1) * step + size for n, step, size in zip((height, width), strides, pooling.size, strict=True)]
    before = [max(0, extent - size) // 2 for extent, size in zip(reach, out.shape[1:3], strict=True)]
    g = Geometry(
        images=images,
        height=height,
        width=width,
        channels=channels,
        group_channels=1,
        kernel_height=pooling.size[0],
        kernel_width=pooling.size[1],
        stride_y=strides[0],
        stride_x=strides[1],
        pad_y=before[0],
        pad_x=before[1],
        out_height=out.shape[1],
        out_width=out.shape[2],
        columns=channels,
        group_columns=1,
    )
    beside = in_window and tuple(reach) == out.shape[1:3]
    entry, count = ("unpool_windows", images * height * width) if beside else ("unpool", images)
    share = chunks(_KERNEL, count, call.target, work=out.spec.size // count)
    return [share.launch(entry, (x, places, out, g, *share.args), _defines(in_window))]


CL_OPS = (
    ClOp(MAX_POOLING_WITH_ARGMAX_2D, claim=_claim_pool, lower=_pool, cpu_only=True),
    ClOp(MAX_UNPOOLING_2D, claim=takes(TensorType.FLOAT32, TensorType.INT32), lower=_unpool, cpu_only=True),
    ClOp(LITERT_MAX_UNPOOLING_2D, claim=takes(TensorType.FLOAT32, TensorType.INT32), lower=_unpool, cpu_only=True),
)
