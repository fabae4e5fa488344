// 2-D convolutions and products of quantized activations and weights: out = requantize(conv(x) + bias).
//
// A work-item takes item_rows pixels x item_columns columns of one group, whose patches it gathers (patches.h).
// stage is [groups][columns / VW][4][VW]: bias, multiplier and shifts of every column (finish_sum in quantized.h).
// Weights with a zero point of their own (uint8) need the sum of each patch too: it counts row_factor times.
// Macros: MR, NV, PANEL; T, FOLDED and REAL_FACTORS (quantized.h); ROW_SUMS, where row_factor is not 0.
#include "patches.h"

#define STAGE_FIELDS 4

#ifdef ROW_SUMS
INLINE int sum_bytes(__global const uchar *row, const int count) {
    int sum = 0;
    for (int i = 0; i < count; ++i) sum += row[i];
    return sum;
}
#endif

// MR pixels x NV vectors of columns from n0 on.
OUT_OF_LINE WIDE void multiply_rows(__global const uchar *restrict rows, __global const char *restrict weights,
                                    __global const int *restrict stage, __global T *restrict out,
                                    const int *restrict sums, __global const Geometry *restrict g, const int count,
                                    const int n0) {
    intv tile[MR][NV];
    UNROLL for (int j = 0; j < NV; ++j) {
        const intv bias = LOADI(stage + (n0 / VW + j) * STAGE_FIELDS * VW);
        UNROLL for (int r = 0; r < MR; ++r) tile[r][j] = bias;
    }
    multiply_patches(tile, rows, weights, g->row_bytes, n0);
    const int columns = g->group_columns - n0;
    UNROLL for (int j = 0; j < NV; ++j) {
        __global const int *s = stage + (n0 / VW + j) * STAGE_FIELDS * VW;
        UNROLL for (int r = 0; r < MR; ++r) {
            intv sum = tile[r][j];
#ifdef ROW_SUMS
            sum += sums[r] * g->row_factor;
#endif
            const Tv y = CONVERT(finish_sum(sum, s, VW, g->out_zero, g->low, g->high), T);
            if (r < count) store_bytes(out + r * g->columns + j * VW, y, columns - j * VW);
        }
    }
}

KERNEL void quantized_conv_2d(ITEM __global const uchar *restrict x, __global const char *restrict weights,
                              __global const int *restrict stage, __global uchar *restrict rows,
                              __global T *restrict out, __global const Geometry *restrict g) {
    const int group = ITEM_INDEX(2);
    const Share s = share_of(g, ROW_ITEM, COLUMN_ITEM, group);
    x += group * g->group_channels;
    weights += (size_t)group * s.group_panels * g->row_bytes;
    stage += group * s.group_panels * STAGE_FIELDS;
    out += group * g->group_columns;
    rows += s.first_row;
    for (int m0 = s.m_first; m0 < s.m_last; m0 += MR) {
        int sums[MR];
        __global const uchar *patches = patches_of(rows, x, g, m0, s.size, &g->x_zero, 0);
#ifdef ROW_SUMS
        const int depth = g->kernel_height * g->kernel_width * g->group_channels;
        for (int r = 0; r < MR; ++r) sums[r] = sum_bytes(patches + r * g->row_bytes, depth);
#endif
        __global T *to = out + (size_t)m0 * g->columns;
        for (int n0 = s.n_first; n0 < s.n_last; n0 += TILE_COLUMNS)
            multiply_rows(patches, weights, stage, to + n0, sums, g, MIN(MR, g->pixels - m0), n0);
    }
}
