// Attention with an online softmax: out = softmax(scale * queries keys^T + mask) values, block by block of keys.
//
// Of the scores only those of a block are ever there. A row keeps the largest score so far and the sum of exponentials
// relative to it; where a block has a larger one, that sum and the row of results are rescaled. A block that the mask
// hides from all rows (by minus infinity) is not read.
// queries [rows, depth]; values [keys, columns]; out [rows, columns]. keys are packed in panels (tile.h), for MR rows of
// queries at a time, or without MR, for one, as they are: [keys, depth] with KEYS_IN_ROWS, else [depth, keys].
// begins: where the operands of each product are. A work-item takes item_rows rows of one product.
// Macros: MR, NV, PANEL, WIDTH (tile.h); KEYS_IN_ROWS, 0 or 1.
#ifdef MR
#define ROWS MR
#else
#define ROWS 1
#ifdef LITECL_GPU  // where all that is indexed must be in registers
#define PANEL VW
#else
#define PANEL 64
#endif
#define NV (PANEL / VW)
#define KEYS_AT_ONCE 4
#endif
#include "tile.h"
#include <Attention>
#include <AttentionBegin>

#define WHOLE(p, left) LOAD(p)
#define STORE_WHOLE(p, x, left) STORE(p, x)

// Whether none of `count` keys is seen.
INLINE bool hides(__global const float *mask, const int count, const int step) {
    if (!step) return *mask == -INFINITY;
    for (int i = 0; i < count; i += VW) {
        const floatv x = load_part(mask + i, MIN(VW, count - i), count - i, -INFINITY);
        if (sum_lanes(x == -INFINITY ? (floatv)(0.0f) : (floatv)(1.0f)) != 0.0f) return false;
    }
    return true;
}

INLINE bool hides_all(__global const float *mask, const int rows, const int count, __global const Attention *a) {
    for (int r = 0; r < (a->mask_row ? rows : 1); ++r)
        if (!hides(mask + r * a->mask_row, count, a->mask_step)) return false;
    return true;
}

#ifdef MR
// Products of rows of queries and a block of keys.
INLINE void multiply(floatv x[ROWS][NV], __global const float *const rows[ROWS], __global const float *keys,
                     const int first, const int count, __global const Attention *a) {
    UNROLL for (int r = 0; r < ROWS; ++r)
        UNROLL for (int j = 0; j < NV; ++j) x[r][j] = 0.0f;
    keys += (size_t)first * a->depth;
    Ahead ahead = next_panel(keys, a->depth, 0, PANEL);
    multiply_tile(x, rows, keys, a->depth, &ahead);
}
#elif KEYS_IN_ROWS
INLINE void multiply(floatv x[ROWS][NV], __global const float *const rows[ROWS], __global const float *keys,
                     const int first, const int count, __global const Attention *a) {
    const int depth = a->depth;
    float *products = (float *)x;
    FIRST_BY(KEYS_AT_ONCE, n, count, TILE_COLUMNS) {
        floatv lanes[KEYS_AT_ONCE];
        __global const float *key[KEYS_AT_ONCE];
        UNROLL for (int i = 0; i < KEYS_AT_ONCE; ++i) {
            lanes[i] = 0.0f;
            key[i] = keys + (size_t)(first + MIN(n + i, count - 1)) * depth;
        }
        int k = 0;
        for (; k + VW <= depth; k += VW) {
            const floatv q = LOAD(rows[0] + k);
            UNROLL for (int i = 0; i < KEYS_AT_ONCE; ++i) lanes[i] = q * LOAD(key[i] + k) + lanes[i];
        }
        UNROLL for (int i = 0; i < KEYS_AT_ONCE; ++i) {
            float sum = sum_lanes(lanes[i]);
            for (int rest = k; rest < depth; ++rest) sum += rows[0][rest] * key[i][rest];
            products[n + i] = sum;
        }
    }
}
#else
#define ADD_KEYS(load)                                                                               \
    for (int k = 0; k < a->depth; ++k, keys += a->keys)                                              \
        UNROLL for (int j = 0; j < NV; ++j)                                                          \
            x[0][j] = rows[0][k] * load(keys + j * VW, count - j * VW) + x[0][j];

INLINE void multiply(floatv x[ROWS][NV], __global const float *const rows[ROWS], __global const float *keys,
                     const int first, const int count, __global const Attention *a) {
    UNROLL for (int j = 0; j < NV; ++j) x[0][j] = 0.0f;
    keys += first;
    if (count == TILE_COLUMNS) {
        ADD_KEYS(WHOLE)
    } else {
        ADD_KEYS(load_vector)
    }
}
#endif

// A vector of scores, of which `count` are there.
INLINE floatv scored(const floatv products, __global const float *mask, const int count, __global const Attention *a) {
    floatv x = products * a->scale;
    if (a->has_mask) x += a->mask_step ? load_vector(mask, count) : (floatv)(*mask);
    return LANES < (intv)count ? x : (floatv)(-INFINITY);
}

