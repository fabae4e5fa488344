// Attention with an online softmax on a GPU (attention.cl): a group for ROWS queries of a product. Each work-item takes
// a key, then a column; the scores of a block of keys are in local memory.
// Macros: ITEMS of a group, a power of two, which are the keys of a block; ROWS; KEYS_IN_ROWS, 0 or 1: whether the
// elements of a key are adjacent; BOOLEANS, if the mask selects scores.
#include "common.h"
#include <delegate.gpu.heads.LocalAttention>
#include <delegate.gpu.heads.LocalAttentionBegin>

// Combines the values of all items by OP, for every row, in shared[row * ITEMS].
#define COMBINE(OP, values)                                                                                     \
    UNROLL for (int r = 0; r < ROWS; ++r) shared[r * ITEMS + item] = values[r];                                 \
    for (int others = ITEMS / 2; others > 0; others /= 2) {                                                     \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                           \
        if (item < others)                                                                                      \
            UNROLL for (int i = item; i < ROWS * ITEMS; i += ITEMS) shared[i] = OP(shared[i + others], shared[i]); \
    }                                                                                                           \
    barrier(CLK_LOCAL_MEM_FENCE);

#ifdef BOOLEANS
typedef uchar Mask;
#else
typedef float Mask;
#endif

inline float score(__local const float *query, __global const float *keys, const int n, __global const Mask *mask,
                   __global const LocalAttention *p) {
    __global const Attention *a = &p->sizes;
    mask += n * a->mask_step;
#ifdef BOOLEANS
    const float added = 0.0f;
    if ((*mask != 0) != a->shown) return a->fill;
#else
    const float added = a->has_mask ? *mask : 0.0f;
    if (added <= 2.0f * a->least) return added;  // as a float it is what it would be with a product added
#endif
    const int step = KEYS_IN_ROWS ? 1 : p->depth_step;
    __global const float *key = keys + (size_t)n * (KEYS_IN_ROWS ? p->key_step : 1);
    float sum = 0.0f;
    for (int k = 0; k < a->depth; ++k) sum += query[k] * key[(size_t)k * step];
    return sum * a->scale + added;
}

KERNEL void attention_local(ITEM __global const float *restrict queries, __global const float *restrict keys,
                            __global const float *restrict values, __global const Mask *restrict mask,
                            __global float *restrict out, __global const LocalAttentionBegin *begins,
                            __global const LocalAttention *p, __local float *restrict memory) {
    __global const Attention *a = &p->sizes;
    const int item = get_local_id(0), depth = a->depth, columns = a->columns;
    const int bands = (a->rows + ROWS - 1) / ROWS, product = get_group_id(0) / bands;
    const int first = get_group_id(0) % bands * ROWS, there = MIN(ROWS, a->rows - first);
    __local float *own = memory, *results = own + ROWS * depth, *weights = results + ROWS * columns;
    __local float *shared = weights + ROWS * ITEMS;
    queries += begins[product].queries + (size_t)first * p->query_step;
    keys += begins[product].keys;
    values += begins[product].values;
    mask += begins[product].mask;
    out += begins[product].out + (size_t)first * p->out_step;
    float most[ROWS], sum[ROWS], factors[ROWS];
    int starts[ROWS];
    UNROLL for (int r = 0; r < ROWS; ++r) {
        starts[r] = (first + r) % a->mask_rows * a->mask_row;
        most[r] = -INFINITY;
        sum[r] = 0.0f;
    }
    UNROLL for (int r = 0; r < ROWS; ++r)
        for (int k = item; k < depth; k += ITEMS)
            own[r * depth + k] = r < there ? queries[(size_t)r * p->query_step + k] : 0.0f;
    for (int i = item; i < ROWS * columns; i += ITEMS) results[i] = 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int n0 = 0; n0 < a->keys; n0 += ITEMS) {
        const int n = n0 + item, count = MIN(ITEMS, a->keys - n0);
        float x[ROWS];
        UNROLL for (int r = 0; r < ROWS; ++r) {
            const bool is_there = r < there && n < a->keys;
            x[r] = is_there ? score(own + r * depth, keys, n, mask + starts[r], p) : -INFINITY;
        }
        COMBINE(MAX, x)
        UNROLL for (int r = 0; r < ROWS; ++r) {
            const float after = MAX(shared[r * ITEMS], most[r]), shift = after == -INFINITY ? 0.0f : after;
            weights[r * ITEMS + item] = x[r] = exp_s(x[r] - shift);
            factors[r] = most[r] == after ? 1.0f : exp_s(most[r] - shift);
            most[r] = after;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        COMBINE(ADD, x)
        bool counts = false;
        UNROLL for (int r = 0; r < ROWS; ++r) {
            sum[r] = sum[r] * factors[r] + shared[r * ITEMS];
            counts |= shared[r * ITEMS] != 0.0f;
        }
        for (int c = item; counts && c < columns; c += ITEMS) {
            float y[ROWS];
            UNROLL for (int r = 0; r < ROWS; ++r) y[r] = results[r * columns + c] * factors[r];
            for (int i = 0; i < count; ++i) {
                const float v = values[(size_t)(n0 + i) * p->value_step + (size_t)c * p->column_step];
                UNROLL for (int r = 0; r < ROWS; ++r) y[r] += weights[r * ITEMS + i] * v;
            }
            UNROLL for (int r = 0; r < ROWS; ++r) results[r * columns + c] = y[r];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    UNROLL for (int r = 0; r < ROWS; ++r)
        if (r < there)
            for (int c = item; c < columns; c += ITEMS) out[(size_t)r * p->out_step + c] = results[r * columns + c] / sum[r];
}
