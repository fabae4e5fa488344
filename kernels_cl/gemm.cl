// Matrix products: out[b] = activation(x[b] weights[b] + bias + residual[b]), [m, depth] x [depth, n].
// x and out are row-major, rows of out (and of a residual) out_step apart; weights are packed in panels (tile.h), bias
// is padded to whole panels.
// A work-item takes item_rows x item_columns of one product, tile by tile.
// begins: the offsets of every product's operands. residual is read only if has_residual.
// Macros: MR, NV, PANEL, HALF_WEIGHTS; ACTIVATION (common.h), whose arguments are low and high.
#include "tile.h"
#include <delegate.matmul.product.Begin>

// m rows, MR at a time, tile by tile. If the last band has fewer rows, its last row is multiplied repeatedly.
OUT_OF_LINE WIDE void gemm_rows(__global const float *restrict x, __global const Weight *restrict weights,
                                __global const float *restrict bias, __global const float *restrict residual,
                                __global float *restrict out, const int m, const int n_first, const int n_last,
                                const int n, const int depth, const int out_step, const int has_residual,
                                const float low, const float high) {
    int to[MR];
    UNROLL for (int r = 0; r < MR; ++r) to[r] = r * out_step;
    for (int m0 = 0; m0 < m;) {
        const int count = MIN(m - m0, MR), end = m0 + MAX((m - m0) / MR * MR, 1);
        size_t at[MR];
        UNROLL for (int r = 0; r < MR; ++r) at[r] = (size_t)MIN(r, count - 1) * depth;
        for (; m0 < end; m0 += MR) {  // bands of as many rows
            __global const float *rows[MR];
            UNROLL for (int r = 0; r < MR; ++r) rows[r] = x + (size_t)m0 * depth + at[r];
            for (int n0 = n_first; n0 < n_last; n0 += TILE_COLUMNS) {
                const size_t first = (size_t)m0 * out_step + n0;
                floatv tile[MR][NV];
                UNROLL for (int r = 0; r < MR; ++r)
                    UNROLL for (int j = 0; j < NV; ++j) tile[r][j] = LOAD(bias + n0 + j * VW);
                multiply_shared(tile, rows, panel_at(weights, n0, depth), depth, depth, m0 / MR, halvings_of(m));
                finish_tile(tile, residual + first, out + first, to, VW, count, n - n0, has_residual, low, high);
            }
        }
    }
}

KERNEL void gemm(ITEM __global const float *restrict x, __global const Weight *restrict weights,
                 __global const float *restrict bias, __global const float *restrict residual,
                 __global float *restrict out, __global const Begin *restrict begins, const int m, const int n,
                 const int depth, const int out_step, const int item_rows, const int item_columns,
                 const int has_residual, const float low, const float high) {
    const int product = ITEM_INDEX(2);
    const size_t first = (size_t)product * m * n;
    const int m_first = ROW_ITEM * item_rows, m_last = MIN(m_first + item_rows, m);
    const int n_first = COLUMN_ITEM * item_columns, n_last = MIN(n_first + item_columns, n);
    x += begins[product].x;
    weights += begins[product].weights;
    const size_t to = first + (size_t)m_first * out_step;
    gemm_rows(x + (size_t)m_first * depth, weights, bias, residual + to, out + to, m_last - m_first, n_first, n_last, n,
              depth, out_step, has_residual, low, high);
}
