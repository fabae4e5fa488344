// 2-D convolutions and products of rows quantized at run time and integer weights: floats in, floats out.
//
// x holds the rows as bytes; each row has a zero point and a scale in zeros and scales (quantize_rows.cl). A row is an
// image or, in a plain product, image_pixels pixels. A work-item takes item_rows pixels x item_columns columns of one
// group, whose patches it gathers (gather_patches.h). out = activation(sums * scale * weight scale + bias + residual).
// stage is [groups][columns / VW][3][VW]: sum of weights, scale and bias of every column.
// With BLOCK_SCALES, 16 or 32, columns have a scale of that many bits for every block_bytes of a row, block_scales
// [columns / PANEL][blocks][PANEL]; the stage's sums of weights are then floats, of weights times scales.
// Macros: MR, NV, PANEL; BLOCK_SCALES; ACROSS, WEIGHT_BITS (patches.h); ACTIVATION; T, which is uchar.
#include "gather_patches.h"
#include <delegate.quantized.hybrid_product.HybridConvolution>
#include <delegate.quantized.hybrid_product.HybridRow>

#if BLOCK_SCALES == 16
typedef ushort BlockScale;
#define LOAD_SCALES(p) FROM_HALVES(*(__global const Halves_u *)(p))
#else
typedef float BlockScale;
#define LOAD_SCALES(p) LOAD(p)
#endif

#ifdef BLOCK_SCALES
// Sums of MR rows and NV vectors of columns: each block of the depth is multiplied by its scales.
INLINE void multiply_blocks(floatv sums[MR][NV], __global const Gathered *restrict rows,
                            __global const char *restrict weights, __global const BlockScale *restrict scales,
                            __global const HybridConvolution *restrict c) {
    UNROLL for (int r = 0; r < MR; ++r) UNROLL for (int j = 0; j < NV; ++j) sums[r][j] = 0.0f;
    const int bytes = column_bytes(1, c->block_bytes);
    for (int block = 0; block < c->blocks; ++block) {
        intv tile[MR][NV];
        UNROLL for (int r = 0; r < MR; ++r) UNROLL for (int j = 0; j < NV; ++j) tile[r][j] = 0;
        multiply_gathered(tile, rows, weights, c->gather.row_step, 1, c->block_bytes, 0);
        UNROLL for (int j = 0; j < NV; ++j) {
            const floatv scale = LOAD_SCALES(scales + j * VW);
            UNROLL for (int r = 0; r < MR; ++r) sums[r][j] += CONVERT(narrowed(tile[r][j]), float) * scale;
        }
        rows += c->block_bytes;
        weights += bytes * PANEL;
        scales += PANEL;
    }
}
#endif

// MR pixels x NV vectors of columns from n0 on. out and residual point at the first of them; scales[0] is its row's
// scale.
OUT_OF_LINE WIDE void multiply_rows(__global const Gathered *restrict rows, __global const char *restrict weights,
                                    __global const int *restrict stage, __global const float *restrict residual,
                                    __global float *restrict out, const int *restrict zeros,
                                    const float *restrict scales, __global const BlockScale *restrict block_scales,
                                    __global const HybridConvolution *restrict c, const int count,
                                    const int n0, const int has_residual, const float low, const float high) {
    __global const Gather *restrict p = &c->gather;
    __global const Geometry *restrict g = &p->window;
#ifdef BLOCK_SCALES
    floatv sums[MR][NV];
    multiply_blocks(sums, rows, weights_at(weights, column_bytes(c->blocks, c->block_bytes), n0),
                    block_scales + (size_t)(n0 / PANEL) * PANEL * c->blocks + n0 % PANEL, c);
#else
    intv tile[MR][NV];
    UNROLL for (int r = 0; r < MR; ++r) UNROLL for (int j = 0; j < NV; ++j) tile[r][j] = 0;
#ifdef ACROSS
    multiply_across(tile, rows, weights, p->row_step, p->row_bytes, n0, MIN(g->group_columns - n0, VW));
#else
    weights = weights_at(weights, column_bytes(RUNS(p), p->run_bytes), n0);
    multiply_gathered(tile, rows, weights, p->row_step, RUNS(p), p->run_bytes, p->run_step);
#endif
    floatv sums[MR][NV];
#endif
    int to[MR];
    UNROLL for (int r = 0; r < MR; ++r) to[r] = r * g->columns;
    UNROLL for (int j = 0; j < NV; ++j) {
        __global const int *s = stage + (n0 / VW + j) * HYBRID_ROWS * VW;
        const intv column = LOADI(s + HYBRID_ROW_SUM * VW);
#ifdef BLOCK_SCALES
        UNROLL for (int r = 0; r < MR; ++r) sums[r][j] -= AS_FLOATV(column) * (float)zeros[r];
#endif
        const floatv scale = AS_FLOATV(LOADI(s + HYBRID_ROW_SCALE * VW));
        const floatv bias = AS_FLOATV(LOADI(s + HYBRID_ROW_BIAS * VW));
        UNROLL for (int r = 0; r < MR; ++r) {
#ifdef BLOCK_SCALES
            const floatv sum = sums[r][j];
#else
            const floatv sum = CONVERT(narrowed(tile[r][j]) - column * zeros[r], float);
#endif
            sums[r][j] = sum * (scale * scales[r]) + bias;
        }
    }
    finish_tile(sums, residual, out, to, VW, count, g->group_columns - n0, has_residual, low, high);
}

KERNEL void hybrid_conv_2d(ITEM __global const uchar *restrict x, __global const int *restrict zeros,
                           __global const float *restrict scales, __global const char *restrict weights,
                           __global const int *restrict stage, __global const BlockScale *restrict block_scales,
                           __global uchar *restrict rows,
                           __global const float *restrict residual, __global float *restrict out,
                           __global const HybridConvolution *restrict c, int has_residual, float low, float high) {
    __global const Gather *restrict p = &c->gather;
    __global const Geometry *restrict g = &p->window;
    const int group = GROUP_ITEM;
    const Share s = share_of(p, ROW_ITEM, COLUMN_ITEM, group);
    x += group * p->group_x;
    weights += (size_t)group * s.group_panels * column_bytes(RUNS(p), p->run_bytes);
    stage += group * s.group_panels * HYBRID_ROWS;
    rows += s.first_row;
    TilePatches tile = {.until = 0};
    for (int m0 = s.m_first; m0 < s.m_last; m0 += MR) {
        const Pixels pixels = pixels_at(p, m0);
        int row_zeros[MR];
        float row_scales[MR];
        FIRST(r, MR, MR) {
            const int pixel = MIN(pixels.first + r, PLACES_OF(g) - 1);
            const int row = c->image_pixels == 1 ? pixel : pixel / c->image_pixels;
#ifdef SIGNED_ROW
            row_zeros[r] = zeros[row] - 128;
#else
            row_zeros[r] = zeros[row];
#endif
            row_scales[r] = scales[row];
        }
        move_to_tile(&tile, rows, x, p, m0, s.size, zeros, 1);
        const size_t to = (size_t)pixels.first * g->columns + group * p->group_out;
        for (int n0 = s.n_first; n0 < s.n_last; n0 += TILE_COLUMNS)
            multiply_rows(tile.operands, weights, stage, residual + to + n0, out + to + n0, row_zeros, row_scales,
                          block_scales, c,
                          pixels.count, n0, has_residual, low, high);
    }
}
