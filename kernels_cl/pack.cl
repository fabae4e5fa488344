// Packs matrices in panels: out[i][p][k][c] = x[i * step + k * row_step + (p * panel + c) * column_step], and 0 where
// p * panel + c >= columns. One panel as wide as the matrix transposes or copies it.
// A work-item takes per_item of the n lines of `panel` elements; an image i has `lines` of them.
#include "common.h"

KERNEL void pack(ITEM __global const float *restrict x, __global float *restrict out, const int n, const int per_item,
                 const int lines, const int depth, const int panel, const int columns, const int step,
                 const int row_step, const int column_step) {
    SHARE(n, per_item);
    int image = start / lines, first = start % lines / depth * panel, k = start % lines % depth;
    for (int line = start; line < end; ++line) {
        __global const float *from = x + (size_t)image * step + (size_t)k * row_step + (size_t)first * column_step;
        __global float *to = out + (size_t)line * panel;
        const int filled = MIN(panel, columns - first);
        int c = 0;
        if (column_step == 1)
            for (; c + VW <= filled; c += VW) STORE(to + c, LOAD(from + c));
        for (; c < filled; ++c) to[c] = from[c * column_step];
        for (; c < panel; ++c) to[c] = 0.0f;
        if (++k == depth) {  // counted on: divisions would take longer than short lines
            k = 0;
            first += panel;
            if (first >= columns) {
                first = 0;
                ++image;
            }
        }
    }
}
