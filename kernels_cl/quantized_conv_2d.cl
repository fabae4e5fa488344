// 2-D convolutions and products of quantized activations and weights: out = requantize(conv(x) + bias).
//
// A work-item takes item_rows pixels x item_columns columns of one group, whose patches it gathers (gather_patches.h).
// stage is [groups][columns / VW][4][VW]: bias, multiplier and shifts of every column (finish_sum in quantized.h).
// Weights with a zero point of their own (uint8) also need the sum of each patch, times row_factor.
// Sums of words may overflow 32 bits. Those of BLOCK_BYTES of a row do not, and are added up as wide sums.
// Macros: MR, NV, PANEL; ACROSS, WEIGHT_BITS (patches.h); T, OUT, WORDS, FOLDED, RECTIFIED, SATURATED, REAL_FACTORS,
// FLOORED and WIDE_SUMS (quantized.h); ROW_SUMS, where row_factor is not 0.
#define NARROWS_SUMS 1  // by NARROWED_OUT
#include "gather_patches.h"
#include <delegate.quantized.integer_product.QuantizedConvolution>

#ifdef ROW_SUMS
// The sums of the bytes of `count` patches, with the bits in `flip` flipped.
SHARED void sum_patches(int *restrict sums, __global const uchar *restrict patches, __global const Gather *restrict p,
                        const int count, const uchar flip) {
    __global const Geometry *g = &p->window;
    const int depth = g->kernel_width * g->group_channels * (p->lines ? 1 : g->kernel_height);
    for (int r = 0; r < count; ++r, patches += p->row_step) {
        __global const uchar *row = patches;
        int sum = 0;
        for (int run = 0; run < p->runs; ++run, row += p->run_step)
            for (int i = 0; i < depth; ++i) sum += row[i] ^ flip;
        sums[r] = sum;
    }
}
#endif

#ifdef WIDE_SUMS
#define BLOCK_BYTES 1016  // 508 products of a word and a byte
#define FINISH(sum, stage) finish_wide(sum.halves, stage, c->bounds.low, c->bounds.high)
typedef struct {
    wideh halves[2];
} Sums;
#else
typedef intv Sums;
#define FINISH(sum, stage) finish_sum(sum, stage, VW, c->bounds.zero, c->bounds.low, c->bounds.high)
#endif
#define FINISHED(sum, j) NARROWED_OUT(FINISH(sum, stage + (n0 / VW + j) * STAGE_ROWS * VW))

// One row has few sums, which leaves registers for the rest of the kernel.
#if MR == 1
#define TILE_FUNCTION INLINE
#else
#define TILE_FUNCTION OUT_OF_LINE WIDE
#endif

#ifdef MASKS_BYTES
#define MASKS_OUT (sizeof(OUT) == 1)
#define STORE_WHOLE store_lanes
#else
#define MASKS_OUT 0
#define STORE_WHOLE(p, y, columns) *(__global Outv_u *)(p) = (y)
#endif

#if defined(PACKS_BYTES) && !defined(WORDS) && !defined(WIDE_SUMS) && MR * NV % 4 == 0
#define PACKS_TILE 1
#endif

