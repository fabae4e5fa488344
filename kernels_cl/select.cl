// y[i] = condition[i'] ? a[i"] : b[i"'], all of which broadcast, row by row (see delegate/kit/strided.py).
// A work-item takes per_item consecutive elements of y.
// nest: rank, dims[rank], strides of condition[rank], of a[rank], of b[rank].
// Macro: T, an integer type of the elements' size.
#include "common.h"

KERNEL void choose(ITEM __global const uchar *condition, __global const T *a, __global const T *b, __global T *y,
                   __global const int *nest, int n, int per_item, int row, int condition_step, int a_step, int b_step) {
    SHARE(n, per_item);
    int column = start % row;
    SEEK_ROWS(nest, 3, start / row);
    for (int at = start, count; at < end; at += count) {
        __global const uchar *chosen = condition + offsets[0] + condition_step * column;
        __global const T *p = a + offsets[1] + a_step * column;
        __global const T *q = b + offsets[2] + b_step * column;
        count = MIN(row - column, end - at);
        column = 0;
        NEXT_ROW(nest, 3, at + count == end);
        for (int i = 0; i < count; ++i) {
            const T yes = p[i * a_step], no = q[i * b_step];
            y[at + i] = chosen[i * condition_step] ? yes : no;
        }
    }
}
