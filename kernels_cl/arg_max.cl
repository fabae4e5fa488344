// ARG_MAX and ARG_MIN: the first position of the largest or smallest element along the middle dimension of
// x [outer, length, inner].
// A work-item takes per_item elements of y [outer, inner].
// Macros: T, R: the types of x and y; OP: GREATER or LESS.
#include "common.h"

#define GREATER(a, b) ((a) > (b))
#define LESS(a, b) ((a) < (b))

KERNEL void arg_max(ITEM __global const T *x, __global R *y, int n, int per_item, int length, int inner) {
    SHARE(n, per_item);
    for (int at = start; at < end; ++at) {
        const int outer = at / inner, column = at - outer * inner;
        __global const T *p = x + outer * length * inner + column;
        T best = p[0];
        int place = 0;
        for (int k = 1; k < length; ++k) {
            const T value = p[k * inner];
            place = OP(value, best) ? k : place;
            best = OP(value, best) ? value : best;
        }
        y[at] = (R)place;
    }
}