// MR pixels x NV vectors of columns from n0 on.
TILE_FUNCTION void multiply_rows(__global const Gathered *restrict rows, __global const char *restrict weights,
                                 __global const int *restrict stage, __global OUT *restrict out,
                                 const int *restrict row_sums, __global const QuantizedConvolution *restrict c,
                                 const int count, const int n0) {
    __global const Gather *restrict p = &c->gather;
    __global const Geometry *restrict g = &p->window;
#ifndef ACROSS
    weights = weights_at(weights, column_bytes(RUNS(p), p->run_bytes), n0);
#endif
#ifdef WIDE_SUMS
    Sums tile[MR][NV];
    UNROLL for (int r = 0; r < MR; ++r)
        UNROLL for (int j = 0; j < NV; ++j) tile[r][j].halves[0] = tile[r][j].halves[1] = 0;
    for (int k = 0; k < p->row_bytes; k += BLOCK_BYTES) {
        intv part[MR][NV];
        UNROLL for (int r = 0; r < MR; ++r)
            UNROLL for (int j = 0; j < NV; ++j) part[r][j] = 0;
        const int bytes = MIN(BLOCK_BYTES, p->row_bytes - k);
        multiply_gathered(part, rows + k, weights + (size_t)k * PANEL, p->row_step, 1, bytes, 0);
        UNROLL for (int r = 0; r < MR; ++r)
            UNROLL for (int j = 0; j < NV; ++j) {
                tile[r][j].halves[0] += CONVERT_H(LOW_HALF(part[r][j]), WIDE_TYPE);
                tile[r][j].halves[1] += CONVERT_H(HIGH_HALF(part[r][j]), WIDE_TYPE);
            }
    }
#else
    intv tile[MR][NV];
    UNROLL for (int j = 0; j < NV; ++j) {
        const intv bias = LOADI(stage + (n0 / VW + j) * STAGE_ROWS * VW);
        UNROLL for (int r = 0; r < MR; ++r) tile[r][j] = WEIGHT_BITS == 8 ? bias : (intv)0;
    }
#ifdef ACROSS
    multiply_across(tile, rows, weights, p->row_step, p->row_bytes, n0, MIN(g->group_columns - n0, VW));
#else
    multiply_gathered(tile, rows, weights, p->row_step, RUNS(p), p->run_bytes, p->run_step);
#endif
#if WEIGHT_BITS < 8
    UNROLL for (int j = 0; j < NV; ++j) {
        const intv bias = LOADI(stage + (n0 / VW + j) * STAGE_ROWS * VW);
        UNROLL for (int r = 0; r < MR; ++r) tile[r][j] = narrowed(tile[r][j]) + bias;
    }
#endif
#ifdef ROW_SUMS
    UNROLL for (int r = 0; r < MR; ++r)
        UNROLL for (int j = 0; j < NV; ++j) tile[r][j] += row_sums[r] * c->row_factor;
#endif
#endif
    const int columns = g->group_columns - n0;
#if MR == 1
    UNROLL for (int j = 0; j < NV; ++j) store_lanes(out + j * VW, FINISHED(tile[0][j], j), columns - j * VW);
#else
    if ((MASKS_OUT || columns >= TILE_COLUMNS) && count >= MR) {
#ifdef PACKS_TILE
        if (sizeof(OUT) == 1) {
            ulong4 bytes[MR * NV / 4];  // before any are stored, so that a column's stage is loaded once
            UNROLL for (int i = 0; i < MR * NV; i += 4) {
                intv y[4];
                UNROLL for (int k = 0; k < 4; ++k) {
                    const int j = (i + k) / MR, r = (i + k) % MR;
                    y[k] = rescale_sum(tile[r][j], stage + (n0 / VW + j) * STAGE_ROWS * VW, VW, c->bounds.zero);
                }
                bytes[i / 4] = packed_bytes(y, c->bounds.low, c->bounds.high);
            }
            UNROLL for (int i = 0; i < MR * NV; ++i)
                *(__global eight_bytes *)(out + i % MR * g->columns + i / MR * VW) = bytes[i / 4][i % 4];
            return;
        }
#endif
        UNROLL for (int j = 0; j < NV; ++j)
            UNROLL for (int r = 0; r < MR; ++r)
                STORE_WHOLE(out + r * g->columns + j * VW, FINISHED(tile[r][j], j), columns - j * VW);
        return;
    }
    Sums sums[MR][NV];
    UNROLL for (int j = 0; j < NV; ++j)
        UNROLL for (int r = 0; r < MR; ++r) sums[r][j] = tile[r][j];
    ROLL_FIRST(j, NV, NV)
        ROLL_FIRST(r, count, MR)
            store_lanes(out + r * g->columns + j * VW, FINISHED(sums[r][j], j), columns - j * VW);
#endif
}

KERNEL void quantized_conv_2d(ITEM __global const uchar *restrict x, __global const char *restrict weights,
                              __global const int *restrict stage, __global uchar *restrict rows,
                              __global OUT *restrict out, __global const QuantizedConvolution *restrict c) {
    __global const Gather *restrict p = &c->gather;
    __global const Geometry *restrict g = &p->window;
    const int group = GROUP_ITEM;
    const Share s = share_of(p, ROW_ITEM, COLUMN_ITEM, group);
    x += group * p->group_x;
    weights += (size_t)group * s.group_panels * column_bytes(RUNS(p), p->run_bytes);
    stage += group * s.group_panels * STAGE_ROWS;
    out += group * p->group_out;
    rows += s.first_row;
    TilePatches tile = {.until = 0};
    for (int m0 = s.m_first; m0 < s.m_last; m0 += MR) {
        int sums[MR];
        const Pixels pixels = pixels_at(p, m0);
        move_to_tile(&tile, rows, x, p, m0, s.size, &c->x_zero, 0);
#ifdef ROW_SUMS
        sum_patches(sums, tile.patches, p, MR, (uchar)SUM_FLIP);
#endif
        __global OUT *to = out + (size_t)pixels.first * g->columns;
        for (int n0 = s.n_first; n0 < s.n_last; n0 += TILE_COLUMNS)
            multiply_rows(tile.operands, weights, stage, to + n0, sums, c, pixels.count, n0);
    }
}
