// Attention with an online softmax: out = softmax(scale * queries keys^T + mask) values, block by block of keys.
//
// Only one block of scores exists at a time. Each row keeps its largest score so far and the sum of exponentials
// relative to it; when a block has a larger score, that sum and the row of results are rescaled. A block that the mask
// hides from every row is read only if some row has seen no score above `least`, next to which hidden ones weigh 0.
// queries [rows, depth]; values [keys, columns]; out [rows, columns]. With MR, keys are packed in panels (tile.h) and
// MR rows of queries are computed at a time. Without it ROWS rows are, and keys are not packed: [keys, depth] with
// KEYS_IN_ROWS, else [depth, keys]; values are [columns, keys] without VALUES_IN_ROWS.
// begins: the offsets of each product's operands. A work-item takes item_rows rows of one product.
// Macros: MR, NV, PANEL, WIDTH (tile.h), and PANELS, the panels of a block of keys; or ROWS; KEYS_IN_ROWS and
// VALUES_IN_ROWS, 0 or 1; BOOLEANS, if the mask selects scores instead of being added (the record Attention).
#ifdef MR
#define ROWS MR
#else
#ifdef LITECL_GPU  // where all that is indexed must be in registers
#define PANEL VW
#else
#define PANEL 64
#endif
#define NV (PANEL / VW)
#define KEYS_AT_ONCE (ROWS > 3 ? 2 : 4)
#define PANELS 1
#endif
#include "tile.h"
#include <delegate.matmul.attention.Attention>
#include <delegate.matmul.attention.AttentionBegin>

#define BLOCK_KEYS (PANELS * TILE_COLUMNS)
#define BLOCK_VECTORS (PANELS * NV)

#define WHOLE(p, left) LOAD(p)
#define STORE_WHOLE(p, x, left) STORE(p, x)

#ifdef BOOLEANS
typedef uchar Mask;

INLINE bool shows(const Mask mask, __global const Attention *a) { return (mask != 0) == a->shown; }

// Whether the mask hides all of `count` keys.
INLINE bool hides(__global const Mask *mask, const int count, __global const Attention *a) {
    bool any = false;
    for (int i = 0; i < (a->mask_step ? count : 1); ++i) any |= shows(mask[i], a);
    return !any;
}

// Masks a vector of scores, the first `count` of which exist.
INLINE floatv masked(const floatv scores, __global const Mask *mask, const int count, __global const Attention *a) {
    floatv x = scores;
    FIRST(i, MIN(count, VW), VW)
        if (!shows(mask[i * a->mask_step], a)) ((float *)&x)[i] = a->fill;
    return x;
}
#else
typedef float Mask;

// A score with this added has no weight beside scores above `least`, unless its product is as large.
#define NEVER_SEEN (2.0f * a->least)

INLINE bool hides(__global const Mask *mask, const int count, __global const Attention *a) {
    if (!a->mask_step) return *mask <= NEVER_SEEN;
    floatv seen = 0.0f;
    for (int i = 0; i < count; i += VW) {
        const floatv x = load_part(mask + i, MIN(VW, count - i), count - i, -INFINITY);
        seen = x <= NEVER_SEEN ? seen : (floatv)(1.0f);
    }
    return sum_lanes(seen) == 0.0f;
}

INLINE floatv masked(const floatv scores, __global const Mask *mask, const int count, __global const Attention *a) {
    return scores + (a->mask_step ? load_vector(mask, count) : (floatv)(*mask));
}
#endif

INLINE bool hides_all(__global const Mask *mask, const int starts[ROWS], const int rows, const int count,
                      __global const Attention *a) {
    for (int r = 0; r < (a->mask_row ? rows : 1); ++r)
        if (!hides(mask + starts[r], count, a)) return false;
    return true;
}

