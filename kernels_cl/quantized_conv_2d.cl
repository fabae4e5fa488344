// 2-D convolutions and products of quantized activations and weights: out = requantize(conv(x) + bias).
//
// x is [images, height, width, channels]. A work-item takes item_rows pixels x item_columns columns of one group. It
// gathers the patches of MR pixels, as unsigned bytes, into rows of its own, [MR][row_bytes] and SLACK, and multiplies
// them by all of its columns: padding, strides, dilation and odd numbers of channels are dealt with while gathering.
// plain: rows lie in x as they are multiplied, one after another. size: of x, in bytes.
// weights are [groups][columns / PANEL][row_bytes / 4][PANEL][4], zeros past the last column and the depth of a patch.
// stage is [groups][columns / VW][4][VW]: bias, multiplier and shifts of every column (finish_sum in quantized.h).
// Weights with a zero point of their own (uint8) need the sum of each patch too: it counts row_factor times.
// Macros: MR, NV, PANEL; T, FOLDED and REAL_FACTORS (quantized.h); ROW_SUMS, where row_factor is not 0.
#include "quantized.h"

typedef struct {
    int height, width, channels, group_channels;
    int kernel_height, kernel_width, stride_y, stride_x, dilation_y, dilation_x, pad_y, pad_x;
    int pixels, out_height, out_width;
    int columns, group_columns;
    int item_rows, item_columns;
    int row_bytes, plain, size, x_zero, out_zero, low, high, row_factor;
} Geometry;

#define STAGE_FIELDS 4

#define BLOCK (4 * VW)  // bytes that are copied at once
#define SLACK BLOCK     // bytes behind the rows of a work-item, so that the end of a run is copied whole

// count bytes made unsigned. Up to SLACK bytes behind them may be written too; room: how many there are to read.
INLINE void gather_bytes(__global uchar *restrict to, __global const uchar *restrict from, const int count,
                         const int room) {
    int i = 0;
    if (count <= 16 && room >= 16) {  // less is written twice
        *(__global uchar16_u *)to = *(__global const uchar16_u *)from ^ (uchar16)FLIP;
        return;
    }
    for (; i < count && i + BLOCK <= room; i += BLOCK)
        *(__global intv_u *)(to + i) = LOADI(from + i) ^ (int)(FLIP * 0x01010101u);
    ROLL for (; i < count; ++i) to[i] = from[i] ^ FLIP;
}

// count bytes of one value, and up to SLACK more.
INLINE void fill_bytes(__global uchar *to, const uchar value, const int count) {
    for (int i = 0; i < count; i += BLOCK) *(__global intv_u *)(to + i) = (intv)(int)(value * 0x01010101u);
}

// The patch of one pixel, whose first tap is at (top, left) and may be outside the image. room: bytes from the image's
// first to the end of x.
INLINE void gather_patch(__global uchar *restrict row, __global const uchar *restrict image, const Geometry *g,
                         const int top, const int left, const int room) {
    const int dense = g->dilation_x == 1 && g->group_channels == g->channels;
    const int step = g->dilation_y * g->width * g->channels;
    int at = (top * g->width + left) * g->channels;
    if (dense && left >= 0 && left + g->kernel_width <= g->width && top >= 0 &&
        top + (g->kernel_height - 1) * g->dilation_y < g->height) {
        const int run = g->kernel_width * g->channels;
        ROLL for (int ky = 0; ky < g->kernel_height; ++ky, at += step, row += run)
            gather_bytes(row, image + at, run, room - at);
        return;
    }
    const int run = g->group_channels;
    ROLL for (int ky = 0; ky < g->kernel_height; ++ky, at += step) {
        const int inside = (uint)(top + ky * g->dilation_y) < (uint)g->height;
        ROLL for (int kx = 0; kx < g->kernel_width; ++kx, row += run) {
            const int dx = kx * g->dilation_x, tap = at + dx * g->channels;
            if (inside && (uint)(left + dx) < (uint)g->width)
                gather_bytes(row, image + tap, run, room - tap);
            else
                fill_bytes(row, (uchar)g->x_zero, run);
        }
    }
}

// The patches of MR pixels; pixels past the last repeat it. size: of x, from the group's first channel on.
OUT_OF_LINE WIDE void gather_patches(__global uchar *restrict rows, __global const uchar *restrict x,
                                     __global const Geometry *restrict geometry, const int m0, const int size) {
    const Geometry g = *geometry;  // what is written to rows cannot change these
    if (g.plain && m0 + MR <= g.pixels) {
        gather_bytes(rows, x + (size_t)m0 * g.channels, MR * g.channels, size - m0 * g.channels);
        return;
    }
    const int line = m0 / g.out_width, image_bytes = g.height * g.width * g.channels;
    int image = line / g.out_height, y = line - image * g.out_height, column = m0 - line * g.out_width;
    ROLL for (int r = 0; r < MR; ++r, rows += g.row_bytes) {
        const int at = image * image_bytes;
        gather_patch(rows, x + at, &g, y * g.stride_y - g.pad_y, column * g.stride_x - g.pad_x, size - at);
        if (m0 + r + 1 < g.pixels && ++column == g.out_width) {
            column = 0;
            if (++y == g.out_height) y = 0, ++image;
        }
    }
}

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
    const int row_bytes = g->row_bytes;
    weights += (size_t)(n0 / PANEL) * PANEL * row_bytes + n0 % PANEL * 4;
    for (int k = 0; k < row_bytes; k += 4, weights += PANEL * 4) {
        intv w[NV];
        UNROLL for (int j = 0; j < NV; ++j) w[j] = LOADI(weights + j * VW * 4);
        UNROLL for (int r = 0; r < MR; ++r) {
            const intv x = *(__global const int_u *)(rows + r * row_bytes + k);
            UNROLL for (int j = 0; j < NV; ++j) tile[r][j] = DOT4(tile[r][j], x, w[j]);
        }
    }
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
    const int m_first = ROW_ITEM * g->item_rows, m_last = MIN(m_first + g->item_rows, g->pixels);
    const int n_first = COLUMN_ITEM * g->item_columns, n_last = MIN(n_first + g->item_columns, g->group_columns);
    if (n_first >= n_last) return;  // a work-item that only fills a group has no memory for rows
    const int group = ITEM_INDEX(2);
    const int row_items = (g->pixels + g->item_rows - 1) / g->item_rows;
    const int column_items = (g->group_columns + g->item_columns - 1) / g->item_columns;
    const int group_panels = (g->group_columns + PANEL - 1) / PANEL * PANEL;
    x += group * g->group_channels;
    weights += (size_t)group * group_panels * g->row_bytes;
    stage += group * group_panels * STAGE_FIELDS;
    out += group * g->group_columns;
    rows += (size_t)((group * column_items + COLUMN_ITEM) * row_items + ROW_ITEM) * (MR * g->row_bytes + SLACK);
    for (int m0 = m_first; m0 < m_last; m0 += MR) {
        int sums[MR];
        gather_patches(rows, x, g, m0, g->size - group * g->group_channels);
#ifdef ROW_SUMS
        for (int r = 0; r < MR; ++r) sums[r] = sum_bytes(rows + r * g->row_bytes, g->kernel_height * g->kernel_width * g->group_channels);
#endif
        for (int n0 = n_first; n0 < n_last; n0 += TILE_COLUMNS)
            multiply_rows(rows, weights, stage, out + (size_t)m0 * g->columns + n0, sums, g, MIN(MR, g->pixels - m0), n0);
    }
}
