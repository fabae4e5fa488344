// Tiles of products by matrix units (matrix_unit.h), in place of the sums of local_tile.h: x and the weights are rounded to
// halves on their way to local memory, where both lie in lines along the depth, and sums are in float32.
//
// A subgroup computes DOWN x ALONG of the unit's products in one part of the tile; SUBGROUPS of them lie side by side. In
// the end sums go through local memory, so that each work-item has fours of columns, side by side with its neighbours'.
// Weights are packed, [columns / BN][depth / BK, padded][BN][BK], unless RIGHT_ROWS or RIGHT_COLUMNS; sums are multiplied
// by what these were divided by.
// Macros: those of local_tile.h and matrix_unit.h; BK, SUBGROUPS.
#include "matrix_unit.h"

#define LINE (BK + 8)  // neighbours in the tile lie in other banks
#define DOWN (BM / (ITEMS / UNIT_LANES / SUBGROUPS) / UNIT_ROWS)
#define ALONG (BN / SUBGROUPS / UNIT_COLUMNS)
#define SUM_ROWS DOWN
#define SUM_FOURS (TM * TN / 4 / DOWN)
#if defined(RIGHT_ROWS) || defined(RIGHT_COLUMNS)
typedef float4 RightLoad;
#else
#define CHUNK 8  // weights that are loaded at once
#undef RIGHT_LOADS
#define RIGHT_LOADS (BN * BK / CHUNK / ITEMS)
typedef uint4 RightLoad;
#endif
#if defined(EMULATED) || defined(MATRIX_DPAS)
#define STEPS _Pragma("unroll 1")  // Intel's work-items have few registers
#else
#define STEPS UNROLL
#endif
#ifdef EMULATED
#define UNROLL_UNITS _Pragma("unroll 1")
#define SCRATCH (right + BN * LINE)
#else
#define UNROLL_UNITS UNROLL
#define SCRATCH 0
#endif

// The i-th of a work-item's loads of weights, for the step of the depth at k.
inline RightLoad load_line(__global const Packed *weights, const int item, const int i, const int k, const int end,
                           const int n0, __global const LocalProduct *p) {
#if defined(RIGHT_ROWS) || defined(RIGHT_COLUMNS)
    return load_right(weights, item, i, k, end, n0, p);
#else
    return ((__global const uint4 *)(weights + (size_t)k * BN))[item + i * ITEMS];
#endif
}

inline void store_line(__local ushort *right, const RightLoad w, const int item, const int i) {
#if defined(RIGHT_COLUMNS)
    *(__local uint2 *)(right + RIGHT_LINE(i) * LINE + RIGHT_DEPTH) = halves_of(w);
#elif defined(RIGHT_ROWS)
    const ushort4 y = as_ushort4(halves_of(w));
    __local ushort *to = right + RIGHT_COLUMN(i) * LINE + RIGHT_LINE(i);
    to[0] = y.s0;
    to[LINE] = y.s1;
    to[2 * LINE] = y.s2;
    to[3 * LINE] = y.s3;
#else
    const int chunk = item + i * ITEMS;
    *(__local uint4 *)(right + chunk / (BK / CHUNK) * LINE + chunk % (BK / CHUNK) * CHUNK) = w;
#endif
}

