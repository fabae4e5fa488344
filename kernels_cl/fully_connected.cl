// One row times the transpose of a matrix: out[n] = activation(dot(x, weights[n]) + bias[n] + residual[n]).
// weights are row-major, [n, depth], as TFLite stores them: nothing is packed, and they need not be constant.
// A work-item takes per_item outputs. It reads STREAMS parts of its weights at once, each in order: a processor predicts
// several such streams, each within a page, and while one waits at the end of a page, the others go on. Neighbouring rows
// instead would be in one page. residual is read only if has_residual, bias only if has_bias.
// Macros: HALF_WEIGHTS (tile.h); ACTIVATION (common.h), whose arguments are low and high.
#include "tile.h"

#define STREAMS 4
#define SUMS 2  // of vectors for each row, as each addition to one waits for the one before it

// rows: a constant, up to STREAMS. step: from one row to the next, in elements. A row's sum is the same among any others.
INLINE void dot_rows(__global const float *restrict x, __global const Weight *restrict weights, const size_t step,
                     const int rows, const int depth, float *sums) {
    floatv lanes[STREAMS][SUMS];
    UNROLL for (int r = 0; r < rows; ++r)
        UNROLL for (int i = 0; i < SUMS; ++i) lanes[r][i] = 0.0f;
    int k = 0;
    for (; k + SUMS * VW <= depth; k += SUMS * VW)
        UNROLL for (int i = 0; i < SUMS; ++i) {
            const floatv v = LOAD(x + k + i * VW);
            UNROLL for (int r = 0; r < rows; ++r)
                lanes[r][i] = v * LOAD_WEIGHTS(weights + r * step + k + i * VW) + lanes[r][i];
        }
    for (; k + VW <= depth; k += VW) {
        const floatv v = LOAD(x + k);
        UNROLL for (int r = 0; r < rows; ++r) lanes[r][0] = v * LOAD_WEIGHTS(weights + r * step + k) + lanes[r][0];
    }
    UNROLL for (int r = 0; r < rows; ++r) sums[r] = sum_lanes(lanes[r][0] + lanes[r][1]);
    for (; k < depth; ++k)
        UNROLL for (int r = 0; r < rows; ++r) sums[r] += x[k] * WEIGHT(weights + r * step + k);
}

#define STORE_SUM(i, sum) out[i] = sum + (has_bias ? bias[i] : 0.0f) + (has_residual ? residual[i] : 0.0f)

KERNEL void fully_connected(ITEM __global const float *restrict x, __global const Weight *restrict weights,
                            __global const float *restrict bias, __global const float *restrict residual,
                            __global float *restrict out, const int n, const int per_item, const int depth,
                            const int has_bias, const int has_residual, const float low, const float high) {
    SHARE(n, per_item);
    const int part = (end - start) / STREAMS, rest = start + part * STREAMS;
    float sums[STREAMS];
    for (int i = start; i < start + part; ++i) {
        dot_rows(x, weights + (size_t)i * depth, (size_t)part * depth, STREAMS, depth, sums);
        UNROLL for (int r = 0; r < STREAMS; ++r) STORE_SUM(i + r * part, sums[r]);
    }
    for (int i = rest; i < end; ++i) {
        dot_rows(x, weights + (size_t)i * depth, 0, 1, depth, sums);
        STORE_SUM(i, sums[0]);
    }
    activate(out + start, end - start, low, high);
}
