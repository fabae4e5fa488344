// One row times the transpose of a matrix: out[n] = activation(dot(x, weights[n]) + bias[n] + residual[n]).
// weights are row-major, [n, depth], as TFLite stores them: nothing is packed, and they need not be constant. They are
// read in order. The processor predicts that within a page, which is enough where weights fit the second-level cache.
// A work-item takes per_item outputs. residual is read only if has_residual, bias only if has_bias.
// Macros: FAR, if weights don't fit that cache: they are prefetched, two pages ahead; HALF_WEIGHTS (tile.h); ACTIVATION
// (common.h), whose arguments are low and high.
#include "tile.h"

#define SUMS 4  // of vectors, as each addition to one waits for the one before it
#define AHEAD 128  // lines: two pages

INLINE float dot_row(__global const float *restrict x, __global const Weight *restrict row, const int depth) {
    floatv lanes[SUMS];
    UNROLL for (int i = 0; i < SUMS; ++i) lanes[i] = 0.0f;
    int k = 0;
    for (; k + SUMS * VW <= depth; k += SUMS * VW) {
#ifdef FAR  // a step of short vectors of halves is half a line, but a test costs more than prefetching it twice
        UNROLL for (int i = 0; i < SUMS * VW; i += LINE_WEIGHTS) PREFETCH(row + k + i + AHEAD * LINE_WEIGHTS);
#endif
        UNROLL for (int i = 0; i < SUMS; ++i)
            lanes[i] = LOAD(x + k + i * VW) * LOAD_WEIGHTS(row + k + i * VW) + lanes[i];
    }
    for (; k + VW <= depth; k += VW) lanes[0] = LOAD(x + k) * LOAD_WEIGHTS(row + k) + lanes[0];
    float sum = sum_lanes((lanes[0] + lanes[1]) + (lanes[2] + lanes[3]));
    for (; k < depth; ++k) sum += x[k] * WEIGHT(row + k);
    return sum;
}

KERNEL void fully_connected(ITEM __global const float *restrict x, __global const Weight *restrict weights,
                            __global const float *restrict bias, __global const float *restrict residual,
                            __global float *restrict out, const int n, const int per_item, const int depth,
                            const int has_bias, const int has_residual, const float low, const float high) {
    SHARE(n, per_item);
    for (int i = start; i < end; ++i)
        out[i] = dot_row(x, weights + (size_t)i * depth, depth) + (has_bias ? bias[i] : 0.0f) +
                 (has_residual ? residual[i] : 0.0f);
    activate(out + start, end - start, low, high);
}
