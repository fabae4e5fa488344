// 2-D convolutions as matrix products whose rows are gathered on the fly: out = activation(conv(x) + bias + residual).
// x is [images, height, width, channels]; weights are packed in panels, [groups][columns / PANEL][kernel_height *
// kernel_width * group_channels][PANEL]; bias is [groups][columns padded to whole panels]; zeros holds kernel_width *
// group_channels zeros, which represent pixels outside the image.
// The window's positions correspond to every step-th pixel of out (and of a residual) from `first` on: all pixels for a
// convolution, one phase for a transposed convolution.
// A work-item takes item_rows pixels x item_columns columns of one group, tile by tile.
// Macros: MR, NV, PANEL, HALF_WEIGHTS; ACTIVATION (common.h), whose arguments are low and high.
#include "tile.h"
#include <delegate.cpu.schedules.SharedPanel>
#include <delegate.ops.conv_2d.Convolution>

// Adds up the taps of a tile's pixels in rows [ky, ky_last) of the kernel, whose weights these are. at[r] is the offset
// of pixel r's first tap, (top[r], left[r]) its position, which may be outside the image.
INLINE void multiply_taps(floatv tile[MR][NV], __global const float *restrict x, __global const Weight *weights,
                          __global const float *restrict zeros, __global const Geometry *restrict g, const int at[MR],
                          const int top[MR], const int left[MR], const int panel_depth, const int number,
                          const int halvings, int ky, const int ky_last) {
    int leftmost = 0, rightmost = 0;
    UNROLL for (int r = 0; r < MR; ++r) {
        leftmost = MIN(leftmost, left[r]);
        rightmost = MAX(rightmost, left[r]);
    }
    // The taps of one row are adjacent in memory: if all are inside the image, they are one longer tap.
    const int merged = g->dilation_x == 1 && g->group_channels == g->channels && leftmost >= 0 &&
                       rightmost + g->kernel_width <= g->width;
    const int taps = merged ? 1 : g->kernel_width;
    const int depth = merged ? g->kernel_width * g->channels : g->group_channels;
    for (; ky < ky_last; ++ky) {
        const int dy = ky * g->dilation_y;
        for (int kx = 0; kx < taps; ++kx) {
            const int dx = kx * g->dilation_x, tap = (dy * g->width + dx) * g->channels;
            __global const float *rows[MR];
            int any = 0;
            UNROLL for (int r = 0; r < MR; ++r) {
                const int inside =
                    (uint)(top[r] + dy) < (uint)g->height && (merged || (uint)(left[r] + dx) < (uint)g->width);
                rows[r] = inside ? x + at[r] + tap : zeros;
                any |= inside;
            }
            if (any) multiply_shared(tile, rows, weights, depth, panel_depth, number, halvings);
            weights += depth * PANEL;
        }
    }
}

// Adds rows [ky, ky_last) of the kernel to a tile, whose sums so far are in `sums` unless ky is the first, and stay
// there unless ky_last is the last.
OUT_OF_LINE WIDE void conv_tile(__global const float *restrict x, __global const Weight *restrict weights,
                                __global const float *restrict bias, __global const float *restrict zeros,
                                __global const float *restrict residual, __global float *restrict out,
                                __global const Convolution *restrict c, const int m0, const int n0, floatv *sums,
                                const int ky, const int ky_last, const int has_residual, const float low,
                                const float high) {
    __global const Geometry *restrict g = &c->window;
    const int pixels = PLACES_OF(g);
    floatv tile[MR][NV];
    int at[MR], top[MR], left[MR], to[MR];
    const int row = m0 / g->out_width;
    int image = row / g->out_height, y = row - image * g->out_height, column = m0 - row * g->out_width;
    UNROLL for (int r = 0; r < MR; ++r) {
        top[r] = y * g->stride_y - g->pad_y;
        left[r] = column * g->stride_x - g->pad_x;
        at[r] = ((image * g->height + top[r]) * g->width + left[r]) * g->channels;
        const int out_y = y * c->out.step_y + c->out.first_y, out_x = column * c->out.step_x + c->out.first_x;
        to[r] = ((image * c->out.height + out_y) * c->out.width + out_x) * c->out.pixel_step + n0;
        UNROLL for (int j = 0; j < NV; ++j) tile[r][j] = ky ? sums[r * NV + j] : LOAD(bias + n0 + j * VW);
        // Rows past the last pixel repeat it.
        if (m0 + r + 1 < pixels && ++column == g->out_width) {
            column = 0;
            if (++y == g->out_height) y = 0, ++image;
        }
    }
    const int row_depth = g->kernel_width * g->group_channels, depth = g->kernel_height * row_depth;
    multiply_taps(tile, x, panel_at(weights, n0, depth) + ky * row_depth * PANEL, zeros, g, at, top, left,
                  (ky_last - ky) * row_depth, m0 / MR, halvings_of(c->item_rows), ky, ky_last);
    if (ky_last < g->kernel_height) {
        UNROLL for (int r = 0; r < MR; ++r) UNROLL for (int j = 0; j < NV; ++j) sums[r * NV + j] = tile[r][j];
        return;
    }
    finish_tile(tile, residual, out, to, VW, pixels - m0, g->group_columns - n0, has_residual, low, high);
}

KERNEL void conv_2d(ITEM __global const float *restrict x, __global const Weight *restrict weights,
                    __global const float *restrict bias, __global const float *restrict zeros,
                    __global const float *restrict residual, __global float *restrict out,
                    __global const Convolution *restrict c, const int has_residual, const float low,
                    const float high) {
    __global const Geometry *restrict g = &c->window;
    const int m_first = ROW_ITEM * c->item_rows, m_last = MIN(m_first + c->item_rows, PLACES_OF(g));
    const int n_first = COLUMN_ITEM * c->item_columns, n_last = MIN(n_first + c->item_columns, g->group_columns);
    const int group = ITEM_INDEX(2);
    const int group_panels = (g->group_columns + PANEL - 1) / PANEL * PANEL;
    x += group * g->group_channels;
    weights += (size_t)group * group_panels * g->kernel_height * g->kernel_width * g->group_channels;
    bias += group * group_panels;
    residual += group * g->group_columns;
    out += group * g->group_columns;
#ifdef LITECL_GPU
    for (int m0 = m_first; m0 < m_last; m0 += MR)
        for (int n0 = n_first; n0 < n_last; n0 += TILE_COLUMNS)
            conv_tile(x, weights, bias, zeros, residual, out, c, m0, n0, 0, 0, g->kernel_height, has_residual, low, high);
#else
    // A panel too large for the cache is multiplied row by row of the kernel, each by several tiles.
    floatv sums[SHARED_PANEL_TILES][MR * NV];
    const int large = g->kernel_height * g->kernel_width * g->group_channels * PANEL * (int)sizeof(float) >=
                      SHARED_PANEL_LEAST_BYTES;
    const int rows = large ? 1 : g->kernel_height, pixels = (large ? SHARED_PANEL_TILES : 1) * MR;
    for (int m = m_first; m < m_last; m += pixels)
        for (int n0 = n_first; n0 < n_last; n0 += TILE_COLUMNS)
            for (int ky = 0; ky < g->kernel_height; ky += rows)
                for (int i = 0; i < pixels && m + i < m_last; i += MR)
                    conv_tile(x, weights, bias, zeros, residual, out, c, m + i, n0, sums[i / MR], ky,
                              MIN(ky + rows, g->kernel_height), has_residual, low, high);
#endif
}
