// 3-D convolutions: y = activation(sum over the taps of x filter + bias + residual), positions of the window in all
// volumes x columns. x [volumes, depth, height, width, channels]; weights are packed in panels (tile.h), [columns /
// PANEL] [taps][channels][PANEL]; bias is padded to whole panels; zeros are `channels` zeros, which taps outside of x
// read. A work-item takes item_rows positions x item_columns columns. residual is read only if has_residual. Transposed
// convolutions: a tap reads the element of x beneath it, if there is one: elements are a stride apart. Macros: MR, NV,
// PANEL, HALF_WEIGHTS; TRANSPOSED; ACTIVATION (common.h), whose arguments are low and high.
#include "tile.h"
#include <delegate.ops.conv_3d.Volume>

// Where a window's first tap is, and which element of x a tap reads: a negative or too large number if none.
#ifdef TRANSPOSED
INLINE int first_of(const int step, __global const Slide *s) { return step + s->pad; }
INLINE int at_tap(const int first, const int tap, __global const Slide *s) {
    const int at = first - tap * s->dilation;
    return at % s->stride == 0 ? at / s->stride : -1;
}
#else
INLINE int first_of(const int step, __global const Slide *s) { return step * s->stride - s->pad; }
INLINE int at_tap(const int first, const int tap, __global const Slide *s) { return first + tap * s->dilation; }
#endif

// Finds the elements that a tap of a tile's rows reads; returns whether there are any.
INLINE bool rows_at(__global const float *rows[MR], __global const float *restrict x, __global const float *restrict zeros,
                    const int firsts[MR][4], const int z, const int y, const int w, __global const Volume *v) {
    bool any = false;
    UNROLL for (int r = 0; r < MR; ++r) {
        const int at_z = at_tap(firsts[r][1], z, &v->depth), at_y = at_tap(firsts[r][2], y, &v->height),
                  at_x = at_tap(firsts[r][3], w, &v->width);
        const bool inside = at_z >= 0 && at_z < v->depth.size && at_y >= 0 && at_y < v->height.size && at_x >= 0 &&
                            at_x < v->width.size;
        const size_t line = ((size_t)firsts[r][0] * v->depth.size + at_z) * v->height.size + at_y;
        rows[r] = inside ? x + (line * v->width.size + at_x) * v->channels : zeros;
        any |= inside;
    }
    return any;
}

OUT_OF_LINE WIDE void conv_3d_tile(__global const float *restrict x, __global const Weight *restrict weights,
                                   __global const float *restrict bias, __global const float *restrict zeros,
                                   __global const float *restrict residual, __global float *restrict out,
                                   __global const Volume *restrict v, const int m0, const int n0, const int has_residual,
                                   const float low, const float high) {
    const int m = v->volumes * v->depth.steps * v->height.steps * v->width.steps;
    floatv tile[MR][NV];
    int firsts[MR][4], to[MR];
    UNROLL for (int r = 0; r < MR; ++r) {
        const int at = MIN(m0 + r, m - 1), line = at / v->width.steps, plane = line / v->height.steps;
        firsts[r][0] = plane / v->depth.steps;
        firsts[r][1] = first_of(plane % v->depth.steps, &v->depth);
        firsts[r][2] = first_of(line % v->height.steps, &v->height);
        firsts[r][3] = first_of(at % v->width.steps, &v->width);
        to[r] = (m0 + r) * v->columns + n0;
        UNROLL for (int j = 0; j < NV; ++j) tile[r][j] = LOAD(bias + n0 + j * VW);
    }
    const int taps = v->depth.taps * v->height.taps * v->width.taps, depth = taps * v->channels;
    __global const Weight *panel = panel_at(weights, n0, depth);
    for (int t = 0; t < taps; ++t, panel += v->channels * PANEL) {
        const int line = t / v->width.taps;
        __global const float *rows[MR];
        if (rows_at(rows, x, zeros, firsts, line / v->height.taps, line % v->height.taps, t % v->width.taps, v))
            multiply_tile(tile, rows, panel, v->channels, depth);
    }
    finish_tile(tile, residual, out, to, VW, m - m0, v->columns - n0, has_residual, low, high);
}

KERNEL void conv_3d(ITEM __global const float *restrict x, __global const Weight *restrict weights,
                    __global const float *restrict bias, __global const float *restrict zeros,
                    __global const float *restrict residual, __global float *restrict out,
                    __global const Volume *restrict v, const int m, const int item_rows, const int item_columns,
                    const int has_residual, const float low, const float high) {
    const int m_first = ROW_ITEM * item_rows, m_last = MIN(m_first + item_rows, m);
    const int n_first = COLUMN_ITEM * item_columns, n_last = MIN(n_first + item_columns, v->columns);
    for (int m0 = m_first; m0 < m_last; m0 += MR)
        for (int n0 = n_first; n0 < n_last; n0 += TILE_COLUMNS)
            conv_3d_tile(x, weights, bias, zeros, residual, out, v, m0, n0, has_residual, low, high);
}
