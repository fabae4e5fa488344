// Depthwise 2-D convolutions of 16-bit activations and 8-bit weights: out = requantize(conv(x) + bias).
//
// x is [images, height, width, channels]; every channel has `multiplier` filters, whose outputs are adjacent.
// weights are [multiplier][kernel_height][kernel_width][lanes], channels padded to lanes, a multiple of VW.
// stage is [multiplier][lanes / VW][4][VW] (finish_sum and finish_wide in quantized.h).
// A work-item takes per_item pixels of the output, with all their channels.
// Macros: T and WORDS, REAL_FACTORS, FLOORED, WIDE_SUMS (quantized.h).
#include "quantized.h"
#include <delegate.ops.quantized.depthwise_16.WordDepthwise>

typedef VECTOR(short) shortv;
typedef shortv shortv_u __attribute__((aligned(2)));

inline intv finish(intv sum, __global const int *stage, int low, int high) {
#ifdef WIDE_SUMS
    const wideh halves[2] = {CONVERT_H(LOW_HALF(sum), WIDE_TYPE), CONVERT_H(HIGH_HALF(sum), WIDE_TYPE)};
    return finish_wide(halves, stage, low, high);
#else
    return finish_sum(sum + LOADI(stage), stage, VW, 0, low, high);
#endif
}

// Vector c of the channels of one pixel, whose window begins at (top, left) in the image.
inline intv sum_window(__global const T *restrict image, __global const short *restrict weights,
                       __global const WordDepthwise *restrict d, int top, int left, int c) {
    __global const Geometry *restrict g = &d->window;
    intv sum = 0;
    for (int ky = 0; ky < g->kernel_height; ++ky)
        for (int kx = 0; kx < g->kernel_width; ++kx, weights += d->lanes) {
            const int y = top + ky * g->dilation_y, x = left + kx * g->dilation_x;
            if ((uint)y >= (uint)g->height || (uint)x >= (uint)g->width) continue;
            const intv v = load_lanes(image + (y * g->width + x) * g->channels + c, g->channels - c);
            sum += v * CONVERT(*(__global const shortv_u *)weights, int);
        }
    return sum;
}

KERNEL void quantized_depthwise_16(ITEM __global const T *restrict x, __global const short *restrict weights,
                                   __global const int *restrict stage, __global T *restrict out,
                                   __global const WordDepthwise *restrict d, int n, int per_item) {
    __global const Geometry *restrict g = &d->window;
    SHARE(n, per_item);
    const int taps = g->kernel_height * g->kernel_width;
    for (int pixel = start; pixel < end; ++pixel) {
        const int line = pixel / g->out_width, column = pixel - line * g->out_width;
        const int image = line / g->out_height, row = line - image * g->out_height;
        const int top = row * g->stride_y - g->pad_y, left = column * g->stride_x - g->pad_x;
        __global const T *from = x + image * g->height * g->width * g->channels;
        __global T *to = out + pixel * g->channels * g->group_columns;
        for (int m = 0; m < g->group_columns; ++m)
            for (int c = 0; c < g->channels; c += VW) {
                const intv sum = sum_window(from, weights + m * taps * d->lanes + c, d, top, left, c);
                __global const int *s = stage + (m * d->lanes + c) * STAGE_ROWS;
                const Tv y = CONVERT(finish(sum, s, d->bounds.low, d->bounds.high), T);
                const int count = MIN(g->channels - c, VW);
                if (g->group_columns == 1)
                    store_lanes(to + c, y, count);
                else
                    FIRST(i, count, VW) to[(c + i) * g->group_columns + m] = ((const T *)&y)[i];
            }
    }
}
