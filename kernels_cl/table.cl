// A function of every element, from the table of all its results: y[i] = table[x[i]]; and of every pair of bytes, in
// arrays that broadcast against each other (see binary.cl for the loops and the shares).
// A work-item takes per_item elements.
// Macros: T, the type of the elements as unsigned ones; R, that of the results.
#include "common.h"
#ifdef BYTES
#include "byte_tables.h"
#endif

KERNEL void look_up(ITEM __global const T *restrict x, __global const R *restrict table, __global R *restrict y, int n,
                    int per_item) {
    SHARE(n, per_item);
    int i = start;
#ifdef TABLE_PARTS
    const int size = sizeof(bytesv);
    if (end - start >= size) {
        bytesv parts[TABLE_PARTS];
        load_table(parts, (__global const uchar *)table);
        for (; i < end; i += size) {
            const int at = MIN(i, end - size);  // the last vector may overlap the one before
            *(__global bytesv_u *)(y + at) = look_up_bytes(parts, *(__global const bytesv_u *)(x + at));
        }
    }
#endif
    for (; i < end; ++i) y[i] = table[x[i]];
}

KERNEL void look_up_pairs(ITEM __global const T *restrict a, __global const T *restrict b,
                          __global const R *restrict table, __global R *restrict c, __global const int *nest, int n,
                          int per_item, int row, int a_step, int b_step) {
    SHARE(n, per_item);
    int column = start % row;
    SEEK_ROWS(nest, 2, start / row);
    for (int at = start, count; at < end; at += count) {
        __global const T *x = a + offsets[0] + a_step * column;
        __global const T *y = b + offsets[1] + b_step * column;
        count = MIN(row - column, end - at);
        column = 0;
        NEXT_ROW(nest, 2, at + count == end);
        for (int i = 0; i < count; ++i) c[at + i] = table[x[i * a_step] * 256 + y[i * b_step]];
    }
}