#ifdef MR
// Products of rows of queries and a block of keys.
INLINE void multiply(floatv x[ROWS][BLOCK_VECTORS], __global const float *const rows[ROWS],
                     __global const float *keys, const int first, const int count, __global const Attention *a) {
    keys += (size_t)first * a->depth;
    ROLL for (int n = 0; n < count; n += TILE_COLUMNS, keys += (size_t)TILE_COLUMNS * a->depth) {
        floatv tile[ROWS][NV];
        UNROLL for (int r = 0; r < ROWS; ++r)
            UNROLL for (int j = 0; j < NV; ++j) tile[r][j] = 0.0f;
        multiply_tile(tile, rows, keys, a->depth, a->depth);
        UNROLL for (int r = 0; r < ROWS; ++r)
            UNROLL for (int j = 0; j < NV; ++j) x[r][n / VW + j] = tile[r][j];
    }
}
#elif KEYS_IN_ROWS
INLINE void multiply(floatv x[ROWS][NV], __global const float *const rows[ROWS], __global const float *keys,
                     const int first, const int count, __global const Attention *a) {
    const int depth = a->depth;
    FIRST_BY(KEYS_AT_ONCE, n, count, TILE_COLUMNS) {
        floatv lanes[ROWS][KEYS_AT_ONCE];
        __global const float *key[KEYS_AT_ONCE];
        UNROLL for (int i = 0; i < KEYS_AT_ONCE; ++i) {
            UNROLL for (int r = 0; r < ROWS; ++r) lanes[r][i] = 0.0f;
            key[i] = keys + (size_t)(first + MIN(n + i, count - 1)) * depth;
        }
        int k = 0;
        for (; k + VW <= depth; k += VW) {
            UNROLL for (int i = 0; i < KEYS_AT_ONCE; ++i) {
                const floatv own = LOAD(key[i] + k);
                UNROLL for (int r = 0; r < ROWS; ++r) lanes[r][i] = LOAD(rows[r] + k) * own + lanes[r][i];
            }
        }
        UNROLL for (int r = 0; r < ROWS; ++r) {
            UNROLL for (int i = 0; i < KEYS_AT_ONCE; ++i) {
                float sum = sum_lanes(lanes[r][i]);
                for (int rest = k; rest < depth; ++rest) sum += rows[r][rest] * key[i][rest];
                ((float *)x[r])[n + i] = sum;
            }
        }
    }
}
#else
#define ADD_KEYS(load)                                                                               \
    for (int k = 0; k < a->depth; ++k, keys += a->keys)                                              \
        UNROLL for (int j = 0; j < NV; ++j) {                                                        \
            const floatv own = load(keys + j * VW, count - j * VW);                                  \
            UNROLL for (int r = 0; r < ROWS; ++r) x[r][j] = rows[r][k] * own + x[r][j];              \
        }

INLINE void multiply(floatv x[ROWS][NV], __global const float *const rows[ROWS], __global const float *keys,
                     const int first, const int count, __global const Attention *a) {
    UNROLL for (int r = 0; r < ROWS; ++r)
        UNROLL for (int j = 0; j < NV; ++j) x[r][j] = 0.0f;
    keys += first;
    if (count == TILE_COLUMNS) {
        ADD_KEYS(WHOLE)
    } else {
        ADD_KEYS(load_vector)
    }
}
#endif

// Scales and masks a vector of scores, the first `count` of which exist.
INLINE floatv scored(const floatv products, __global const Mask *mask, const int count, __global const Attention *a) {
    floatv x = products * a->scale;
    if (a->has_mask) x = masked(x, mask, count, a);
    return LANES < (intv)count ? x : (floatv)(-INFINITY);
}

// Turns a row's vectors of scores into exponentials relative to its largest score so far, and adds them up. Returns the
// factor that rescales earlier sums.
INLINE float exponentials(floatv x[BLOCK_VECTORS], const int vectors, float *most, float *sum) {
    floatv best = -INFINITY;
    FIRST(j, vectors, BLOCK_VECTORS) best = max_v(x[j], best);
    const float before = *most, after = MAX(max_lanes(best), before);
    const float shift = after == -INFINITY ? 0.0f : after;  // no score has been seen yet
    floatv total = 0.0f;
    FIRST(j, vectors, BLOCK_VECTORS) {
        x[j] = exp_v(x[j] - shift);
        total += x[j];
    }
    const float factor = before == after ? 1.0f : exp_s(before - shift);
    *most = after;
    *sum = sum_lanes(total);
    return factor;
}

