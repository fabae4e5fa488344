// MaxPoolingWithArgmax2D and MaxUnpooling2D of images [n, height, width, channels] (NHWC).
//
// max_pooling: the largest element of every window, by channel, and its position: of the element in the image, or with
// IN_WINDOW of the tap in the window, plus a tenth. A window without any number above the lowest gets that one, at 0.
// A work-item takes per_item output pixels.
//
// unpool_windows: the inverse for adjacent windows: every tap of a window is zero, except the one at the position. A
// work-item takes per_item of the input's pixels.
// unpool: the inverse in all other cases, where several values may have one position and the last one counts: a
// work-item takes per_item images. A position outside the image is left out.
// Macros: IN_WINDOW; ACTIVATION (common.h).
#include "common.h"
#include <delegate.matmul.geometry.Geometry>

#define LOWEST -3.402823466e38f

#ifdef IN_WINDOW
typedef float Place;
#else
typedef int Place;
#endif

KERNEL void max_pooling(ITEM __global const float *x, __global float *y, __global Place *places,
                        __global const Geometry *window, int n, int per_item, float low, float high) {
    const Geometry g = *window;
    SHARE(n, per_item);
    const int channels = g.channels, room = g.images * g.height * g.width * channels;
    for (int pixel = start; pixel < end; ++pixel) {
        const int line = pixel / g.out_width, image = line / g.out_height;
        const int top = (line - image * g.out_height) * g.stride_y - g.pad_y;
        const int left = (pixel - line * g.out_width) * g.stride_x - g.pad_x;
        const int y0 = MAX(top, 0), y1 = MIN(top + g.kernel_height, g.height);
        const int x0 = MAX(left, 0), x1 = MIN(left + g.kernel_width, g.width);
        const int own = (end - pixel) * channels;
        for (int c = 0; c < channels; c += VW) {
            floatv best = LOWEST;
            intv place = 0;
            for (int i = y0; i < y1; ++i)
                for (int j = x0; j < x1; ++j) {
                    const int at = ((image * g.height + i) * g.width + j) * channels + c;
                    const floatv v = load_part(x + at, channels - c, room - at, LOWEST);
#ifdef IN_WINDOW
                    const intv tap = (i - top) * g.kernel_width + j - left;
#else
                    const intv tap = (i * g.width + j) * channels;
#endif
                    const intv better = v > best;
                    best = better ? v : best;
                    place = better ? tap : place;
                }
            store_part(y + pixel * channels + c, ACTIVATION(best, low, high), channels - c, own - c);
#ifdef IN_WINDOW
            const floatv stored = CONVERT(place, float) + 0.1f;
#else
            const floatv stored = AS_FLOATV(place + c + LANES);
#endif
            store_part((__global float *)places + pixel * channels + c, stored, channels - c, own - c);
        }
    }
}

#ifdef IN_WINDOW
// out: an image of out_height x out_width pixels, made of adjacent windows.
KERNEL void unpool_windows(ITEM __global const float *x, __global const float *places, __global float *out,
                           __global const Geometry *window, int n, int per_item) {
    const Geometry g = *window;
    SHARE(n, per_item);
    const int channels = g.channels, out_width = g.width * g.kernel_width, room = g.images * g.height * g.width * channels;
    for (int pixel = start; pixel < end; ++pixel) {
        const int line = pixel / g.width, column = pixel - line * g.width;
        for (int i = 0; i < g.kernel_height; ++i)
            for (int j = 0; j < g.kernel_width; ++j) {
                const int tap = i * g.kernel_width + j;
                const int at = ((line * g.kernel_height + i) * out_width + column * g.kernel_width + j) * channels;
                const float first = tap == 0 ? -1.0f : (float)tap, next = (float)(tap + 1);
                for (int c = 0; c < channels; c += VW) {
                    const int from = pixel * channels + c;
                    const floatv place = load_part(places + from, channels - c, room - from, -1.0f);
                    const intv here = (tap == 0 ? place > first : place >= first) && place < next;
                    const floatv value = load_part(x + from, channels - c, room - from, 0.0f);
                    // Pixels of this window to the right of this one are written later.
                    const int own = (g.kernel_width - j) * channels;
                    store_part(out + at + c, here ? value : (floatv)(0.0f), channels - c, own - c);
                }
            }
    }
}
#endif

// window: out_height x out_width is the size of the images of out.
KERNEL void unpool(ITEM __global const float *x, __global const Place *places, __global float *out,
                   __global const Geometry *window, int n, int per_item) {
    const Geometry g = *window;
    SHARE(n, per_item);
    const int channels = g.channels, size = g.out_height * g.out_width * channels;
    for (int image = start; image < end; ++image) {
        __global float *own = out + image * size;
        for (int i = 0; i < size; ++i) own[i] = 0.0f;
        const int first = image * g.height * g.width * channels;
        for (int row = 0, i = first; row < g.height; ++row)
            for (int column = 0; column < g.width; ++column)
                for (int c = 0; c < channels; ++c, ++i) {
#ifdef IN_WINDOW
                    if (!(places[i] > -1.0f && places[i] < (float)(g.kernel_height * g.kernel_width))) continue;
                    const int tap = (int)places[i], tap_y = tap / g.kernel_width;
                    const int to_y = row * g.stride_y - g.pad_y + tap_y;
                    const int to_x = column * g.stride_x - g.pad_x + tap - tap_y * g.kernel_width;
                    if ((uint)to_y >= (uint)g.out_height || (uint)to_x >= (uint)g.out_width) continue;
                    const int at = (to_y * g.out_width + to_x) * channels + c;
#else
                    const int at = places[i];
                    if ((uint)at >= (uint)size) continue;
#endif
                    own[at] = x[i];
                }
    }
}
