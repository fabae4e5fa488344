// Depthwise 2-D convolutions: out[.., c * multiplier + j] = activation(conv(x[.., c], weights[j][.., c]) + bias[j][c])
// x is [images, height, width, channels]; multiplier is the window's group_columns; weights are [multiplier][kernel_height][kernel_width][channels], bias is
// [multiplier][channels], zeros without one.
// A work-item takes item_rows rows x item_pixels columns of the output x item_channels channels of the input, in pieces
// of PIXELS x VW. The last columns and channels are taken together with some before them, so that pieces are whole.
// Macros: PIXELS; KERNEL_WIDTH and STRIDE_X where they are known and taps are dense: then every pixel is loaded once
// for all taps that read it; WIDTH (tile.h), where there are fewer channels than VW; ALIGNED (common.h), where channels
// are whole vectors; ACTIVATION (common.h), whose arguments are low and high.
#include "tile.h"
#include <Depthwise>

// The pixel i columns right of x, which is at column `left`; 0 outside the image.
#define PIXEL(i) \
    (guarded && (uint)(left + (i)) >= (uint)g->width ? (floatv)(0.0f) : LOAD(x + (i) * g->channels))

// sums[t] += the taps of one kernel row for PIXELS adjacent pixels.
INLINE void add_row(floatv sums[PIXELS], __global const float *restrict x, __global const float *restrict weights,
                    __global const Geometry *restrict g, const int left, const int guarded) {
#ifdef KERNEL_WIDTH
    floatv pixels[(PIXELS - 1) * STRIDE_X + KERNEL_WIDTH];
    UNROLL for (int i = 0; i < (PIXELS - 1) * STRIDE_X + KERNEL_WIDTH; ++i) pixels[i] = PIXEL(i);
    UNROLL for (int k = 0; k < KERNEL_WIDTH; ++k) {
        const floatv w = LOAD(weights + k * g->channels);
        UNROLL for (int t = 0; t < PIXELS; ++t) sums[t] = pixels[t * STRIDE_X + k] * w + sums[t];
    }
#else
    for (int k = 0; k < g->kernel_width; ++k) {
        const floatv w = LOAD(weights + k * g->channels);
        UNROLL for (int t = 0; t < PIXELS; ++t) sums[t] = PIXEL(t * g->stride_x + k * g->dilation_x) * w + sums[t];
    }
#endif
}

// Writes one pixel's channels, `multiplier` apart.
INLINE void store_channels(__global float *out, const floatv y, const int multiplier) {
    if (multiplier == 1) {
        STORE(out, y);
        return;
    }
    float lanes[VW];
    *(__private floatv_u *)lanes = y;
    for (int i = 0; i < VW; ++i) out[i * multiplier] = lanes[i];
}

// PIXELS pixels of one output row, for channels [c_first, c_last). x and out are at the first of the pixels.
INLINE void compute_pixels(__global const float *restrict x, __global const float *restrict weights,
                           __global const float *restrict bias, __global float *restrict out,
                           __global const Geometry *restrict g, const int c_first, const int c_last, const int left,
                           const int ky_first, const int ky_last, const int guarded, const float low,
                           const float high) {
    for (int c = c_first; c < c_last; c += VW) {
        const int c0 = MIN(c, g->channels - VW);
        const floatv start = LOAD(bias + c0);
        floatv sums[PIXELS];
        UNROLL for (int t = 0; t < PIXELS; ++t) sums[t] = start;
        for (int ky = ky_first; ky < ky_last; ++ky) {
            __global const float *row = x + ky * g->dilation_y * g->width * g->channels + c0;
            add_row(sums, row, weights + ky * g->kernel_width * g->channels + c0, g, left, guarded);
        }
        UNROLL for (int t = 0; t < PIXELS; ++t)
            if (t < g->out_width)
                store_channels(out + (t * g->channels + c0) * g->group_columns, ACTIVATION(sums[t], low, high),
                               g->group_columns);
    }
}

OUT_OF_LINE WIDE void compute_row(__global const float *restrict x, __global const float *restrict weights,
                                  __global const float *restrict bias, __global float *restrict out,
                                  __global const Geometry *restrict g, const int row, const int x_first,
                                  const int x_last, const int c_first, const int c_last, const float low,
                                  const float high) {
    const int image = row / g->out_height, top = row % g->out_height * g->stride_y - g->pad_y;
    int ky_first = 0, ky_last = g->kernel_height;
    while (ky_first < ky_last && top + ky_first * g->dilation_y < 0) ++ky_first;
    while (ky_first < ky_last && top + (ky_last - 1) * g->dilation_y >= g->height) --ky_last;
    x += (image * g->height + top) * g->width * g->channels;
    out += row * g->out_width * g->channels * g->group_columns;
    for (int ox = x_first; ox < x_last; ox += PIXELS) {
        const int first = MAX(0, MIN(ox, g->out_width - PIXELS));
        const int left = first * g->stride_x - g->pad_x;
        const int right = left + (PIXELS - 1) * g->stride_x + (g->kernel_width - 1) * g->dilation_x;
        __global const float *from = x + left * g->channels;
        __global float *to = out + first * g->channels * g->group_columns;
        if (left >= 0 && right < g->width)
            compute_pixels(from, weights, bias, to, g, c_first, c_last, left, ky_first, ky_last, 0, low, high);
        else
            compute_pixels(from, weights, bias, to, g, c_first, c_last, left, ky_first, ky_last, 1, low, high);
    }
}

KERNEL void depthwise_conv_2d(ITEM __global const float *restrict x, __global const float *restrict weights,
                              __global const float *restrict bias, __global float *restrict out,
                              __global const Depthwise *restrict d, const float low, const float high) {
    __global const Geometry *restrict g = &d->window;
    const int first = ITEM_INDEX(1) * d->item_rows, last = MIN(first + d->item_rows, LINES_OF(g));
    const int x_first = ITEM_INDEX(2) * d->item_pixels, x_last = MIN(x_first + d->item_pixels, g->out_width);
    const int c_first = ITEM_INDEX(0) * d->item_channels, c_last = MIN(c_first + d->item_channels, g->channels);
    const int filter = g->kernel_height * g->kernel_width * g->channels;
    for (int row = first; row < last; ++row)
        for (int j = 0; j < g->group_columns; ++j)
            compute_row(x, weights + j * filter, bias + j * g->channels, out + j, g, row, x_first, x_last, c_first,
                        c_last, low, high);
}
