// One row of floats times the transpose of a matrix of integers: out[n] = activation(dot(x, scale weights[n]) + bias[n]
// + residual[n]). Integers become floats as they are read; every `block` elements of a row have a scale, scales [n,
// blocks]. weights are row-major: of 8 bits [n, depth], as TFLite stores them; of 4 bits rows of row_bytes, of which VW
// bytes hold 2 VW elements, the first VW in their lower halves (delegate/ops/weight_only.py). A block is a multiple of
// STEP, or all. A work-item takes per_item outputs, MR at a time. residual is read only if has_residual, bias only if
// has_bias. Macros: MR; BITS, 8 or 4; ACTIVATION (common.h), whose arguments are low and high.
#define NV 1
#define PANEL VW
#include "tile.h"
#include <delegate.ops.weight_only.WeightOnly>

typedef VECTOR(char) Chars;
typedef Chars Chars_u __attribute__((aligned(1)));

#if BITS == 8
#define STEP VW
#else
#define STEP (2 * VW)
#endif

// sum + STEP elements at x times as many weights. count: elements that exist; weights past the last are zeros.
INLINE floatv add_products(floatv sum, __global const float *restrict x, __global const char *restrict weights,
                           const int count) {
#if BITS == 8
    if (count < STEP) {
        float lanes[VW];
        FIRST(i, VW, VW) lanes[i] = i < count ? (float)weights[i] : 0.0f;
        return load_vector(x, count) * *(__private const floatv_u *)lanes + sum;
    }
    return LOAD(x) * CONVERT(*(__global const Chars_u *)weights, float) + sum;
#else
    const intv both = CONVERT(*(__global const Chars_u *)weights, int);
    sum = load_vector(x, count) * CONVERT(both << 28 >> 28, float) + sum;
    return count > VW ? load_vector(x + VW, count - VW) * CONVERT(both >> 4, float) + sum : sum;
#endif
}

// sums[r] = dot(x, weights[n0 + r]); rows past the last repeat it.
OUT_OF_LINE WIDE void dot_rows(__global const float *restrict x, __global const char *restrict weights,
                               __global const float *restrict scales, float sums[MR], const int n0,
                               __global const WeightOnly *restrict w) {
    floatv totals[MR];
    __global const char *rows[MR];
    __global const float *own[MR];
    UNROLL for (int r = 0; r < MR; ++r) {
        const int row = MIN(n0 + r, w->columns - 1);
        totals[r] = 0.0f;
        rows[r] = weights + (size_t)row * w->row_bytes;
        own[r] = scales + (size_t)row * w->blocks;
    }
    for (int b = 0, k = 0; b < w->blocks; ++b) {
        const int last = MIN(k + w->block, w->depth);
        floatv lanes[MR];
        UNROLL for (int r = 0; r < MR; ++r) lanes[r] = 0.0f;
        for (; k + STEP <= last; k += STEP)
            UNROLL for (int r = 0; r < MR; ++r) {
                __global const char *at = rows[r] + k * BITS / 8;
                PREFETCH(at + MR * w->row_bytes);
                lanes[r] = add_products(lanes[r], x + k, at, STEP);
            }
        if (k < last) {
            UNROLL for (int r = 0; r < MR; ++r)
                lanes[r] = add_products(lanes[r], x + k, rows[r] + k * BITS / 8, last - k);
            k = last;
        }
        UNROLL for (int r = 0; r < MR; ++r) totals[r] = lanes[r] * own[r][b] + totals[r];
    }
    UNROLL for (int r = 0; r < MR; ++r) sums[r] = sum_lanes(totals[r]);
}

KERNEL void weight_only(ITEM __global const float *restrict x, __global const char *restrict weights,
                        __global const float *restrict scales, __global const float *restrict bias,
                        __global const float *restrict residual, __global float *restrict out,
                        __global const WeightOnly *restrict w, const int n, const int per_item, const int has_bias,
                        const int has_residual, const float low, const float high) {
    SHARE(n, per_item);
    for (int n0 = start; n0 < end; n0 += MR) {
        float sums[MR];
        dot_rows(x, weights, scales, sums, n0, w);
        for (int r = 0; r < MR && n0 + r < end; ++r) {
            const int i = n0 + r;
            out[i] = sums[r] + (has_bias ? bias[i] : 0.0f) + (has_residual ? residual[i] : 0.0f);
        }
    }
    activate(out + start, end - start, low, high);
}
