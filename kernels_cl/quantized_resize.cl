// RESIZE_BILINEAR of integers x [n, height, width, channels] (see resize.cl for the tables and the shares): signed ones
// with weights in units of 1/1024, bytes in float32, both rounded once, halves away from zero.
// Macros: T (quantized.h); A, the type of the sums: int or long, or float for unsigned bytes; W, that of the weights:
// int or float; ONE, a weight of one: 1024 or 1.
#include "quantized.h"
#include <Between>

#pragma OPENCL FP_CONTRACT OFF  // every product is rounded

typedef VECTOR(A) Av;

#define PIXEL(image, row, column) (x + (((image) * height + (row)) * width + (column)) * channels)
#define CORNER(p) CONVERT(load_lanes((p) + k, channels - k), A)

#ifdef FLOATING
inline intv rounded(Av sum) { return CONVERT(sum + 0.49999997f, int); }
#else
inline intv rounded(Av sum) {
    const Av size = ((sum < 0 ? -sum : sum) + (1 << 19)) >> 20;
    return CONVERT(sum < 0 ? -size : size, int);
}
#endif

KERNEL void quantized_bilinear(ITEM __global const T *x, __global T *y, __global const Between *rows,
                               __global const Between *columns, __global const W *row_weights,
                               __global const W *column_weights, int n, int per_item, int height, int width,
                               int channels, int out_height, int out_width) {
    SHARE(n, per_item);
    for (int pixel = start; pixel < end; ++pixel) {
        const int line = pixel / out_width, j = pixel - line * out_width;
        const int image = line / out_height, i = line - image * out_height;
        const int above = rows[i].lower, below = rows[i].upper, left = columns[j].lower, right = columns[j].upper;
        const Av down = (A)row_weights[i], along = (A)column_weights[j], up = (A)ONE - down, back = (A)ONE - along;
        __global const T *p = PIXEL(image, above, left), *q = PIXEL(image, above, right);
        __global const T *r = PIXEL(image, below, left), *s = PIXEL(image, below, right);
        for (int k = 0; k < channels; k += VW) {
            Av sum = CORNER(p) * up * back;
            sum += CORNER(r) * down * back;
            sum += CORNER(q) * up * along;
            sum += CORNER(s) * down * along;
            store_lanes(y + pixel * channels + k, CONVERT(rounded(sum), T), channels - k);
        }
    }
}
