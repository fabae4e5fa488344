// Converts pixels of few channels from a plane for each channel to adjacent channels, or back: y[i, c] = x[c, i], or
// y[c, i] = x[i, c] with TO_PLANES, for every index of the dimensions around them.
// A work-item takes per_item pixels, counted in the order of the loops.
// nest: rank, dims[rank], strides of x[rank], strides of y[rank] of the dimensions around; pixels: of one image; plane:
// elements from one channel to the next in the planes. x and y do not overlap: compilers use vectors here.
// Macros: T, an integer type of the elements' size; CHANNELS.
#include "common.h"

inline void exchange(__global const T *restrict x, __global T *restrict y, int plane, int count) {
    for (int i = 0; i < count; ++i) {
#ifdef TO_PLANES
        UNROLL for (int c = 0; c < CHANNELS; ++c) y[c * plane + i] = x[i * CHANNELS + c];
#else
        UNROLL for (int c = 0; c < CHANNELS; ++c) y[i * CHANNELS + c] = x[c * plane + i];
#endif
    }
}

KERNEL void interleave(ITEM __global const T *x, __global T *y, __global const int *nest, int n, int per_item,
                       int pixels, int plane, int x_offset, int y_offset) {
    SHARE(n, per_item);
    int pixel = start % pixels;
    SEEK_ROWS(nest, 2, start / pixels);
    for (int at = start, count; at < end; at += count) {
        count = MIN(pixels - pixel, end - at);
#ifdef TO_PLANES
        exchange(x + x_offset + offsets[0] + pixel * CHANNELS, y + y_offset + offsets[1] + pixel, plane, count);
#else
        exchange(x + x_offset + offsets[0] + pixel, y + y_offset + offsets[1] + pixel * CHANNELS, plane, count);
#endif
        pixel = 0;
        NEXT_ROW(nest, 2, at + count == end);
    }
}
