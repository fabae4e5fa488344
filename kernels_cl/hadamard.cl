// Multiplies blocks of `size` elements, a power of two, by the Hadamard matrix of that size and by `scale`: every stage
// adds and subtracts elements that are 1, 2, 4, ... apart, in LiteRT's order.
// A work-item takes per_item whole blocks.
#include "common.h"

// One stage of a block.
OUT_OF_LINE void stage(__global float *block, const int size, const int half_size) {
    for (int first = 0; first < size; first += 2 * half_size) {
        __global float *low = block + first, *high = low + half_size;
        int i = 0;
        for (; i + VW <= half_size; i += VW) {
            const floatv a = LOAD(low + i), b = LOAD(high + i);
            STORE(low + i, a + b);
            STORE(high + i, a - b);
        }
        for (; i < half_size; ++i) {
            const float a = low[i], b = high[i];
            low[i] = a + b;
            high[i] = a - b;
        }
    }
}

KERNEL void hadamard(ITEM __global const float *x, __global float *y, const int n, const int per_item, const int size,
                     const float scale) {
    SHARE(n, per_item);
    for (int b = start; b < end; ++b) {
        __global const float *from = x + (size_t)b * size;
        __global float *block = y + (size_t)b * size;
        for (int i = 0; i < size; ++i) block[i] = from[i];
        for (int half_size = 1; half_size < size; half_size *= 2) stage(block, size, half_size);
        for (int i = 0; i < size; ++i) block[i] *= scale;
    }
}
