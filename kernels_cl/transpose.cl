// Swaps two dimensions of an array: y[j, i] = x[i, j] for the rows i and columns j of x, for every index of the
// dimensions around them. Elements of a row are adjacent in x, elements of a column in y.
// A work-item takes per_item tiles of 8 x 8 elements, counted along the columns first.
// nest: rank, dims[rank], strides of x[rank], strides of y[rank] of the dimensions around the two.
// Macro: T, an integer type of the elements' size.
#include "common.h"
#include <delegate.kit.strided.Square>

#define SIDE SQUARE_SIDE

typedef JOIN(T, SIDE) Line;
typedef Line Line_u __attribute__((aligned(sizeof(T))));

inline Line zip_low(Line a, Line b) { return (Line)(a.s0, b.s0, a.s1, b.s1, a.s2, b.s2, a.s3, b.s3); }
inline Line zip_high(Line a, Line b) { return (Line)(a.s4, b.s4, a.s5, b.s5, a.s6, b.s6, a.s7, b.s7); }

// Zipping row i with row i + 4 rotates the six bits of an element's (row, column) by one; doing it three times swaps
// both.
inline void zip(const Line *from, Line *to) {
    UNROLL for (int i = 0; i < SIDE / 2; ++i) {
        to[2 * i] = zip_low(from[i], from[i + SIDE / 2]);
        to[2 * i + 1] = zip_high(from[i], from[i + SIDE / 2]);
    }
}

inline void whole_tile(__global const T *x, int x_step, __global T *y, int y_step) {
    Line a[SIDE], b[SIDE];
    UNROLL for (int i = 0; i < SIDE; ++i) a[i] = *(__global const Line_u *)(x + i * x_step);
    zip(a, b);
    zip(b, a);
    zip(a, b);
    UNROLL for (int i = 0; i < SIDE; ++i) *(__global Line_u *)(y + i * y_step) = b[i];
}

inline void part_of_tile(__global const T *x, int x_step, __global T *y, int y_step, int rows, int columns) {
    for (int j = 0; j < columns; ++j)
        for (int i = 0; i < rows; ++i) y[j * y_step + i] = x[i * x_step + j];
}

KERNEL void transpose(ITEM __global const T *x, __global T *y, __global const int *nest, int n, int per_item, int rows,
                      int columns, int x_step, int y_step, int x_offset, int y_offset) {
    SHARE(n, per_item);
    const int across = (columns + SIDE - 1) / SIDE, down = (rows + SIDE - 1) / SIDE;
    SEEK_ROWS(nest, 2, start / (across * down));
    int row = start / across % down * SIDE, column = start % across * SIDE;
    for (int tile = start; tile < end; ++tile) {
        __global const T *p = x + x_offset + offsets[0] + row * x_step + column;
        __global T *q = y + y_offset + offsets[1] + column * y_step + row;
        if (row + SIDE <= rows && column + SIDE <= columns)
            whole_tile(p, x_step, q, y_step);
        else
            part_of_tile(p, x_step, q, y_step, MIN(rows - row, SIDE), MIN(columns - column, SIDE));
        column += SIDE;
        if (column < columns) continue;
        column = 0;
        row += SIDE;
        if (row < rows) continue;
        row = 0;
        NEXT_ROW(nest, 2, tile + 1 == end);
    }
}
