// Register tiles: MR rows x NV vectors of accumulators, the core of every kernel that multiplies matrices.
//
// Weights are packed in panels, [columns / PANEL][depth][PANEL], and columns past the last are zeros. On a CPU a panel
// is as wide as a tile, which then reads memory in order; on a GPU it is wider, so that adjacent work-items read
// adjacent memory.
//
// Macros: MR and NV; PANEL, a multiple of a tile's columns; HALF_WEIGHTS, if weights are stored as halves; WIDTH,
// floats in a vector, if not VW.
#ifdef WIDTH
#undef VW
#define VW WIDTH
#endif
#include "common.h"

#define TILE_COLUMNS (NV * VW)

// A loop that is rarely entered, so its code should be short; the same of one over the first n of `most` elements of an array
// in registers, where it must stay on a GPU; and one of long steps, two of which overlap enough.
#ifdef LITECL_CPU
#define ROLL _Pragma("clang loop unroll(disable) vectorize(disable)")
#define UNROLL_BY_2 _Pragma("clang loop unroll_count(2) vectorize(disable)")
#else
#define ROLL _Pragma("unroll 1")
#define UNROLL_BY_2 UNROLL
#endif
#ifdef LITECL_GPU
#define ROLL_FIRST FIRST
#else
#define ROLL_FIRST(i, n, most) ROLL FIRST(i, n, most)
#endif

// A tile stays in registers only if all code that uses it is inlined into one function.
#define INLINE __attribute__((always_inline)) inline

// Adjacent work-items of a GPU take adjacent columns; those of a CPU take rows of the same panel.
#ifdef LITECL_GPU
#define ROW_ITEM ITEM_INDEX(1)
#define COLUMN_ITEM ITEM_INDEX(0)
#else
#define ROW_ITEM ITEM_INDEX(0)
#define COLUMN_ITEM ITEM_INDEX(1)
#endif

// The first `columns` floats at p, then zeros.
INLINE floatv load_vector(__global const float *p, const int columns) {
    if (columns >= VW) return LOAD(p);
#ifdef HAS_MASKS
    return load_first(p, columns, 0.0f);
#else
    float lanes[VW];
    FIRST(i, VW, VW) lanes[i] = i < columns ? p[i] : 0.0f;
    return *(__private const floatv_u *)lanes;
#endif
}

typedef float8 float8_u __attribute__((aligned(4)));
typedef float4 float4_u __attribute__((aligned(4)));

// Writes the first `columns` floats of x, if any, in as few stores as possible.
INLINE void store_vector(__global float *p, const floatv x, const int columns) {
    if (columns >= VW) {
        STORE(p, x);
        return;
    }
    if (columns <= 0) return;
#ifdef HAS_MASKS
    store_first(p, x, columns);
    return;
#endif
    float lanes[VW];
    *(__private floatv_u *)lanes = x;
#ifdef LITECL_GPU
    FIRST(i, columns, VW) p[i] = lanes[i];
#else
    int i = 0;
#if VW > 8
    if (columns & 8) {
        *(__global float8_u *)p = *(__private const float8_u *)lanes;
        i = 8;
    }
#endif
#if VW > 4
    if (columns & 4) {
        *(__global float4_u *)(p + i) = *(__private const float4_u *)(lanes + i);
        i += 4;
    }
#endif
    for (; i < columns; ++i) p[i] = lanes[i];
#endif
}

// Applies the activation to a row in place, a vector at once: for a single number it would cost as much.
INLINE void activate(__global float *row, const int count, const float low, const float high) {
    for (int i = 0; i < count; i += VW)
        store_vector(row + i, ACTIVATION(load_vector(row + i, count - i), low, high), count - i);
}

// Prefetches a line, of LINE_FLOATS floats, into the first-level cache, or the second.
#define LINE_FLOATS 16
#if defined(LITECL_CPU) && defined(__x86_64__)
#define PREFETCH(p) __builtin_prefetch((const void *)(size_t)(p), 0, 3)
#define PREFETCH_FAR(p) __builtin_prefetch((const void *)(size_t)(p), 0, 2)
#else
#define PREFETCH(p)
#define PREFETCH_FAR(p)
#endif

// Weights are floats or, with HALF_WEIGHTS, halves converted to floats when they are loaded; none is infinite or NaN.
// Vectors of them are aligned, which the compiler of a GPU must know to load them at once.
typedef VECTOR(ushort) Halves;
#ifdef LITECL_GPU
typedef Halves Halves_u;
#define LOAD_FLOATS(p) (*(__global const floatv *)(p))
#else
typedef Halves Halves_u __attribute__((aligned(2)));
#define LOAD_FLOATS(p) LOAD(p)
#endif
#if defined(LITECL_NATIVE)
#define FROM_HALVES(h) __builtin_convertvector(__builtin_astype(h, VECTOR(half)), floatv)
#elif defined(__F16C__) && VW == 8
typedef short Bits __attribute__((vector_size(16)));
#define FROM_HALVES(h) __builtin_astype(__builtin_ia32_vcvtph2ps256(__builtin_astype(h, Bits)), floatv)
#elif defined(__AVX512F__) && VW == 16
typedef short Bits __attribute__((vector_size(32)));
typedef float Floats __attribute__((vector_size(64)));
#define ZERO __builtin_astype((floatv)(0.0f), Floats)
#define FROM_HALVES(h) \
    __builtin_astype(__builtin_ia32_vcvtph2ps512_mask(__builtin_astype(h, Bits), ZERO, (short)-1, 4), floatv)
