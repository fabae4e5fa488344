// y [outer, depth, inner]: `on` where the index [outer, inner] equals the position along depth, `off` elsewhere.
// A work-item takes per_item elements of y.
// Macros: T, an integer type of the elements' size; I, the type of the indices.
#include "common.h"

KERNEL void one_hot(ITEM __global const I *indices, __global const T *on, __global const T *off, __global T *y, int n,
                    int per_item, int depth, int inner) {
    SHARE(n, per_item);
    for (int at = start; at < end; ++at) {
        const int line = at / inner, column = at - line * inner;
        const int outer = line / depth, place = line - outer * depth;
        y[at] = indices[outer * inner + column] == place ? on[0] : off[0];
    }
}
