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

// ROLL: a loop that is rarely entered, so its code should be short. ROLL_FIRST: the same over the first n of `most`
// elements in registers, where they must stay on a GPU. UNROLL_BY_2: a loop of long steps, two of which overlap enough.
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

// Between the steps of long unrolled code: their loads are not moved ahead, where they would take all registers.
#ifdef LITECL_NATIVE
#define IN_ORDER __asm__ volatile("" ::: "memory")
#else
#define IN_ORDER
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

// Writes the first `columns` < VW elements of x, a vector of `type`, on a CPU in as few stores as possible.
#define STORE_PART(type, p, x, columns)                                  \
    typedef VECTOR(type) part_u __attribute__((aligned(sizeof(type))));  \
    type lanes[VW];                                                      \
    *(__private part_u *)lanes = x;                                      \
    STORE_LANES(type, p, lanes, columns)

#ifdef LITECL_GPU
#define STORE_LANES(type, p, lanes, columns) FIRST(i, columns, VW) p[i] = lanes[i];
#else
#define STORE_LANES(type, p, lanes, columns)       \
    int i = 0;                                     \
    STORE_PIECE(type, 8, p, lanes, columns)        \
    STORE_PIECE(type, 4, p, lanes, columns)        \
    for (; i < columns; ++i) p[i] = lanes[i];
#define STORE_PIECE(type, size, p, lanes, columns)                                  \
    if (VW > size && (columns & size)) {                                            \
        typedef JOIN(type, size) piece_u __attribute__((aligned(sizeof(type))));    \
        *(__global piece_u *)(p + i) = *(__private const piece_u *)(lanes + i);     \
        i += size;                                                                  \
    }
#endif

// Writes the first `columns` floats of x, if any.
INLINE void store_vector(__global float *p, const floatv x, const int columns) {
    if (columns >= VW) {
        STORE(p, x);
        return;
    }
    if (columns <= 0) return;
#ifdef HAS_MASKS
    store_first(p, x, columns);
#else
    STORE_PART(float, p, x, columns)
#endif
}

// Applies the activation to a row in place, by vectors: a single number would cost as much as a vector.
INLINE void activate(__global float *row, const int count, const float low, const float high) {
    for (int i = 0; i < count; i += VW)
        store_vector(row + i, ACTIVATION(load_vector(row + i, count - i), low, high), count - i);
}

// Prefetch a line of LINE_FLOATS floats into the first-level cache, or into the second.
#define LINE_FLOATS 16
#if defined(LITECL_CPU) && defined(__x86_64__)
#define PREFETCH(p) __builtin_prefetch((const void *)(size_t)(p), 0, 3)
#define PREFETCH_FAR(p) __builtin_prefetch((const void *)(size_t)(p), 0, 2)
#else
#define PREFETCH(p)
#define PREFETCH_FAR(p)
#endif

// Weights are floats or, with HALF_WEIGHTS, halves that are converted when they are loaded; none is infinite or NaN.
// Vectors of them are aligned, which a GPU's compiler must know to load them at once.
typedef VECTOR(ushort) Halves;
#ifdef LITECL_GPU
typedef Halves Halves_u;
#define LOAD_FLOATS(p) (*(__global const floatv *)(p))
#else
typedef Halves Halves_u __attribute__((aligned(2)));
#define LOAD_FLOATS(p) LOAD(p)
#endif
#if defined(LITECL_NATIVE)
#define FROM_HALVES(h) CONVERT(__builtin_astype(h, VECTOR(half)), float)
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

// Shifts the bits to their positions in a float; the exponent is then off by the difference of the formats' biases.
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

#define LINE_WEIGHTS (LINE_FLOATS * (int)(sizeof(float) / sizeof(Weight)))

#ifdef MR
// The least number of steps by which prefetching is ahead of multiplying.
#define STEPS_AHEAD 48

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

// In how many parts, 2^halvings, tiles of so many rows prefetch the panel after the one that they share: the first of them
// alone would ask for it faster than memory sends it, and wait. 0: each of them prefetches all of it, as a lone tile must
// and vectors of 16 do.
INLINE int halvings_of(const int rows) {
#if defined(LITECL_CPU) && !defined(__AVX512F__)
    return rows > 3 * MR ? 2 : rows > MR;
#else
    return 0;
#endif
}

// tile[r][j] += sum over k < depth of rows[r][k] * weights[k * PANEL + j * VW]. panel_depth: of the whole panel. The
// tile of this number prefetches its part of the next panel, which follows in memory, into the second-level cache, so
// that weights arrive from memory while this panel is multiplied.
INLINE void multiply_shared(floatv tile[MR][NV], __global const float *const rows[MR], __global const Weight *weights,
                            const int depth, const int panel_depth, const int number, const int halvings) {
    const size_t ahead = (size_t)MAX(panel_depth, STEPS_AHEAD) * PANEL;
    int k = 0;
#if MR * NV <= 4
    // Each addition waits for the one before it, so a few sums would leave the multipliers idle: odd k get their own
    // sums.
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
    if (halvings) {  // two steps then share a prefetch and the loop's counting
        const int part = number & ((1 << halvings) - 1), step = 2 * PANEL >> halvings;
        __global const Weight *far = weights + ahead + (size_t)part * (depth >> halvings) * PANEL;
        for (; k + 2 <= depth; k += 2, weights += 2 * PANEL, far += step) {
            UNROLL for (int i = 0; i < PANEL; i += LINE_WEIGHTS) PREFETCH_FAR(far + i);
            multiply_step(tile, rows, weights, k);
            multiply_step(tile, rows, weights + PANEL, k + 1);
        }
    }
    for (; k < depth; ++k, weights += PANEL) {
        UNROLL for (int i = 0; i < PANEL; i += LINE_WEIGHTS) PREFETCH_FAR(weights + ahead + i);
        multiply_step(tile, rows, weights, k);
    }
}

// The same for a tile that prefetches all of the next panel.
INLINE void multiply_tile(floatv tile[MR][NV], __global const float *const rows[MR], __global const Weight *weights,
                          const int depth, const int panel_depth) {
    multiply_shared(tile, rows, weights, depth, panel_depth, 0, 0);
}

// Stores row r < count of a tile at out + to[r]: activation(tile[r] + residual), the first `columns` of it. step:
// elements from a vector to the next.
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
