// AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D of x [n, height, width, channels] (NHWC): every window reduced to one
// element a channel, over the elements that are not padding; with `padded` there are zeros around the image, which are
// elements like any other. Pixels of x lie x_step apart, those of y y_step.
// A work-item takes per_item output pixels, with all their channels.
// Macros: OP: AVERAGE, MAXIMUM or L2; ACTIVATION, with its arguments low and high.
#include "common.h"

#define FIRST_AVERAGE 0.0f
#define FIRST_L2 0.0f
#define FIRST_MAXIMUM -INFINITY
#define STEP_AVERAGE(s, x) ((s) + (x))
#define STEP_L2(s, x) ((s) + (x) * (x))
#define STEP_MAXIMUM(s, x) ((x) > (s) ? (x) : (s))
#define FINISH_AVERAGE(s) ((s) / count)
#define FINISH_L2(s) sqrt((s) / count)
#define FINISH_MAXIMUM(s) (s)
#define FIRST JOIN(FIRST_, OP)
#define STEP JOIN(STEP_, OP)
#define FINISH JOIN(FINISH_, OP)

// The elements of a window in one channel, READ at their offset in the image.
#define WINDOW(READ)                                                    \
    for (int i = y0; i < y1; ++i) {                                     \
        int at = (i * width + x0) * x_step + c;                         \
        for (int j = x0; j < x1; ++j, at += x_step) {                   \
            const floatv v = (READ);                                    \
            s = STEP(s, v);                                             \
        }                                                               \
    }

KERNEL void pool_2d(ITEM __global const float *x, __global float *y, int n, int per_item, int height, int width,
                    int channels, int out_height, int out_width, int filter_height, int filter_width, int stride_h,
                    int stride_w, int top, int left, int x_step, int y_step, int padded, float low,
                    float high) {
    SHARE(n, per_item);
    for (int pixel = start; pixel < end; ++pixel) {
        const int line = pixel / out_width, out_x = pixel - line * out_width;
        const int image = line / out_height, out_y = line - image * out_height;
        const int y0 = MAX(out_y * stride_h - top, 0), y1 = MIN(out_y * stride_h - top + filter_height, height);
        const int x0 = MAX(out_x * stride_w - left, 0), x1 = MIN(out_x * stride_w - left + filter_width, width);
        const int inside = MAX(y1 - y0, 0) * MAX(x1 - x0, 0), whole = filter_height * filter_width;
        const float count = (float)(padded ? whole : inside);
        const floatv first = padded && inside < whole ? 0.0f : FIRST;
        __global const float *p = x + image * height * width * x_step;
        __global float *q = y + pixel * y_step;
        const int room = (n / (out_height * out_width) - image) * height * width * x_step - (x_step - channels);
        const int own = y_step == channels ? (end - pixel) * channels : channels;
        for (int c = 0; c < channels; c += VW) {
            floatv s = first;
            if (c + VW <= channels) {
                WINDOW(LOAD(p + at))
            } else {
                WINDOW(load_part(p + at, channels - c, room - at, 0.0f))
            }
            store_part(q + c, ACTIVATION(FINISH(s), low, high), channels - c, own - c);
        }
    }
}
