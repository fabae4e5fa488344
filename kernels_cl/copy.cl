// Strided copies: y[j] = x[i], row by row (see delegate/kit/strided.py).
// A work-item takes per_item consecutive elements, counted in the order of the loops.
// nest: rank, dims[rank], strides of x[rank], strides of y[rank]; row, x_step, y_step: a row's length and steps.
// Macros: T, an integer type of the elements' size; I, the type of positions that are read on the device.
#include "common.h"
#include <delegate.kit.strided.Place>

typedef VECTOR(T) Tv;
VECTORS_OF(T, t)

#ifdef LITECL_CPU
// Copies n to 2 n elements as two overlapping vectors; both are loaded before a store, as x and y may overlap too.
#define COPY_PAIR(n)                                                                                             \
    if (count >= n) {                                                                                            \
        typedef JOIN(T, n) Part __attribute__((aligned(sizeof(T))));                                             \
        const JOIN(T, n) first = *(__global const Part *)x, last = *(__global const Part *)(x + count - n);      \
        *(__global Part *)y = first;                                                                             \
        *(__global Part *)(y + count - n) = last;                                                                \
        return;                                                                                                  \
    }

// Copies adjacent elements.
inline void copy_run(__global const T *x, __global T *y, int count) {
    if (count >= VW) {
        const Tv last = load_t(x + count - VW);
        for (int i = 0; i + VW < count; i += VW) store_t(y + i, load_t(x + i));
        store_t(y + count - VW, last);
        return;
    }
#if VW > 8
    COPY_PAIR(8)
#endif
#if VW > 4
    COPY_PAIR(4)
#endif
#if VW > 2
    COPY_PAIR(2)
#endif
    for (int i = 0; i < count; ++i) y[i] = x[i];
}
#endif

inline void copy_row(__global const T *x, int x_step, __global T *y, int y_step, int count) {
    int i = 0;
    if (x_step == 1 && y_step == 1) {
#ifdef LITECL_CPU
        copy_run(x, y, count);
        return;
#else
        for (; i + VW <= count; i += VW) store_t(y + i, load_t(x + i));
#endif
    } else if (x_step == 0 && y_step == 1) {
        const Tv v = x[0];
        for (; i + VW <= count; i += VW) store_t(y + i, v);
    }
    x += i * x_step, y += i * y_step;
    for (; i < count; ++i, x += x_step, y += y_step) *y = *x;
}

inline void copy_rows(__global const T *x, __global T *y, __global const int *nest, int start, int end, int row,
                      int x_step, int y_step) {
    int column = start % row;
    SEEK_ROWS(nest, 2, start / row);
    for (int at = start, count; at < end; at += count) {
        count = MIN(row - column, end - at);
        copy_row(x + offsets[0] + column * x_step, x_step, y + offsets[1] + column * y_step, y_step, count);
        column = 0;
        NEXT_ROW(nest, 2, at + count == end);
    }
}

KERNEL void copy(ITEM __global const T *x, __global T *y, __global const int *nest, int n, int per_item, int row,
                 int x_step, int y_step, int x_offset, int y_offset) {
    SHARE(n, per_item);
    copy_rows(x + x_offset, y + y_offset, nest, start, end, row, x_step, y_step);
}

KERNEL void fill(ITEM __global T *y, __global const T *value, int n, int per_item) {
    SHARE(n, per_item);
    const T one = value[0];
    const Tv many = one;
    int i = start;
    for (; i + VW <= end; i += VW) store_t(y + i, many);
    for (; i < end; ++i) y[i] = one;
}

#ifdef I
// The offset of a box whose position in `count` dimensions is given by a tensor.
inline int box_offset(__global const I *positions, __global const Place *places, int count) {
    int offset = 0;
    for (int i = 0; i < count; ++i) {
        I position = positions[places[i].index];
        position = position < 0 ? position + places[i].wrap : position;
        position = position < 0 ? 0 : (position > places[i].most ? places[i].most : position);
        offset += (int)position * places[i].stride;
    }
    return offset;
}

KERNEL void copy_from_box(ITEM __global const T *x, __global T *y, __global const int *nest, int n, int per_item,
                          int row, int x_step, int y_step, int x_offset, int y_offset, __global const I *positions,
                          __global const Place *places, int count) {
    SHARE(n, per_item);
    x_offset += box_offset(positions, places, count);
    copy_rows(x + x_offset, y + y_offset, nest, start, end, row, x_step, y_step);
}

KERNEL void copy_to_box(ITEM __global const T *x, __global T *y, __global const int *nest, int n, int per_item, int row,
                        int x_step, int y_step, int x_offset, int y_offset, __global const I *positions,
                        __global const Place *places, int count) {
    SHARE(n, per_item);
    y_offset += box_offset(positions, places, count);
    copy_rows(x + x_offset, y + y_offset, nest, start, end, row, x_step, y_step);
}
#endif