#else
#define FROM_HALVES(h) from_halves(h)
#endif

// The bits shifted to their positions in a float, whose exponent is then off by the difference of the formats' biases.
INLINE floatv from_halves(const Halves h) {
    const uintv bits = CONVERT(h, uint);
    return AS_FLOATV((bits & 0x8000u) << 16 | (bits & 0x7fffu) << 13) * 0x1p112f;
}

#ifndef HALF_WEIGHTS
typedef float Weight;
#define LOAD_WEIGHTS(p) LOAD_FLOATS(p)
#define WEIGHT(p) (*(p))
#else
typedef ushort Weight;
#define LOAD_WEIGHTS(p) FROM_HALVES(*(__global const Halves_u *)(p))
#define WEIGHT(p) LANE0(from_halves((Halves)(*(p))))
#endif

#ifdef MR
// The least number of steps between the weights that are multiplied and those that are prefetched.
#define STEPS_AHEAD 48
#define LINE_WEIGHTS (LINE_FLOATS * (int)(sizeof(float) / sizeof(Weight)))

// One step of a product: tile[r][j] += rows[r][k] * weights[j * VW].
INLINE void multiply_step(floatv tile[MR][NV], __global const float *const rows[MR], __global const Weight *weights,
                          const int k) {
    floatv w[NV];
    UNROLL for (int j = 0; j < NV; ++j) w[j] = LOAD_WEIGHTS(weights + j * VW);
    UNROLL for (int r = 0; r < MR; ++r) {
        const float x = rows[r][k];
        UNROLL for (int j = 0; j < NV; ++j) tile[r][j] = x * w[j] + tile[r][j];
    }
}

// tile[r][j] += sum over k < depth of rows[r][k] * weights[k * PANEL + j * VW]. panel_depth: of the whole panel. Every
// tile of its rows prefetches the next panel, which follows it in memory, into the second-level cache: weights that come
// from memory arrive while this one is multiplied.
INLINE void multiply_tile(floatv tile[MR][NV], __global const float *const rows[MR], __global const Weight *weights,
                          const int depth, const int panel_depth) {
    const size_t ahead = (size_t)MAX(panel_depth, STEPS_AHEAD) * PANEL;
    int k = 0;
#if MR * NV <= 4
    // Each addition waits for the one before it, and so few sums would leave the multipliers idle: odd k get sums of
    // their own.
    floatv odd[MR][NV];
    UNROLL for (int r = 0; r < MR; ++r)
        UNROLL for (int j = 0; j < NV; ++j) odd[r][j] = 0.0f;
    for (; k + 2 <= depth; k += 2, weights += 2 * PANEL) {
        multiply_step(tile, rows, weights, k);
        multiply_step(odd, rows, weights + PANEL, k + 1);
    }
    UNROLL for (int r = 0; r < MR; ++r)
        UNROLL for (int j = 0; j < NV; ++j) tile[r][j] += odd[r][j];
#endif
    for (; k < depth; ++k, weights += PANEL) {
        UNROLL for (int i = 0; i < PANEL; i += LINE_WEIGHTS) PREFETCH_FAR(weights + ahead + i);
        multiply_step(tile, rows, weights, k);
    }
}

// Row r < count of a tile goes to out + to[r]: activation(tile[r] + residual), the first `columns` of it. step: elements
// from a vector to the next.
INLINE void finish_tile(floatv tile[MR][NV], __global const float *restrict residual, __global float *restrict out,
                        const int to[MR], const int step, const int count, const int columns, const int has_residual,
                        const float low, const float high) {
    if (columns >= TILE_COLUMNS) {
        if (has_residual)
            UNROLL for (int r = 0; r < MR; ++r)
                if (r < count)
                    UNROLL for (int j = 0; j < NV; ++j) tile[r][j] += LOAD(residual + to[r] + j * step);
        UNROLL for (int r = 0; r < MR; ++r)
            if (r < count)
                UNROLL for (int j = 0; j < NV; ++j) STORE(out + to[r] + j * step, ACTIVATION(tile[r][j], low, high));
        return;
    }
    floatv rows[MR][NV];
    int places[MR];
    UNROLL for (int r = 0; r < MR; ++r) {
        places[r] = to[r];
        UNROLL for (int j = 0; j < NV; ++j) rows[r][j] = tile[r][j];
    }
    ROLL_FIRST(r, MIN(count, MR), MR) {
        UNROLL for (int j = 0; j < NV; ++j) {
            const int at = places[r] + j * step, rest = columns - j * VW;
            floatv y = rows[r][j];
            if (has_residual) y += load_vector(residual + at, rest);
            store_vector(out + at, ACTIVATION(y, low, high), rest);
        }
    }
}

// The panel of column n, starting at that column, for weights of `depth` rows.
INLINE __global const Weight *panel_at(__global const Weight *weights, const int n, const int depth) {
    return weights + (size_t)(n / PANEL) * PANEL * depth + n % PANEL;
}
#endif
