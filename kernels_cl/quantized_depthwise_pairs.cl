// Depthwise 2-D convolutions of quantized activations and weights on processors that multiply words in pairs (AVX2):
// out = requantize(conv(x) + bias).
//
// x is [images, height, width, channels], with at least VW channels. Two rows of the kernel are multiplied at once, at
// one of its columns: a channel's bytes of both rows are adjacent, widened to words.
// weights are words less their zero point, [row pairs][kernel_width][channels][2 rows], zeros past the last row. stage
// is [4][channels]: bias, multiplier and shifts (finish_sum in quantized.h). zeros holds VW zero points of x. A
// work-item takes item_rows rows of the output x item_channels channels, in pieces of PIXELS x VW; the last columns and
// channels overlap earlier ones.
// Macros: PIXELS; KERNEL_WIDTH and STRIDE_X; T, FOLDED and RECTIFIED (quantized.h); GUARDED, if all pieces reach beyond
// the image's sides (1) or none does (0): code for others is left out.
#include "quantized.h"
#include <delegate.ops.quantized.depthwise_pairs.PairedDepthwise>

#if VW != 8
#error "pairs are interleaved in vectors of 8"
#endif
typedef JOIN(T, 16) Both;

// The words of VW channels of two rows.
INLINE intv pair_of(__global const T *first, __global const T *second) {
    const Tv a = *(__global const Tv_g *)first, b = *(__global const Tv_g *)second;
    const Both both = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
    return __builtin_astype(__builtin_convertvector(both, short16), intv);
}

// sums[t] += the taps of two rows for PIXELS adjacent pixels. Rows point at the first pixel's first column; `steps`
// lead from one column of the image to the next, 0 for a row outside it, which is read from zeros.
INLINE void add_rows(intv sums[PIXELS], __global const T *const rows[2], const int steps[2],
                     __global const short *restrict weights, __global const T *zeros, const int channels,
                     const int left, const int width, const int guarded) {
    intv w[KERNEL_WIDTH];
    UNROLL for (int k = 0; k < KERNEL_WIDTH; ++k) w[k] = LOADI(weights + k * 2 * channels);
    UNROLL for (int i = 0; i < (PIXELS - 1) * STRIDE_X + KERNEL_WIDTH; ++i) {
        const int inside = !guarded || (uint)(left + i) < (uint)width;
        const intv x = pair_of(inside ? rows[0] + i * steps[0] : zeros, inside ? rows[1] + i * steps[1] : zeros);
        UNROLL for (int t = 0; t < PIXELS; ++t)
            if (i >= t * STRIDE_X && i < t * STRIDE_X + KERNEL_WIDTH)
                sums[t] = DOT2(sums[t], x, w[i - t * STRIDE_X]);
    }
}

// Computes `count` adjacent pieces of one output row for channels [c_first, c_last). x and out point at the first
// pixel, whose window begins at (top, left).
INLINE void compute_pieces(__global const T *restrict x, __global const short *restrict weights,
                           __global const int *restrict stage, __global const T *restrict zeros,
                           __global T *restrict out, __global const PairedDepthwise *restrict d, const int top,
                           const int left, const int count, const int c_first, const int c_last, const int guarded) {
    __global const Geometry *restrict g = &d->window;
    const int channels = g->channels, pixels = MIN(PIXELS, g->out_width);
    for (int c = c_first; c < c_last; c += VW) {
        const int c0 = MIN(c, channels - VW);
        for (int piece = 0; piece < count; ++piece) {
            const int column = piece * PIXELS * STRIDE_X;
            intv sums[PIXELS];
            UNROLL for (int t = 0; t < PIXELS; ++t) sums[t] = LOADI(stage + c0);
            __global const short *w = weights + 2 * c0;
            for (int ky = 0; ky < g->kernel_height; ky += 2, w += KERNEL_WIDTH * 2 * channels) {
                __global const T *rows[2];
                int steps[2];
                UNROLL for (int k = 0; k < 2; ++k) {
                    const int dy = (ky + k) * g->dilation_y;
                    const int inside = ky + k < g->kernel_height && (uint)(top + dy) < (uint)g->height;
                    rows[k] = inside ? x + (dy * g->width + column) * channels + c0 : zeros;
                    steps[k] = inside ? channels : 0;
                }
                add_rows(sums, rows, steps, w, zeros, channels, left + column, g->width, guarded);
            }
            intv held[PIXELS];  // which, unlike sums, may be indexed
            UNROLL for (int t = 0; t < PIXELS; ++t) held[t] = sums[t];
            ROLL_FIRST(t, pixels, PIXELS) {
                const intv y = finish_sum(held[t], stage + c0, channels, d->bounds.zero, d->bounds.low, d->bounds.high);
                *(__global Outv_g *)(out + (piece * PIXELS + t) * channels + c0) = CONVERT(y, T);
            }
        }
    }
}

// Separate functions, so that the addresses of each stay in registers.
#define COMPUTE_PIECES(name, guarded)                                                                          \
    OUT_OF_LINE WIDE void name(__global const T *restrict x, __global const short *restrict weights,           \
                               __global const int *restrict stage, __global const T *restrict zeros,           \
                               __global T *restrict out, __global const PairedDepthwise *restrict d,           \
                               const int top, const int left, const int count, const int c_first,              \
                               const int c_last) {                                                             \
        compute_pieces(x, weights, stage, zeros, out, d, top, left, count, c_first, c_last, guarded);          \
    }
#ifndef GUARDED
COMPUTE_PIECES(compute_inside, 0)
COMPUTE_PIECES(compute_edges, 1)
#elif GUARDED
COMPUTE_PIECES(compute_edges, 1)
#define compute_inside compute_edges
#else
COMPUTE_PIECES(compute_inside, 0)
#define compute_edges compute_inside
#endif

KERNEL void quantized_depthwise_pairs(ITEM __global const T *restrict x, __global const short *restrict weights,
                                      __global const int *restrict stage, __global const T *restrict zeros,
                                      __global T *restrict out, __global const PairedDepthwise *restrict d) {
    __global const Geometry *restrict g = &d->window;
    const int first = ITEM_INDEX(1) * d->item_rows, last = MIN(first + d->item_rows, LINES_OF(g));
    const int c_first = ITEM_INDEX(0) * d->item_channels, c_last = MIN(c_first + d->item_channels, g->channels);
    for (int row = first; row < last; ++row) {
        const int image = row / g->out_height, top = row % g->out_height * g->stride_y - g->pad_y;
        __global const T *line = x + (image * g->height + top) * g->width * g->channels;
        __global T *to = out + row * g->out_width * g->channels;
        int pieces = 1;
        for (int ox = 0; ox < g->out_width; ox += pieces * PIXELS) {
            const int column = MAX(0, MIN(ox, g->out_width - PIXELS)), left = column * g->stride_x - g->pad_x;
            const int right = left + (PIXELS - 1) * STRIDE_X + KERNEL_WIDTH;
            const bool inside = left >= 0 && right <= g->width;
            const int later = MIN((g->out_width - column) / PIXELS - 1, (g->width - right) / (PIXELS * STRIDE_X));
            pieces = inside ? 1 + MAX(later, 0) : 1;
            __global const T *from = line + left * g->channels;
            __global T *pixels = to + column * g->channels;
            if (inside)
                compute_inside(from, weights, stage, zeros, pixels, d, top, left, pieces, c_first, c_last);
            else
                compute_edges(from, weights, stage, zeros, pixels, d, top, left, pieces, c_first, c_last);
        }
    }
}
