// AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D of x [n, height, width, channels] (NHWC): reduces every window to one
// element a channel. Padding is left out; with `padded`, zeros around the image count like other elements. x_step,
// y_step: elements from pixel to pixel of x and y.
// A work-item takes per_item output pixels: on a CPU with all their channels, on a GPU with a vector of them. Macros:
// OP: AVERAGE, MAXIMUM or L2; ALIGNED (common.h), where pixels are whole vectors; ACTIVATION, with its arguments low
// and high.
#include "common.h"
#include <delegate.matmul.geometry.Geometry>

#define START_AVERAGE 0.0f
#define START_L2 0.0f
#define START_MAXIMUM -INFINITY
#define STEP_AVERAGE(s, x) ((s) + (x))
#define STEP_L2(s, x) ((s) + (x) * (x))
#define STEP_MAXIMUM(s, x) ((x) > (s) ? (x) : (s))
#define FINISH_AVERAGE(s) ((s) / count)
#define FINISH_L2(s) sqrt((s) / count)
#define FINISH_MAXIMUM(s) (s)
#define START JOIN(START_, OP)
#define STEP JOIN(STEP_, OP)
#define FINISH JOIN(FINISH_, OP)

// The elements of a window in one channel, READ at their offset in the image.
#define WINDOW(READ)                                                    \
    for (int i = y0; i < y1; ++i) {                                     \
        int at = (i * g.width + x0) * x_step + c;                       \
        for (int j = x0; j < x1; ++j, at += x_step) {                   \
            const floatv v = (READ);                                    \
            s = STEP(s, v);                                             \
        }                                                               \
    }

KERNEL void pool_2d(ITEM __global const float *x, __global float *y, __global const Geometry *window, int n,
                    int per_item, int x_step, int y_step, int padded, float low, float high) {
    const Geometry g = *window;  // a copy, which writes to y cannot change
    SHARE_PIXELS(n, per_item, g.channels);
    const int whole = g.kernel_height * g.kernel_width, image_size = g.height * g.width * x_step;
    int line = start / g.out_width, out_x = start - line * g.out_width;
    for (int pixel = start; pixel < end; ++line, out_x = 0) {
        const int image = line / g.out_height, top = (line - image * g.out_height) * g.stride_y - g.pad_y;
        const int y0 = MAX(top, 0), y1 = MIN(top + g.kernel_height, g.height);
        __global const float *p = x + image * image_size;
        const int room = (g.images - image) * image_size - (x_step - g.channels);
        for (const int last = MIN(end, pixel + g.out_width - out_x); pixel < last; ++pixel, ++out_x) {
            const int left = out_x * g.stride_x - g.pad_x;
            const int x0 = MAX(left, 0), x1 = MIN(left + g.kernel_width, g.width);
            const int inside = MAX(y1 - y0, 0) * MAX(x1 - x0, 0);
            const float count = (float)(padded ? whole : inside);
            const floatv first = padded && inside < whole ? 0.0f : START;
            const int own = y_step == g.channels ? (end - pixel) * g.channels : g.channels;
            const int farthest = ((y1 - 1) * g.width + x1 - 1) * x_step;  // of the window's elements
            __global float *q = y + pixel * y_step;
            for (int c = first_channel; c < end_channel; c += VW) {
                floatv s = first;
                if (c + VW <= g.channels || farthest + c + VW <= room) {
                    WINDOW(LOAD(p + at))
                } else {
                    WINDOW(load_part(p + at, g.channels - c, room - at, 0.0f))
                }
                store_part(q + c, ACTIVATION(FINISH(s), low, high), g.channels - c, own - c);
            }
        }
    }
}
