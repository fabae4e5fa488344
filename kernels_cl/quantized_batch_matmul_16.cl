// Products of 16-bit matrices with 64-bit sums: out = requantize(x y).
//
// x is [products or 1, rows, depth], y is [products or 1, depth, columns], out is [products, rows, columns].
// stage is that of VW equal columns (finish_wide in quantized.h).
// A work-item takes per_item rows of the outputs.
// Macros: T and WORDS, WIDE_SUMS, FLOORED (quantized.h).
#include "quantized.h"
#include <delegate.ops.quantized.batch_matmul_16.WordProducts>

KERNEL void quantized_batch_matmul_16(ITEM __global const T *restrict x, __global const T *restrict y,
                                      __global const int *restrict stage, __global T *restrict out,
                                      __global const WordProducts *restrict d, int n, int per_item) {
    SHARE(n, per_item);
    for (int row = start; row < end; ++row) {
        const int product = row / d->rows, line = row - product * d->rows;
        __global const T *from = x + product * d->x_step + line * d->depth;
        for (int c = 0; c < d->columns; c += VW) {
            const int count = MIN(d->columns - c, VW);
            __global const T *with = y + product * d->y_step + c;
            wideh sums[2] = {0, 0};
            for (int k = 0; k < d->depth; ++k, with += d->columns) {
                const intv v = load_lanes(with, count) * (int)from[k];
                sums[0] += CONVERT_H(LOW_HALF(v), WIDE_TYPE);
                sums[1] += CONVERT_H(HIGH_HALF(v), WIDE_TYPE);
            }
            const Tv z = CONVERT(finish_wide(sums, stage, d->bounds.low, d->bounds.high), T);
            store_lanes(out + row * d->columns + c, z, count);
        }
    }
}