#if !VALUES_IN_ROWS
// out[r] = out[r] * factors[r] + weights[r] values.
#define ADD_COLUMNS(load)                                                                                      \
    for (int c = 0; c < a->columns; ++c, values += a->keys) {                                                  \
        floatv lanes[ROWS];                                                                                    \
        UNROLL for (int r = 0; r < ROWS; ++r) lanes[r] = 0.0f;                                                 \
        UNROLL for (int j = 0; j < NV; ++j) {                                                                  \
            const floatv own = load(values + j * VW, count - j * VW);                                          \
            UNROLL for (int r = 0; r < ROWS; ++r)                                                              \
                lanes[r] = *(__private const floatv *)(weights[r] + j * VW) * own + lanes[r];                  \
        }                                                                                                      \
        UNROLL for (int r = 0; r < ROWS; ++r)                                                                  \
            if (r < there) out[at[r] + c] = out[at[r] + c] * factors[r] + sum_lanes(lanes[r]);                 \
    }

INLINE void add_values(__global float *out, const int at[ROWS], const float factors[ROWS],
                       const float weights[ROWS][BLOCK_KEYS], __global const float *values, const int first,
                       const int count, __global const Attention *a, const int there) {
    values += first;
    if (count == TILE_COLUMNS) {
        ADD_COLUMNS(WHOLE)
    } else {
        ADD_COLUMNS(load_vector)
    }
}
#else
// out[r] = out[r] * factors[r] + weights[r] values, for `left` columns.
#define ADD_VALUES(vectors, load, store)                                                                       \
    {                                                                                                          \
        floatv sums[ROWS][vectors];                                                                            \
        UNROLL for (int r = 0; r < ROWS; ++r)                                                                  \
            UNROLL for (int j = 0; j < vectors; ++j)                                                           \
                sums[r][j] = load(out + at[r] + c + j * VW, left - j * VW) * factors[r];                       \
        __global const float *v = values + c;                                                                  \
        FIRST(n, count, BLOCK_KEYS) {                                                                        \
            floatv w[vectors];                                                                                 \
            UNROLL for (int j = 0; j < vectors; ++j) w[j] = load(v + j * VW, left - j * VW);                   \
            UNROLL for (int r = 0; r < ROWS; ++r)                                                              \
                UNROLL for (int j = 0; j < vectors; ++j) sums[r][j] = weights[r][n] * w[j] + sums[r][j];       \
            v += columns;                                                                                      \
        }                                                                                                      \
        UNROLL for (int r = 0; r < ROWS; ++r)                                                                  \
            if (r < there)                                                                                     \
                UNROLL for (int j = 0; j < vectors; ++j)                                                       \
                    store(out + at[r] + c + j * VW, sums[r][j], left - j * VW);                                \
    }

INLINE void add_values(__global float *out, const int at[ROWS], const float factors[ROWS],
                       const float weights[ROWS][BLOCK_KEYS], __global const float *values, const int first,
                       const int count, __global const Attention *a, const int there) {
    const int columns = a->columns;
    values += (size_t)first * columns;
    for (int c = 0; c < columns; c += TILE_COLUMNS) {
        const int left = columns - c;
        if (left >= TILE_COLUMNS) ADD_VALUES(NV, WHOLE, STORE_WHOLE)
        else ADD_VALUES(NV, load_vector, store_vector)
    }
}
#endif

