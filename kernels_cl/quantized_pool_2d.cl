// AVERAGE_POOL_2D and MAX_POOL_2D of quantized x [n, height, width, channels] (see pool_2d.cl): windows reduced over the
// elements that are not padding; an average is rounded to the nearest integer, halves away from zero.
// A work-item takes per_item output pixels, with all their channels.
// Macros: OP: AVERAGE or MAXIMUM; T (quantized.h).
#include "quantized.h"

#define STEP_AVERAGE(s, x) ((s) + (x))
#define STEP_MAXIMUM(s, x) MAX(s, x)
#define FIRST_AVERAGE 0
#define FIRST_MAXIMUM (-65536)
#define FINISH_AVERAGE(s) average(s, count)
#define FINISH_MAXIMUM(s) (s)
#define FIRST JOIN(FIRST_, OP)
#define STEP JOIN(STEP_, OP)
#define FINISH JOIN(FINISH_, OP)

// Sums of fewer than 2^14 bytes or 2^9 words: their quotients, which a float holds, are never rounded up to a whole number.
inline intv average(intv sum, int count) {
    const intv magnitude = (sum < 0 ? -sum : sum) + count / 2;
    const intv quotient = CONVERT(CONVERT(magnitude, float) / (float)count, int);
    return sum < 0 ? -quotient : quotient;
}

// The elements of a window in one channel, READ at their offset in the image.
#define WINDOW(READ)                                                    \
    for (int i = y0; i < y1; ++i) {                                     \
        __global const T *at = p + (i * width + x0) * channels + c;     \
        for (int j = x0; j < x1; ++j, at += channels) {                 \
            const intv v = (READ);                                      \
            s = STEP(s, v);                                             \
        }                                                               \
    }

KERNEL void quantized_pool_2d(ITEM __global const T *x, __global T *y, int n, int per_item, int height, int width,
                              int channels, int out_height, int out_width, int filter_height, int filter_width,
                              int stride_h, int stride_w, int top, int left, int low, int high) {
    SHARE(n, per_item);
    for (int pixel = start; pixel < end; ++pixel) {
        const int line = pixel / out_width, out_x = pixel - line * out_width;
        const int image = line / out_height, out_y = line - image * out_height;
        const int y0 = MAX(out_y * stride_h - top, 0), y1 = MIN(out_y * stride_h - top + filter_height, height);
        const int x0 = MAX(out_x * stride_w - left, 0), x1 = MIN(out_x * stride_w - left + filter_width, width);
        const int count = (y1 - y0) * (x1 - x0);
        __global const T *p = x + image * height * width * channels;
        __global T *q = y + pixel * channels;
        int c = 0;
        for (; c + VW <= channels; c += VW) {
            intv s = FIRST;
            WINDOW(LOAD_T(at))
            *(__global Tv_u *)(q + c) = CONVERT(clamp_int(FINISH(s), low, high), T);
        }
        for (; c < channels; ++c) {
            intv s = FIRST;
            WINDOW((intv)at[0])
            q[c] = (T)LANE0(clamp_int(FINISH(s), low, high));
        }
    }
}
