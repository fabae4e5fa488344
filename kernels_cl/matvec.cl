// A few rows times a matrix: out = activation(x weights^T + bias + residual), for unpacked weights [columns, depth].
//
// A group computes COLUMNS columns of all ROWS rows: its work-items share the depth, 16 bytes at a time, and add up
// their sums through local memory. depth is a multiple of 4.
// Macros: ROWS, COLUMNS, ITEMS of a group, a power of two; HALF_WEIGHTS; ACTIVATION (common.h).
#include "common.h"

#define LOAD4(p) (*(__global const float4 *)(p))
#ifdef HALF_WEIGHTS
typedef half Weight;
#define LOAD_WEIGHTS(p) load_halves(p)
#else
typedef float Weight;
#define LOAD_WEIGHTS(p) LOAD4(p)
#endif

KERNEL void matvec(ITEM __global const float *restrict x, __global const Weight *restrict weights,
                   __global const float *restrict bias, __global const float *restrict residual,
                   __global float *restrict out, __local float4 *restrict memory, const int depth, const int columns,
                   const int out_step, const int has_bias, const int has_residual, const float low, const float high) {
    __local float *sums = (__local float *)memory;  // [ROWS * COLUMNS][ITEMS]
    const int item = get_local_id(0), n0 = get_group_id(0) * COLUMNS;
    float4 own[ROWS][COLUMNS];
    UNROLL for (int r = 0; r < ROWS; ++r)
        UNROLL for (int c = 0; c < COLUMNS; ++c) own[r][c] = 0.0f;
    for (int k = item * 4; k < depth; k += ITEMS * 4) {
        float4 w[COLUMNS];
        UNROLL for (int c = 0; c < COLUMNS; ++c) w[c] = LOAD_WEIGHTS(weights + (size_t)MIN(n0 + c, columns - 1) * depth + k);
        UNROLL for (int r = 0; r < ROWS; ++r) {
            const float4 v = LOAD4(x + r * depth + k);
            UNROLL for (int c = 0; c < COLUMNS; ++c) own[r][c] = v * w[c] + own[r][c];
        }
    }
    UNROLL for (int r = 0; r < ROWS; ++r)
        UNROLL for (int c = 0; c < COLUMNS; ++c) {
            const float2 two = own[r][c].lo + own[r][c].hi;
            sums[(r * COLUMNS + c) * ITEMS + item] = two.s0 + two.s1;
        }
    for (int others = ITEMS / 2; others > 0; others /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < others)
            UNROLL for (int i = 0; i < ROWS * COLUMNS; ++i) sums[i * ITEMS + item] += sums[i * ITEMS + item + others];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = item; i < ROWS * COLUMNS; i += ITEMS) {
        const int r = i / COLUMNS, n = n0 + i % COLUMNS;
        if (n >= columns) continue;
        float y = sums[i * ITEMS] + (has_bias ? bias[n] : 0.0f);
        if (has_residual) y += residual[r * out_step + n];
        out[r * out_step + n] = ACTIVATION_S(y, low, high);
    }
}