// The sums of a work-item, of x and the weights of a slice.
inline void add_up(float4 sums[SUM_ROWS][SUM_FOURS], __global const float *x, __global const Packed *weights,
                   const Tile tile, __local float4 *memory, __global const LocalProduct *p, const Around *around) {
    __local ushort *left = (__local ushort *)memory, *right = left + BM * LINE;
    const int item = get_local_id(0), lane = item % UNIT_LANES, subgroup = item / UNIT_LANES;
    const int top = subgroup / SUBGROUPS * DOWN * UNIT_ROWS, first = subgroup % SUBGROUPS * ALONG * UNIT_COLUMNS;
#if !defined(RIGHT_ROWS) && !defined(RIGHT_COLUMNS)
    weights += (size_t)get_group_id(0) * p->panel_depth * BN;
#endif
    const int own_row = item / (BK / 4), own_depth = (item & (BK / 4 - 1)) * 4;
    Row rows[LEFT_LOADS];
    float4 next_left[LEFT_LOADS];
    RightLoad next_right[RIGHT_LOADS];
    UNROLL for (int i = 0; i < LEFT_LOADS; ++i) {
        rows[i] = row_of(tile.m + own_row + i * (ITEMS / (BK / 4)), p);
        next_left[i] = load_left(x, rows[i], tile.start + own_depth, tile.end, p, around);
    }
    UNROLL for (int i = 0; i < RIGHT_LOADS; ++i)
        next_right[i] = load_line(weights, item, i, tile.start, tile.end, tile.n, p);
    Sums units[DOWN][ALONG];
    UNROLL for (int i = 0; i < DOWN; ++i)
        UNROLL for (int j = 0; j < ALONG; ++j) units[i][j] = 0.0f;
    for (int k = tile.start; k < tile.end; k += BK) {
        barrier(CLK_LOCAL_MEM_FENCE);  // all have read what is overwritten now
        UNROLL for (int i = 0; i < LEFT_LOADS; ++i)
            *(__local uint2 *)(left + (own_row + i * (ITEMS / (BK / 4))) * LINE + own_depth) = halves_of(next_left[i]);
        UNROLL for (int i = 0; i < RIGHT_LOADS; ++i) store_line(right, next_right[i], item, i);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (k + BK < tile.end) {
            UNROLL for (int i = 0; i < LEFT_LOADS; ++i)
                next_left[i] = load_left(x, rows[i], k + BK + own_depth, tile.end, p, around);
            UNROLL for (int i = 0; i < RIGHT_LOADS; ++i)
                next_right[i] = load_line(weights, item, i, k + BK, tile.end, tile.n, p);
        }
        // Fragments are loaded where they are multiplied: compilers load each once, and llvmpipe loses what is held across
        // an emulated unit's barriers.
        STEPS for (int step = 0; step < BK; step += UNIT_DEPTH) {
            UNROLL_UNITS for (int j = 0; j < ALONG; ++j)
                UNROLL_UNITS for (int i = 0; i < DOWN; ++i) {
                    const Left a = left_of(left + (top + i * UNIT_ROWS) * LINE + step, LINE, lane);
                    const Right b = right_of(right + (first + j * UNIT_COLUMNS) * LINE + step, LINE, lane);
                    units[i][j] = multiply(a, b, units[i][j], SCRATCH);
                }
        }
    }
    __local float *exchanged = (__local float *)memory;
    UNROLL for (int i = 0; i < DOWN; ++i) {
        barrier(CLK_LOCAL_MEM_FENCE);
        UNROLL for (int j = 0; j < ALONG; ++j)
            UNROLL for (int own = 0; own < UNIT_SUMS; ++own) {
                const int row = subgroup / SUBGROUPS * UNIT_ROWS + sum_row(lane, own);
                const int column = first + j * UNIT_COLUMNS + sum_column(lane, own);
                exchanged[row * BN + column] = ((float *)&units[i][j])[own] * p->scale;
            }
        barrier(CLK_LOCAL_MEM_FENCE);
        UNROLL for (int j = 0; j < SUM_FOURS; ++j) sums[i][j] = ((__local float4 *)exchanged)[item + j * ITEMS];
    }
}

// Does something with every four sums of a work-item: row m, from column n on.
#define FOR_SUMS(...)                                                                                      \
    UNROLL for (int i = 0; i < SUM_ROWS; ++i)                                                              \
        UNROLL for (int j = 0; j < SUM_FOURS; ++j) {                                                       \
            const int four = get_local_id(0) + j * ITEMS, row = four / (BN / 4);                           \
            const int m = tile.m + (row / UNIT_ROWS * DOWN + i) * UNIT_ROWS + row % UNIT_ROWS;             \
            const int n = tile.n + four % (BN / 4) * 4;                                                    \
            if (m >= p->rows) continue;                                                                    \
            __VA_ARGS__;                                                                                   \
        }
