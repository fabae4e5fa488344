// RESIZE_BILINEAR of integers x [n, height, width, channels] (see resize.cl for the tables and the shares): signed ones
// with weights in units of 1/1024, bytes in float32, both rounded once, halves away from zero.
// On a GPU a work-item takes a vector of a pixel's channels.
// With LINES a work-item takes per_item lines of the output. It multiplies two lines of the image by their weights
// once, into its own memory, `above` and `below`; integers are exact, so their sum suffices. From these it interpolates
// all pixels of its line.
// Macros: LINES; T (quantized.h); A, the type of the sums: int or long, or float for unsigned bytes; W, that of the
// weights: int or float; ONE, a weight of one: 1024 or 1; ALIGNED (common.h), where pixels are whole vectors.
#include "quantized.h"
#include <delegate.ops.resize.Between>

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

#ifdef LINES
typedef A Sum;
typedef Av Av_u __attribute__((aligned(sizeof(A))));
#define LOADA(p) (*(__global const Av_u *)(p))
#ifdef FLOATING
#define BLENDED                                                                 \
    (LOADA(above + left + k) * back + LOADA(below + left + k) * back +          \
     LOADA(above + right + k) * along + LOADA(below + right + k) * along)
#else
#define BLENDED (LOADA(above + left + k) * back + LOADA(above + right + k) * along)
#endif

// Combines `count` elements of lines p and r of the image, which begin at p_at and r_at of x's `size`.
OUT_OF_LINE WIDE void blend_lines(__global A *restrict above, __global A *restrict below, __global const T *restrict x,
                                  const int p_at, const int r_at, const int count, const int size, const A up,
                                  const A down) {
    for (int i = 0; i < count; i += VW) {
        const Av p = CONVERT(load_lanes(x + p_at + i, size - p_at - i), A) * up;
        const Av r = CONVERT(load_lanes(x + r_at + i, size - r_at - i), A) * down;
#ifdef FLOATING
        *(__global Av_u *)(above + i) = p;
        *(__global Av_u *)(below + i) = r;
#else
        *(__global Av_u *)(above + i) = p + r;
#endif
    }
}

KERNEL void quantized_bilinear(ITEM __global const T *x, __global T *y, __global const Between *rows,
                               __global const Between *columns, __global const W *row_weights,
                               __global const W *column_weights, __global Sum *lines, int n, int per_item, int height,
                               int width, int channels, int out_height, int out_width, int line_size) {
    SHARE(n, per_item);
    __global A *above = lines + ITEM_INDEX(0) * 2 * line_size, *below = above + line_size;
    const int size = n / out_height * height * width * channels;
    for (int line = start; line < end; ++line) {
        const int image = line / out_height, i = line - image * out_height;
        const A down = (A)row_weights[i];
        blend_lines(above, below, x, (image * height + rows[i].lower) * width * channels,
                    (image * height + rows[i].upper) * width * channels, width * channels, size, (A)ONE - down, down);
        __global T *out = y + line * out_width * channels;
        for (int j = 0; j < out_width; ++j) {
            const int left = columns[j].lower * channels, right = columns[j].upper * channels;
            const Av along = (A)column_weights[j], back = (A)ONE - along;
            // A vector may reach into the next pixel, which is written later.
            for (int k = 0; k < channels; k += VW)
                store_lanes(out + j * channels + k, CONVERT(rounded(BLENDED), T), (out_width - j) * channels - k);
        }
    }
}
#else
KERNEL void quantized_bilinear(ITEM __global const T *x, __global T *y, __global const Between *rows,
                               __global const Between *columns, __global const W *row_weights,
                               __global const W *column_weights, int n, int per_item, int height, int width,
                               int channels, int out_height, int out_width) {
    SHARE_PIXELS(n, per_item, channels);
    for (int pixel = start; pixel < end; ++pixel) {
        const int line = pixel / out_width, j = pixel - line * out_width;
        const int image = line / out_height, i = line - image * out_height;
        const int above = rows[i].lower, below = rows[i].upper, left = columns[j].lower, right = columns[j].upper;
        const Av down = (A)row_weights[i], along = (A)column_weights[j], up = (A)ONE - down, back = (A)ONE - along;
        __global const T *p = PIXEL(image, above, left), *q = PIXEL(image, above, right);
        __global const T *r = PIXEL(image, below, left), *s = PIXEL(image, below, right);
        for (int k = first_channel; k < end_channel; k += VW) {
            Av sum = CORNER(p) * up * back;
            sum += CORNER(r) * down * back;
            sum += CORNER(q) * up * along;
            sum += CORNER(s) * down * along;
            store_lanes(y + pixel * channels + k, CONVERT(rounded(sum), T), channels - k);
        }
    }
}
#endif
