// Swaps two dimensions of an array on a GPU, as transpose.cl does: a group takes a tile of 32 x 32 elements, reads and
// writes its lines in the order of memory, and exchanges them in local memory.
// nest: rank, dims[rank], strides of x[rank], strides of y[rank] of the dimensions around the two.
// Macros: ITEMS of a group, a multiple of 32; T, an integer type of the elements' size.
#include "common.h"
#include <delegate.gpu.ops.transpose.LocalSquare>

#define SIDE LOCAL_SQUARE_SIDE
#define STEP (SIDE + 1)  // neighbours in a column lie in other banks

KERNEL void transpose_local(ITEM __global const T *restrict x, __global T *restrict y, __global const int *restrict nest,
                            __local T *restrict memory, const int rows, const int columns, const int x_step,
                            const int y_step, int x_offset, int y_offset) {
    const int across = (columns + SIDE - 1) / SIDE, down = (rows + SIDE - 1) / SIDE;
    const int tile = get_group_id(0), rank = nest[0];
    int matrix = tile / (across * down);
    for (int d = rank; d > 0; --d) {
        const int outer = matrix / nest[d], index = matrix - outer * nest[d];
        x_offset += index * nest[d + rank];
        y_offset += index * nest[d + 2 * rank];
        matrix = outer;
    }
    const int row = tile / across % down * SIDE, column = tile % across * SIDE;
    const int line = get_local_id(0) / SIDE, place = get_local_id(0) % SIDE;
    for (int i = line; i < SIDE; i += ITEMS / SIDE)
        if (row + i < rows && column + place < columns)
            memory[i * STEP + place] = x[x_offset + (row + i) * x_step + column + place];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = line; j < SIDE; j += ITEMS / SIDE)
        if (column + j < columns && row + place < rows)
            y[y_offset + (column + j) * y_step + row + place] = memory[place * STEP + j];
}
