// EMBEDDING_LOOKUP of a table of integers [size, inner]: rows by index, as floats. An index that is out of range is
// clamped, so that nothing outside the table is read.
// Every `block` elements of a row share a scale; the scales of rows are row_scales apart, 0 if all rows share them.
// A work-item takes per_item rows of y: on a CPU whole ones, on a GPU a vector of each.
// Macro: BITS of an element, 8, 4 or 2; smaller ones fill bytes from the lowest bits on, without gaps between rows.
#include "common.h"

#define PER_BYTE (8 / BITS)

// Element i of the table, with its sign.
inline int element(__global const char *table, const size_t i) {
#if BITS == 8
    return table[i];
#else
    const int left = 32 - BITS * (int)(i % PER_BYTE + 1);
    return (int)((uint)table[i / PER_BYTE] << left) >> (32 - BITS);
#endif
}

KERNEL void embedding_lookup(ITEM __global const char *table, __global const float *scales,
                             __global const int *positions, __global float *y, int n, int per_item, int size, int inner,
                             int block, int row_scales) {
    SHARE_PIXELS(n, per_item, inner);
    for (int row = start; row < end; ++row) {
        const int position = MIN(MAX(positions[row], 0), size - 1), last = MIN(end_channel, inner);
        const size_t first = (size_t)position * inner;
        __global const float *own = scales + (size_t)position * row_scales;
        for (int i = first_channel; i < last;) {
            const int next = MIN(last, (i / block + 1) * block);
            const float scale = own[i / block];
            for (; i < next; ++i) y[(size_t)row * inner + i] = (float)element(table, first + i) * scale;
        }
    }
}
