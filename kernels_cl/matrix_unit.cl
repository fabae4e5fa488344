// One product by matrix units, to find out whether a device computes it as matrix_unit.h says: a group that is one
// subgroup adds left [UNIT_ROWS][16] right [UNIT_COLUMNS][16]^T to sums [UNIT_ROWS][UNIT_COLUMNS], twice.
// Macros: those of matrix_unit.h.
#include "common.h"
#include "matrix_unit.h"

KERNEL void matrix_unit(ITEM __global const float *left, __global const float *right, __global float *sums,
                        __local ushort *memory) {
    const int lane = get_local_id(0);
    __local ushort *rows = memory, *columns = rows + UNIT_ROWS * UNIT_DEPTH;
    __local uint2 *halves = (__local uint2 *)memory;
    for (int i = lane; i < UNIT_ROWS * UNIT_DEPTH / 4; i += UNIT_LANES)
        halves[i] = halves_of(((__global const float4 *)left)[i]);
    for (int i = lane; i < UNIT_COLUMNS * UNIT_DEPTH / 4; i += UNIT_LANES)
        halves[UNIT_ROWS * UNIT_DEPTH / 4 + i] = halves_of(((__global const float4 *)right)[i]);
    barrier(CLK_LOCAL_MEM_FENCE);
    const Left a = left_of(rows, UNIT_DEPTH, lane);
    const Right b = right_of(columns, UNIT_DEPTH, lane);
    __local ushort *scratch = columns + UNIT_COLUMNS * UNIT_DEPTH;
    Sums own;
    UNROLL for (int i = 0; i < UNIT_SUMS; ++i)
        ((float *)&own)[i] = sums[sum_row(lane, i) * UNIT_COLUMNS + sum_column(lane, i)];
    own = multiply(a, b, own, scratch);
    own = multiply(a, b, own, scratch);
    UNROLL for (int i = 0; i < UNIT_SUMS; ++i)
        sums[sum_row(lane, i) * UNIT_COLUMNS + sum_column(lane, i)] = ((float *)&own)[i];
}
