// Register tiles: MR rows x NV vectors of accumulators, the heart of every kernel that multiplies matrices.
//
// Weights are packed in panels, [columns / PANEL][depth][PANEL], and columns past the last are zeros. On a CPU a panel
// is as wide as a tile, which then reads memory in order; on a GPU it is wider, so that neighbours read side by side.
//
// Macros: MR and NV; PANEL, a multiple of a tile's columns.
#include "common.h"

#define TILE_COLUMNS (NV * VW)

#define UNROLL _Pragma("unroll")

// A tile stays in registers only where what works on it is part of the same function.
#define INLINE __attribute__((always_inline)) inline

// Neighbouring work-items of a GPU take neighbouring columns; those of a CPU take rows under the same panel.
#ifdef LITECL_GPU
#define ROW_ITEM get_global_id(1)
#define COLUMN_ITEM get_global_id(0)
#else
#define ROW_ITEM get_global_id(0)
#define COLUMN_ITEM get_global_id(1)
#endif

// A runtime for CPUs may compile a kernel several times over, once for each way of launching it: what it calls out of
// line is compiled once. A work-item there is a group of its own.
#ifdef LITECL_CPU
#define OUT_OF_LINE __attribute__((noinline)) static
#define KERNEL __kernel __attribute__((reqd_work_group_size(1, 1, 1))) WIDE
#else
#define OUT_OF_LINE static
#define KERNEL __kernel
#endif

// Without it LLVM cuts 512-bit vectors in two for the processors on which it prefers 256 bits.
#ifdef __AVX512F__
#define WIDE __attribute__((min_vector_width(512)))
#else
#define WIDE
#endif

// The first `columns` floats at p, and zeros.
INLINE floatv load_vector(__global const float *p, const int columns) {
    if (columns >= VW) return LOAD(p);
    float lanes[VW];
    for (int i = 0; i < VW; ++i) lanes[i] = i < columns ? p[i] : 0.0f;
    return *(__private const floatv_u *)lanes;
}

// Writes the first `columns` floats of x.
INLINE void store_vector(__global float *p, const floatv x, const int columns) {
    if (columns >= VW) {
        STORE(p, x);
        return;
    }
    float lanes[VW];
    *(__private floatv_u *)lanes = x;
    for (int i = 0; i < columns; ++i) p[i] = lanes[i];
}

// Starts to fetch a line into the second-level cache.
#if defined(LITECL_CPU) && defined(__x86_64__)
#define PREFETCH(p) __builtin_prefetch((const void *)(size_t)(p), 0, 2)
#else
#define PREFETCH(p)
#endif

#ifdef MR
// Packed weights that a tile will not read but a later one will: it fetches a line of them for every row it multiplies.
typedef struct {
    __global const float *weights;
    int step;
} Ahead;

// The share of the panel after this one that belongs to the band-th of `bands` tiles under a panel. Each reads as many
// lines as it multiplies rows, so that together they read the panel while it is still in farther memory.
INLINE Ahead next_panel(__global const float *panel, const int depth, const int band, const int bands) {
    const int step = PANEL / bands;
    return (Ahead){panel + (size_t)depth * (PANEL + band * step), step};
}

// tile[r][j] += sum over k < depth of rows[r][k] * weights[k * PANEL + j * VW].
INLINE void multiply_tile(floatv tile[MR][NV], __global const float *const rows[MR], __global const float *weights,
                          const int depth, Ahead *ahead) {
    for (int k = 0; k < depth; ++k, weights += PANEL) {
        floatv w[NV];
        PREFETCH(ahead->weights + k * ahead->step);
        UNROLL for (int j = 0; j < NV; ++j) w[j] = LOAD(weights + j * VW);
        UNROLL for (int r = 0; r < MR; ++r) {
            const float x = rows[r][k];
            UNROLL for (int j = 0; j < NV; ++j) tile[r][j] = x * w[j] + tile[r][j];
        }
    }
    ahead->weights += depth * ahead->step;
}

// out[0 .. columns) = activation(row + residual), for one row of a tile.
INLINE void finish_row(const floatv row[NV], __global const float *residual, __global float *out, const int columns,
                       const int has_residual, const float low, const float high) {
    UNROLL for (int j = 0; j < NV; ++j) {
        floatv y = row[j];
        if (has_residual) y += load_vector(residual + j * VW, columns - j * VW);
        store_vector(out + j * VW, ACTIVATION(y, low, high), columns - j * VW);
    }
}

// The panel that column n lies in, at that column, for weights of `depth` rows.
INLINE __global const float *panel_at(__global const float *weights, const int n, const int depth) {
    return weights + (size_t)(n / PANEL) * PANEL * depth + n % PANEL;
}
#endif
