// y[i] = condition[i'] ? a[i"] : b[i"'], all of which broadcast. They are walked in rows (see delegate/strided.py).
// A work-item takes per_item consecutive elements of y.
// walk: rank, dims[rank], strides of condition[rank], of a[rank], of b[rank].
// Macro: T, an integer type of the elements' size.
#include "common.h"

__kernel void choose(__global const uchar *condition, __global const T *a, __global const T *b, __global T *y,
                     __global const int *walk, int n, int per_item, int row, int condition_step, int a_step,
                     int b_step) {
    SHARE(n, per_item);
    const int rank = walk[0];
    __global const int *dims = walk + 1;
    for (int at = start, count; at < end; at += count) {
        const int line = at / row, column = at - line * row;
        __global const uchar *chosen = condition + row_offset(dims, dims + rank, rank, line) + condition_step * column;
        __global const T *p = a + row_offset(dims, dims + 2 * rank, rank, line) + a_step * column;
        __global const T *q = b + row_offset(dims, dims + 3 * rank, rank, line) + b_step * column;
        count = MIN(row - column, end - at);
        for (int i = 0; i < count; ++i) {
            const T yes = p[i * a_step], no = q[i * b_step];
            y[at + i] = chosen[i * condition_step] ? yes : no;
        }
    }
}
