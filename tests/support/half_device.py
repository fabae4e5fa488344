"""Nodes of a model on an OpenCL device that has halves, by kernels of their own: nothing of litecl computes here.

``storage``: halves in memory, arithmetic in floats, which every device has. ``both``: arithmetic in halves too.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyopencl as cl

from litecl.interpreter.graph import Array, Node

_SOURCE = """
#ifdef IN_HALVES
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
typedef half real;
#define LOAD(p, i) p[i]
#define STORE(v, i, p) p[i] = v
#else
typedef float real;
#define LOAD(p, i) vload_half(i, p)
#define STORE(v, i, p) vstore_half_rte(v, i, p)
#endif

__kernel void each(__global const half *a, __global const half *b, __global half *out) {
    size_t i = get_global_id(0);
    real x = LOAD(a, i), y = LOAD(b, i);
    STORE((real)(VALUE), i, out);
}

__kernel void dots(__global const half *a, __global const half *b, __global half *out, int depth, int columns,
                   int block, float scale) {
    size_t i = get_global_id(0);
    size_t row = i / columns, column = i % columns;
    real total = 0;
    for (int start = 0; start < depth; start += block) {
        real part = 0;
        for (int k = start; k < min(depth, start + block); k++)
            part = fma(LOAD(a, row * depth + k), LOAD(b, column * depth + k), part);
        total += part;
    }
    STORE(total * (real)scale, i, out);
}
"""
_EACH: Mapping[str, str] = {
    "ADD": "x + y",
    "SUB": "x - y",
    "MUL": "x * y",
    "DIV": "x / y",
    "SQUARED_DIFFERENCE": "(x - y) * (x - y)",
    "SQUARE": "x * x",
    "SQRT": "sqrt(x)",
    "RSQRT": "rsqrt(x)",
    "TANH": "tanh(x)",
    "LOGISTIC": "(real)1 / ((real)1 + exp(-x))",
}
_BLOCK = 8


class HalfDevice:
    """Runs single nodes. mode: "storage" or "both"."""

    def __init__(self, device: Any, mode: str) -> None:
        self._context = cl.Context([device])
        self._queue = cl.CommandQueue(self._context)
        self._in_halves = mode == "both"
        self._programs: dict[str, Any] = {}

    def run(self, node: Node, inputs: Sequence[Array | None]) -> Array:
        """Return a node's result, as float32."""
        name, arrays = node.op.name, [np.zeros(1, np.float32) if x is None else x for x in inputs]
        with np.errstate(over="ignore"):
            if name in _EACH:
                x, y = np.broadcast_arrays(arrays[0], arrays[1 if len(arrays) > 1 else 0])
                return self._run(_EACH[name], "each", x.shape, x, y)
            if name in ("SUM", "MEAN"):
                axes = tuple(int(axis) % arrays[0].ndim for axis in arrays[1].ravel())
                rest = [axis for axis in range(arrays[0].ndim) if axis not in axes]
                rows = arrays[0].transpose(*rest, *axes).reshape(-1, int(np.prod([arrays[0].shape[a] for a in axes])))
                shape = [1 if axis in axes else n for axis, n in enumerate(arrays[0].shape)]
                scale = 1 / rows.shape[1] if name == "MEAN" else 1.0
                return self._dots(rows, np.ones((1, rows.shape[1]), np.float32), scale).reshape(shape)
            assert name == "FULLY_CONNECTED", name
            x, weights = arrays[0], arrays[1]
            made = self._dots(x.reshape(-1, weights.shape[1]), weights, 1.0)
            made = self._run("x + y", "each", made.shape, *np.broadcast_arrays(made, arrays[2]))
            clamped = np.maximum(made, 0) if node.options.fused_activation_function.name == "RELU" else made
            return clamped.reshape(*x.shape[:-1], -1) if node.options.keep_num_dims else clamped

    def _dots(self, rows: Array, columns: Array, scale: float) -> Array:
        sizes = np.int32(rows.shape[1]), np.int32(len(columns)), np.int32(_BLOCK), np.float32(scale)
        return self._run("x", "dots", (len(rows), len(columns)), rows, columns, *sizes)

    def _run(self, value: str, kernel: str, shape: Sequence[int], a: Array, b: Array, *sizes: Any) -> Array:
        flags, result = cl.mem_flags, np.empty(shape, np.float16)
        given = [np.ascontiguousarray(x, np.float16) for x in (a, b)]
        buffers = [cl.Buffer(self._context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=x) for x in given]
        out = cl.Buffer(self._context, flags.WRITE_ONLY, result.nbytes)
        program = self._programs.get(value) or self._build(value)
        cl.Kernel(program, kernel)(self._queue, (result.size,), None, *buffers, out, *sizes)
        cl.enqueue_copy(self._queue, result, out)
        return result.astype(np.float32)

    def _build(self, value: str) -> Any:
        options = [
            f'-DVALUE="{value}"'.replace('"', "").replace(" ", ""),
            *(["-DIN_HALVES"] if self._in_halves else []),
        ]
        self._programs[value] = cl.Program(self._context, _SOURCE).build(options)
        return self._programs[value]
