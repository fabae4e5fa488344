// A function of every byte, from the table of its 256 results: y[i] = table[x[i]].
// A work-item takes per_item elements.
// Macros: R, the type of the results.
#include "common.h"

KERNEL void look_up(ITEM __global const uchar *restrict x, __global const R *restrict table, __global R *restrict y,
                    int n, int per_item) {
    SHARE(n, per_item);
    for (int i = start; i < end; ++i) y[i] = table[x[i]];
}
