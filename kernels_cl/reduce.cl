// Reduces the middle dimension of x [outer, length, inner]: y [outer, inner].
// A work-item takes per_item elements of y: reduce_rows is for inner = 1, reduce_columns for the others.
// Macros: T, A, R: the types of x, of the accumulator and of y; OP: ADD, MULTIPLY, MAX or MIN (of common.h);
// MEAN: divide by divisor at the end. first: the accumulator's initial value.
#include "common.h"

typedef VECTOR(T) Tv;
typedef VECTOR(A) Av;
typedef VECTOR(R) Rv;
typedef Tv Tv_u __attribute__((aligned(sizeof(T))));
typedef Rv Rv_u __attribute__((aligned(sizeof(R))));

#ifdef MEAN
#define FINISH(x) ((x) / divisor)
#else
#define FINISH(x) (x)
#endif

#define READ(p) CONVERT(*(__global const Tv_u *)(p), A)
#define WRITE(p, x) (*(__global Rv_u *)(p) = CONVERT(FINISH(x), R))

// The new element is the first operand, so that a comparison with NaN keeps the accumulator.
#define STEP(accumulator, value)            \
    {                                       \
        const Av step_ = (value);           \
        accumulator = OP(step_, accumulator); \
    }

KERNEL void reduce_rows(ITEM __global const T *x, __global R *y, int n, int per_item, int length, int inner, A first,
                        A divisor) {
    SHARE(n, per_item);
    for (int line = start; line < end; ++line) {
        __global const T *p = x + line * length;
        Av s0 = first, s1 = first, s2 = first, s3 = first;
        int i = 0;
        for (; i + 4 * VW <= length; i += 4 * VW) {
            STEP(s0, READ(p + i))
            STEP(s1, READ(p + i + VW))
            STEP(s2, READ(p + i + 2 * VW))
            STEP(s3, READ(p + i + 3 * VW))
        }
        for (; i + VW <= length; i += VW) STEP(s0, READ(p + i))
        STEP(s0, s1)
        STEP(s2, s3)
        STEP(s0, s2)
        A result;
        FOLD(A, s0, OP, result)
        for (; i < length; ++i) {
            const A value = (A)p[i];
            result = OP(value, result);
        }
        y[line] = (R)FINISH(result);
    }
}

KERNEL void reduce_columns(ITEM __global const T *x, __global R *y, int n, int per_item, int length, int inner, A first,
                           A divisor) {
    SHARE(n, per_item);
    for (int at = start, count; at < end; at += count) {
        const int outer = at / inner, column = at - outer * inner;
        count = MIN(inner - column, end - at);
        __global const T *p = x + outer * length * inner + column;
        __global R *q = y + at;
        int i = 0;
        for (; i + 4 * VW <= count; i += 4 * VW) {
            Av s0 = first, s1 = first, s2 = first, s3 = first;
            for (int k = 0; k < length; ++k) {
                __global const T *line = p + k * inner + i;
                STEP(s0, READ(line))
                STEP(s1, READ(line + VW))
                STEP(s2, READ(line + 2 * VW))
                STEP(s3, READ(line + 3 * VW))
            }
            WRITE(q + i, s0);
            WRITE(q + i + VW, s1);
            WRITE(q + i + 2 * VW, s2);
            WRITE(q + i + 3 * VW, s3);
        }
        for (; i + VW <= count; i += VW) {
            Av s = first;
            for (int k = 0; k < length; ++k) STEP(s, READ(p + k * inner + i))
            WRITE(q + i, s);
        }
        for (; i < count; ++i) {
            A s = first;
            for (int k = 0; k < length; ++k) {
                const A value = (A)p[k * inner + i];
                s = OP(value, s);
            }
            q[i] = (R)FINISH(s);
        }
    }
}