// Adds a block of keys to rows of results, of which `there` exist. most, sums: of the rows so far.
INLINE void attend_block(__global float *out, const int at[ROWS], float most[ROWS], float sums[ROWS],
                         __global const float *const rows[ROWS], __global const float *keys,
                         __global const float *values, __global const Mask *mask, const int starts[ROWS],
                         const int first, const int count, __global const Attention *a, const int there) {
    floatv x[ROWS][BLOCK_VECTORS];
    float factors[ROWS];
#ifdef MR
    const int vectors = (count + VW - 1) / VW;
#else
    const int vectors = BLOCK_VECTORS;
#endif
    multiply(x, rows, keys, first, count, a);
    bool counts = false;
    ROLL_FIRST(r, ROWS, ROWS) {
        __global const Mask *own = mask + starts[r];
        FIRST(j, vectors, BLOCK_VECTORS) x[r][j] = scored(x[r][j], own + j * VW * a->mask_step, count - j * VW, a);
        float sum;
        factors[r] = exponentials(x[r], vectors, &most[r], &sum);
        sums[r] = sums[r] * factors[r] + sum;
        counts |= sum != 0.0f;  // the smallest weight counts: values may be 1e30
    }
    __private const float(*weights)[BLOCK_KEYS] = (__private const float(*)[BLOCK_KEYS])x;
    if (counts) add_values(out, at, factors, weights, values, first, count, a, there);
}

// Rows of queries from `number` on, of which `there` exist; queries and out point at the first. Hidden keys come last,
// and only if a row has seen no score above `least`.
OUT_OF_LINE WIDE void attend(__global const float *queries, __global const float *keys, __global const float *values,
                             __global const Mask *mask, __global float *out, __global const Attention *a,
                             const int number, const int there) {
    const int columns = a->columns;
    __global const float *rows[ROWS];
    float most[ROWS], sums[ROWS];
    int at[ROWS], starts[ROWS];
    UNROLL for (int r = 0; r < ROWS; ++r) {
        const int row = MIN(r, there - 1);
        starts[r] = (number + row) % a->mask_rows * a->mask_row;
        rows[r] = queries + (size_t)row * a->depth;
        at[r] = row * columns;
        most[r] = -INFINITY;
        sums[r] = 0.0f;
    }
    for (int c = 0; c < there * columns; c += VW) store_vector(out + c, 0.0f, there * columns - c);
    int passes = 1;
    ROLL for (int pass = 0; pass < passes; ++pass) {
        bool skipped = false;
        ROLL for (int n = 0; n < a->keys; n += BLOCK_KEYS) {
            const int count = MIN(BLOCK_KEYS, a->keys - n);
            __global const Mask *masks = mask + n * a->mask_step;
            if (a->has_mask && hides_all(masks, starts, there, count, a) != pass) {
                skipped = true;
                continue;
            }
            attend_block(out, at, most, sums, rows, keys, values, masks, starts, n, count, a, there);
        }
        if (pass || !skipped) break;
        UNROLL for (int r = 0; r < ROWS; ++r)
            if (!(most[r] > a->least)) passes = 2;
    }
    for (int r = 0; r < there; ++r) {
        const float scale = 1.0f / sums[r];
        __global float *row = out + r * columns;
        for (int c = 0; c < columns; c += VW) store_vector(row + c, load_vector(row + c, columns - c) * scale, columns - c);
    }
}

KERNEL void attention(ITEM __global const float *queries, __global const float *keys, __global const float *values,
                      __global const Mask *mask, __global float *out, __global const AttentionBegin *begins,
                      __global const Attention *a) {
    const int product = ITEM_INDEX(1), first = ITEM_INDEX(0) * a->item_rows, last = MIN(first + a->item_rows, a->rows);
    if (product >= a->products) return;  // a GPU's groups are whole
    __global const AttentionBegin *begin = begins + product;
    out += (size_t)product * a->rows * a->columns;
    for (int row = first; row < last; row += ROWS)
        attend(queries + begin->queries + (size_t)row * a->depth, keys + begin->keys, values + begin->values,
               mask + begin->mask, out + (size_t)row * a->columns, a, row, MIN(ROWS, last - row));
}
