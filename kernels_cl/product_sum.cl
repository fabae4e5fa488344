// The sum of products along the middle dimension: y[o, i] = sum over k of a[o, k, i] * b[o, k, i], divided by divisor.
// ProductSum has each factor's steps from element to element by dimension, 0 where the factor repeats. Every product is
// rounded, and added where reduce.cl adds it.
// A work-item takes per_item elements of y: product_rows is for inner = 1, product_columns for the others.
// Macros: A_STEP, B_STEP: steps along the innermost dimension that is not 1, 0 or 1; SQUARES: a is b, and read once.
#include "common.h"
#include <delegate.ops.product_sum.ProductSum>

#define READ(factor, step, i) ((step) ? LOAD((factor) + (i)) : (floatv)(*(factor)))
#define READ_ONE(factor, step, i) (factor)[(step) ? (i) : 0]

#ifdef SQUARES
#define OTHER(x, other) (x)
#else
#define OTHER(x, other) (other)
#endif

#define ADD_PRODUCTS(s, i)                                              \
    {                                                                   \
        const floatv x_ = READ(a_row, A_STEP, i);                       \
        const floatv product_ = x_ * OTHER(x_, READ(b_row, B_STEP, i)); \
        s = product_ + s;                                               \
    }
#define ADD_PRODUCT(s, i)                                                  \
    {                                                                      \
        const float x_ = READ_ONE(a_row, A_STEP, i);                       \
        const float product_ = x_ * OTHER(x_, READ_ONE(b_row, B_STEP, i)); \
        s = product_ + s;                                                  \
    }

KERNEL void product_rows(ITEM __global const float *a, __global const float *b, __global float *y,
                         __global const ProductSum *p, int n, int per_item) {
    SHARE(n, per_item);
    const int length = p->length;
    const float divisor = p->divisor;
    for (int row = start; row < end; ++row) {
        __global const float *a_row = a + row * p->a_outer, *b_row = b + row * p->b_outer;
        floatv s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
        int i = 0;
        for (; i + 4 * VW <= length; i += 4 * VW) {
            ADD_PRODUCTS(s0, i)
            ADD_PRODUCTS(s1, i + VW)
            ADD_PRODUCTS(s2, i + 2 * VW)
            ADD_PRODUCTS(s3, i + 3 * VW)
        }
        for (; i + VW <= length; i += VW) ADD_PRODUCTS(s0, i)
        float sum = sum_lanes((s0 + s1) + (s2 + s3));
        for (; i < length; ++i) ADD_PRODUCT(sum, i)
        y[row] = sum / divisor;
    }
}

KERNEL void product_columns(ITEM __global const float *a, __global const float *b, __global float *y,
                            __global const ProductSum *p, int n, int per_item) {
    SHARE(n, per_item);
    const int length = p->length, inner = p->inner;
    const float divisor = p->divisor;
    for (int at = start, count; at < end; at += count) {
        const int outer = at / inner, column = at - outer * inner;
        count = MIN(inner - column, end - at);
        __global const float *a_rows = a + outer * p->a_outer + column * A_STEP;
        __global const float *b_rows = b + outer * p->b_outer + column * B_STEP;
        __global float *q = y + at;
        int i = 0;
        for (; i + 4 * VW <= count; i += 4 * VW) {
            floatv s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
            for (int k = 0; k < length; ++k) {
                __global const float *a_row = a_rows + k * p->a_length, *b_row = b_rows + k * p->b_length;
                ADD_PRODUCTS(s0, i)
                ADD_PRODUCTS(s1, i + VW)
                ADD_PRODUCTS(s2, i + 2 * VW)
                ADD_PRODUCTS(s3, i + 3 * VW)
            }
            STORE(q + i, s0 / divisor);
            STORE(q + i + VW, s1 / divisor);
            STORE(q + i + 2 * VW, s2 / divisor);
            STORE(q + i + 3 * VW, s3 / divisor);
        }
        for (; i + VW <= count; i += VW) {
            floatv s = 0.0f;
            for (int k = 0; k < length; ++k) {
                __global const float *a_row = a_rows + k * p->a_length, *b_row = b_rows + k * p->b_length;
                ADD_PRODUCTS(s, i)
            }
            STORE(q + i, s / divisor);
        }
        for (; i < count; ++i) {
            float s = 0.0f;
            for (int k = 0; k < length; ++k) {
                __global const float *a_row = a_rows + k * p->a_length, *b_row = b_rows + k * p->b_length;
                ADD_PRODUCT(s, i)
            }
            q[i] = s / divisor;
        }
    }
}
