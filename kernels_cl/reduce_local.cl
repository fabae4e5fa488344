// Reduces rows [rows, length] to one element each on a GPU, a group for each row: sums, means, extremes, and the
// position of the first largest or smallest element (place_local). Also columns of [outer, length, inner], a group for
// COLUMNS of them.
// Macros: ITEMS of a group, a power of two; T: the type of x. For reduce_local: A, R: the types of the accumulator and
// of y; OP: ADD, MULTIPLY, MAX or MIN (of common.h); MEAN: divide by divisor at the end. For reduce_columns_local:
// COLUMNS, a power of two. For place_local: R; OP: GREATER or LESS.
#include "common.h"

#ifdef A
#ifdef MEAN
#define FINISH(x) ((x) / divisor)
#else
#define FINISH(x) (x)
#endif

// The new element comes first, so that a comparison with NaN keeps the accumulator.
KERNEL void reduce_local(ITEM __global const T *restrict x, __global R *restrict y, __local A *restrict memory,
                         const int length, const A first, const A divisor) {
    const int item = get_local_id(0);
    x += (size_t)get_group_id(0) * length;
    A own = first;
    for (int i = item; i < length; i += ITEMS) {
        const A value = (A)x[i];
        own = OP(value, own);
    }
    memory[item] = own;
    for (int others = ITEMS / 2; others > 0; others /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < others) {
            const A value = memory[item + others];
            memory[item] = OP(value, memory[item]);
        }
    }
    if (item == 0) y[get_group_id(0)] = (R)FINISH(memory[0]);
}

#ifdef COLUMNS
KERNEL void reduce_columns_local(ITEM __global const T *restrict x, __global R *restrict y, __local A *restrict memory,
                                 const int length, const A first, const A divisor, const int inner) {
    const int item = get_local_id(0), blocks = (inner + COLUMNS - 1) / COLUMNS, outer = get_group_id(0) / blocks;
    const int column = (get_group_id(0) - outer * blocks) * COLUMNS + item % COLUMNS;
    x += (size_t)outer * length * inner + MIN(column, inner - 1);
    A own = first;
    for (int i = item / COLUMNS; i < length; i += ITEMS / COLUMNS) {
        const A value = (A)x[(size_t)i * inner];
        own = OP(value, own);
    }
    memory[item] = own;
    for (int others = ITEMS / 2; others >= COLUMNS; others /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < others) {
            const A value = memory[item + others];
            memory[item] = OP(value, memory[item]);
        }
    }
    if (item < COLUMNS && column < inner) y[outer * inner + column] = (R)FINISH(memory[item]);
}
#endif
#else
#include "order.h"

// Every item begins with the first element, which is the result for a row of nothing but NaN.
KERNEL void place_local(ITEM __global const T *restrict x, __global R *restrict y, __local int *restrict places,
                        const int length) {
    const int item = get_local_id(0);
    x += (size_t)get_group_id(0) * length;
    int place = 0;
    for (int i = item; i < length; i += ITEMS) place = WINS(x[i], x[place]) ? i : place;
    places[item] = place;
    for (int others = ITEMS / 2; others > 0; others /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < others) {
            const int a = places[item], b = places[item + others];
            places[item] = WINS(x[b], x[a]) || (x[b] == x[a] && b < a) ? b : a;
        }
    }
    if (item == 0) y[get_group_id(0)] = (R)places[0];
}
#endif