// Turns scores of a row into exponentials relative to the largest score so far, and adds them up. Returns by what earlier
// ones are rescaled.
INLINE float exponentials(floatv x[NV], float *most, float *sum) {
    floatv best = -INFINITY;
    UNROLL for (int j = 0; j < NV; ++j) best = max_v(x[j], best);
    const float before = *most, after = MAX(max_lanes(best), before);
    const float shift = after == -INFINITY ? 0.0f : after;  // nothing has been seen yet
    floatv total = 0.0f;
    UNROLL for (int j = 0; j < NV; ++j) {
        x[j] = exp_v(x[j] - shift);
        total += x[j];
    }
    const float factor = before == after ? 1.0f : exp_s(before - shift);
    *most = after;
    *sum = sum_lanes(total);
    return factor;
}

// out[r] = out[r] * factors[r] + weights[r] values, for `left` columns.
#define ADD_VALUES(vectors, load, store)                                                                       \
    {                                                                                                          \
        floatv sums[ROWS][vectors];                                                                            \
        UNROLL for (int r = 0; r < ROWS; ++r)                                                                  \
            UNROLL for (int j = 0; j < vectors; ++j)                                                           \
                sums[r][j] = load(out + at[r] + c + j * VW, left - j * VW) * factors[r];                       \
        __global const float *v = values + c;                                                                  \
        FIRST(n, count, TILE_COLUMNS) {                                                                        \
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
                       const float weights[ROWS][TILE_COLUMNS], __global const float *values, const int count,
                       const int columns, const int there) {
    for (int c = 0; c < columns; c += TILE_COLUMNS) {
        const int left = columns - c;
        if (left >= TILE_COLUMNS) ADD_VALUES(NV, WHOLE, STORE_WHOLE)
        else ADD_VALUES(NV, load_vector, store_vector)
    }
}

// Rows of queries, of which `there` are: queries, mask and out begin at the first.
OUT_OF_LINE WIDE void attend(__global const float *queries, __global const float *keys, __global const float *values,
                             __global const float *mask, __global float *out, __global const Attention *a,
                             const int there) {
    const int columns = a->columns;
    __global const float *rows[ROWS];
    float most[ROWS], sums[ROWS], factors[ROWS];
    int at[ROWS];
    UNROLL for (int r = 0; r < ROWS; ++r) {
        const int row = MIN(r, there - 1);
        rows[r] = queries + (size_t)row * a->depth;
        at[r] = row * columns;
        most[r] = -INFINITY;
        sums[r] = 0.0f;
    }
    for (int c = 0; c < there * columns; c += VW) store_vector(out + c, 0.0f, there * columns - c);
    for (int n = 0; n < a->keys; n += TILE_COLUMNS) {
        const int count = MIN(TILE_COLUMNS, a->keys - n);
        __global const float *masks = mask + n * a->mask_step;
        if (a->has_mask && hides_all(masks, there, count, a)) continue;
        floatv x[ROWS][NV];
        multiply(x, rows, keys, n, count, a);
        bool counts = false;
        ROLL_FIRST(r, ROWS, ROWS) {
            __global const float *own = masks + MIN(r, there - 1) * a->mask_row;
            UNROLL for (int j = 0; j < NV; ++j)
                x[r][j] = scored(x[r][j], own + j * VW * a->mask_step, count - j * VW, a);
            float sum;
            factors[r] = exponentials(x[r], &most[r], &sum);
            sums[r] = sums[r] * factors[r] + sum;
            counts |= sum != 0.0f;  // any weight at all: values of 1e30 make the smallest one count
        }
        __private const float(*weights)[TILE_COLUMNS] = (__private const float(*)[TILE_COLUMNS])x;
        if (counts) add_values(out, at, factors, weights, values + (size_t)n * columns, count,
                               columns, there);
    }
    for (int r = 0; r < there; ++r) {
        const float scale = 1.0f / sums[r];
        __global float *row = out + r * columns;
        for (int c = 0; c < columns; c += VW) store_vector(row + c, load_vector(row + c, columns - c) * scale, columns - c);
    }
}

KERNEL void attention(ITEM __global const float *queries, __global const float *keys, __global const float *values,
                      __global const float *mask, __global float *out, __global const AttentionBegin *begins,
                      __global const Attention *a) {
    const int product = ITEM_INDEX(1), first = ITEM_INDEX(0) * a->item_rows, last = MIN(first + a->item_rows, a->rows);
    if (product >= a->products) return;  // groups of a GPU are whole
    __global const AttentionBegin *begin = begins + product;
    out += (size_t)product * a->rows * a->columns;
    for (int row = first; row < last; row += ROWS)
        attend(queries + begin->queries + (size_t)row * a->depth, keys + begin->keys, values + begin->values,
               mask + begin->mask + row * a->mask_row, out + (size_t)row * a->columns, a, MIN(ROWS, last - row));
}
