// Packs the second operand of a quantized BATCH_MATMUL as weights for quantized_conv_2d.cl, with their stage.
//
// y is [products, depth, columns]; an element of it is at row_step k + column_step c. packed is [products][vectors /
// panel][row_bytes / 4][panel][VW][4], stage [products][vectors][4][VW]; columns and depth are padded with zeros. The
// bias corrects first operands that are x_zero too large: added - x_zero times the sum of a column. A work-item takes
// per_item of the n vectors of columns.
// Macros: T (quantized.h).
#include "quantized.h"

inline intv load_columns(__global const T *p, int step, int count) {
    if (step == 1) return load_lanes(p, count);
    intv x = 0;
    FIRST(i, count, VW) ((int *)&x)[i] = p[i * step];
    return x;
}

KERNEL void pack_columns(ITEM __global const T *y, __global char *packed, __global int *stage,
                         __global const Scale *factor, int n, int per_item, int depth, int columns, int row_step,
                         int column_step, int row_bytes, int vectors, int panel, int x_zero, int added) {
    SHARE(n, per_item);
    for (int item = start; item < end; ++item) {
        const int product = item / vectors, v = item - product * vectors, first = v * VW;
        const int count = MAX(MIN(columns - first, VW), 0);
        __global const T *from = y + product * depth * columns + first * column_step;
        __global char *to = packed + (size_t)(item - v % panel) * VW * row_bytes + v % panel * VW * 4;
        intv sum = 0;
        for (int k = 0; k < row_bytes; k += 4, to += panel * VW * 4) {
            intv word = 0;
            for (int q = 3; q >= 0; --q) {
                const intv x = k + q < depth ? load_columns(from + (k + q) * row_step, column_step, count) : (intv)0;
                word = word << 8 | (x & 255);
                sum += x;
            }
            *(__global intv_u *)to = word;
        }
        __global intv_u *fields = (__global intv_u *)(stage + item * STAGE_ROWS * VW);
        fields[STAGE_ROW_BIAS] = added - sum * x_zero;
        fields[STAGE_ROW_MULTIPLIER] = factor->multiplier;
        fields[STAGE_ROW_THIRD] = factor->left;
        fields[STAGE_ROW_RIGHT] = factor->right;
    }
}
