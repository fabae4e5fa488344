// GATHER, EMBEDDING_LOOKUP and GATHER_ND: rows of inner elements, by index. An index that is out of range is clamped,
// so that nothing outside of x is read.
// A work-item takes per_item rows of y: on a CPU whole ones, on a GPU a vector of each.
// Macros: T, an integer type of the elements' size; I, the type of the indices.
#include "common.h"
#include <delegate.ops.gather.Axis>

VECTORS_OF(T, t)

inline void copy_row(__global const T *x, __global T *y, int start, int end) {
    int i = start;
    for (; i + VW <= end; i += VW) store_t(y + i, load_t(x + i));
    for (; i < end; ++i) y[i] = x[i];
}

inline int within(I index, int size) { return index < 0 ? 0 : (index >= size ? size - 1 : (int)index); }

// x [batches, outer, size, inner], positions [batches, count], y [batches, outer, count, inner].
KERNEL void gather(ITEM __global const T *x, __global const I *positions, __global T *y, int n, int per_item, int outer,
                   int size, int inner, int count) {
    SHARE_PIXELS(n, per_item, inner);
    if (start >= end) return;
    int line = start / count, k = start - line * count;
    for (int row = start; row < end; ++line, k = 0) {
        __global const I *own = positions + line / outer * count;
        for (const int last = MIN(end, row + count - k); row < last; ++row, ++k)
            copy_row(x + (line * size + within(own[k], size)) * inner, y + row * inner, first_channel, end_channel);
    }
}

// indices [rows, depth], y [rows, inner]; axes: the first depth dimensions of x.
KERNEL void gather_nd(ITEM __global const T *x, __global const I *indices, __global T *y, __global const Axis *axes,
                      int n, int per_item, int depth, int inner) {
    SHARE_PIXELS(n, per_item, inner);
    for (int row = start; row < end; ++row) {
        int offset = 0;
        for (int d = 0; d < depth; ++d) offset += within(indices[row * depth + d], axes[d].size) * axes[d].stride;
        copy_row(x + offset, y + row * inner, first_channel, end_channel);
    }
}
