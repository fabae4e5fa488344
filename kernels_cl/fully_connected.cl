// One row times the transpose of a matrix: out[n] = activation(dot(x, weights[n]) + bias[n] + residual[n]).
// weights are row-major, [n, depth], as TFLite stores them: nothing is packed, and they need not be constant.
// A work-item takes per_item outputs, MR at a time. residual is read only if has_residual, bias only if has_bias.
// Macros: MR; HALF_WEIGHTS (tile.h); ACTIVATION (common.h), whose arguments are low and high.
#define NV 1
#define PANEL VW
#include "tile.h"

// sums[r] = dot(x, weights[n0 + r]); rows past the last repeat it.
OUT_OF_LINE WIDE void dot_rows(__global const float *restrict x, __global const Weight *restrict weights, float sums[MR],
                               const int n0, const int n, const int depth) {
    floatv lanes[MR];
    __global const Weight *rows[MR];
    UNROLL for (int r = 0; r < MR; ++r) {
        lanes[r] = (floatv)(0.0f);
        rows[r] = weights + (size_t)MIN(n0 + r, n - 1) * depth;
    }
    int k = 0;
    for (; k + VW <= depth; k += VW) {
        const floatv v = LOAD(x + k);
        UNROLL for (int r = 0; r < MR; ++r) {
            PREFETCH(rows[r] + k + MR * depth);
            lanes[r] = v * LOAD_WEIGHTS(rows[r] + k) + lanes[r];
        }
    }
    UNROLL for (int r = 0; r < MR; ++r) {
        sums[r] = sum_lanes(lanes[r]);
        for (int i = k; i < depth; ++i) sums[r] += x[i] * WEIGHT(rows[r] + i);
    }
}

KERNEL void fully_connected(ITEM __global const float *restrict x, __global const Weight *restrict weights,
                            __global const float *restrict bias, __global const float *restrict residual,
                            __global float *restrict out, const int n, const int per_item, const int depth,
                            const int has_bias, const int has_residual, const float low, const float high) {
    SHARE(n, per_item);
    for (int n0 = start; n0 < end; n0 += MR) {
        float sums[MR];
        dot_rows(x, weights, sums, n0, n, depth);
        for (int r = 0; r < MR && n0 + r < end; ++r) {
            const int i = n0 + r;
            out[i] = sums[r] + (has_bias ? bias[i] : 0.0f) + (has_residual ? residual[i] : 0.0f);
        }
    }
    activate(out + start, end - start, low, high);
}
