// AVERAGE_POOL_2D and MAX_POOL_2D of quantized x [n, height, width, channels] (see pool_2d.cl): reduces windows without
// padding; an average is rounded to the nearest integer, halves away from zero.
// A work-item takes per_item output pixels: on a CPU with all their channels, on a GPU with a vector of them.
// Macros: OP: AVERAGE or MAXIMUM; T (quantized.h); ALIGNED (common.h), where pixels are whole vectors.
#include "quantized.h"
#include <delegate.matmul.geometry.Geometry>

#define STEP_AVERAGE(s, x) ((s) + (x))
#define STEP_MAXIMUM(s, x) MAX(s, x)
#define START_AVERAGE 0
#define START_MAXIMUM (-65536)
#define FINISH_AVERAGE(s) average(s, count)
#define FINISH_MAXIMUM(s) (s)
#define START JOIN(START_, OP)
#define STEP JOIN(STEP_, OP)
#define FINISH JOIN(FINISH_, OP)

// Sums of fewer than 2^14 bytes or 2^9 words: their quotients in floats never round up to a whole number.
inline intv average(intv sum, int count) {
    const intv magnitude = (sum < 0 ? -sum : sum) + count / 2;
    const intv quotient = CONVERT(CONVERT(magnitude, float) / (float)count, int);
    return sum < 0 ? -quotient : quotient;
}

// The elements of a window in one channel, READ at their offset in the image.
#define WINDOW(READ)                                                    \
    for (int i = y0; i < y1; ++i) {                                     \
        __global const T *at = p + (i * g.width + x0) * g.channels + c; \
        for (int j = x0; j < x1; ++j, at += g.channels) {               \
            const intv v = (READ);                                      \
            s = STEP(s, v);                                             \
        }                                                               \
    }

KERNEL void quantized_pool_2d(ITEM __global const T *x, __global T *y, __global const Geometry *window, int n,
                              int per_item, int low, int high) {
    const Geometry g = *window;  // a copy, which writes to y cannot change
    SHARE_PIXELS(n, per_item, g.channels);
    for (int pixel = start; pixel < end; ++pixel) {
        const int line = pixel / g.out_width, out_x = pixel - line * g.out_width;
        const int image = line / g.out_height, out_y = line - image * g.out_height;
        const int top = out_y * g.stride_y - g.pad_y, left = out_x * g.stride_x - g.pad_x;
        const int y0 = MAX(top, 0), y1 = MIN(top + g.kernel_height, g.height);
        const int x0 = MAX(left, 0), x1 = MIN(left + g.kernel_width, g.width);
        const int count = (y1 - y0) * (x1 - x0);
        __global const T *p = x + image * g.height * g.width * g.channels;
        __global T *q = y + pixel * g.channels;
        int c = first_channel;
        for (; c + VW <= end_channel; c += VW) {
            intv s = START;
            WINDOW(LOAD_T(at))
            *(__global Tv_g *)(q + c) = CONVERT(clamp_int(FINISH(s), low, high), T);
        }
        for (; c < end_channel; ++c) {
            intv s = START;
            WINDOW((intv)at[0])
            q[c] = (T)LANE0(clamp_int(FINISH(s), low, high));
        }
    }
}
