// RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR of x [n, height, width, channels] (NHWC), from tables of positions. A
// work-item takes per_item output pixels: on a CPU with all their channels, on a GPU with a vector of them. Macros: T,
// the element type: float, or for nearest an integer type of the elements' size; BILINEAR; ALIGNED (common.h), where
// pixels are whole vectors.
#include "common.h"
#include <delegate.ops.resize.Between>

#define PIXEL(image, row, column) (x + (((image) * height + (row)) * width + (column)) * channels)

// rows, columns: for every output position the two input positions between which it lies.
// row_weights, column_weights: its distance from the first.
#ifdef BILINEAR
#define FEW 3  // below this, one channel at a time is faster
#define BLEND(p, q, r, s) (((p) * up + (r) * v) * back + ((q) * up + (s) * v) * u)
#define SOME(p) load_part((p) + k, channels - k, (int)(limit - (p)) - k, 0.0f)

KERNEL void bilinear(ITEM __global const float *x, __global float *y, __global const Between *rows,
                     __global const Between *columns, __global const float *row_weights,
                     __global const float *column_weights, int n, int per_item, int height, int width, int channels,
                     int out_height, int out_width) {
#pragma OPENCL FP_CONTRACT OFF  // beyond the corners weights exceed 1: what overflows there must do so as on the CPU
    SHARE_PIXELS(n, per_item, channels);
    int j = start % out_width, i = start / out_width % out_height, image = start / (out_width * out_height);
    __global const float *limit = x + n / (out_width * out_height) * height * width * channels;
    for (int pixel = start; pixel < end; ++pixel) {
        const int above = rows[i].lower, below = rows[i].upper, left = columns[j].lower, right = columns[j].upper;
        const float v = row_weights[i], u = column_weights[j];
        const float up = 1.0f - v, back = 1.0f - u;
        __global const float *p = PIXEL(image, above, left), *q = PIXEL(image, above, right);
        __global const float *r = PIXEL(image, below, left), *s = PIXEL(image, below, right);
        __global float *out = y + pixel * channels;
        const int own = (end - pixel) * channels;
        int k = first_channel;
        for (; k + FEW < end_channel; k += VW)
            store_part(out + k, BLEND(SOME(p), SOME(q), SOME(r), SOME(s)), channels - k, own - k);
        for (; k < end_channel; ++k) out[k] = BLEND(p[k], q[k], r[k], s[k]);
        if (++j < out_width) continue;
        j = 0;
        if (++i < out_height) continue;
        i = 0;
        ++image;
    }
}
#else
VECTORS_OF(T, t)

KERNEL void nearest(ITEM __global const T *x, __global T *y, __global const int *rows, __global const int *columns,
                    int n, int per_item, int height, int width, int channels, int out_height, int out_width) {
    SHARE_PIXELS(n, per_item, channels);
    for (int pixel = start; pixel < end; ++pixel) {
        const int line = pixel / out_width, j = pixel - line * out_width;
        const int image = line / out_height, i = line - image * out_height;
        __global const T *p = PIXEL(image, rows[i], columns[j]);
        __global T *out = y + pixel * channels;
        int k = first_channel;
        for (; k + VW <= end_channel; k += VW) store_t(out + k, load_t(p + k));
        for (; k < end_channel; ++k) out[k] = p[k];
    }
}
#endif
