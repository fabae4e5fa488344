// Depthwise 2-D convolutions of quantized activations and weights on CPUs with wide vectors: out = requantize(conv(x) +
// bias).
//
// x is [images, height, width, channels]. For each line of the output a work-item first makes fours in its own memory:
// an int has the bytes of an element of x in up to four rows of the kernel. Columns outside the image are there too. It
// then multiplies them, VW adjacent elements at a time: VW channels of a pixel (the last overlap earlier ones), or with
// FLAT all channels of FLAT adjacent pixels.
// fours are [GROUPS][columns][channels of a vector], for up to `segment` pixels of the line.
// weights are [blocks of channels][PARTS][GROUPS][kernel_width][VW][4 rows], zeros past the last row; stage is
// [blocks][4][VW]: bias, multiplier and shifts (finish_sum in quantized.h). zeros holds VW zero points of x.
// A work-item takes item_rows lines x item_blocks blocks of channels, all blocks of block_rows lines at a time.
// Macros: GROUPS, of up to four rows of the kernel; PARTS, bytes that add up to a weight; ROWS, of a group;
// KERNEL_WIDTH, if its taps are unrolled; FLAT; WIDTH, the vector width, if there are fewer channels; T, FOLDED,
// RECTIFIED and SATURATED (quantized.h).
#ifdef WIDTH
#undef VW
#define VW WIDTH
#endif
#include "quantized.h"
#include <delegate.ops.quantized.depthwise_lines.DepthwiseLines>

typedef VECTOR(uchar) Bytes;
typedef Bytes Bytes_u __attribute__((aligned(1)));
#define LOAD_BYTES(p) CONVERT(*(__global const Bytes_u *)(p), int)
#define FLIP_FOURS ((int)(FLIP * 0x01010101u))

#ifdef FLAT
#define PIXEL (VW / FLAT)
#else
#define FLAT 1
#define PIXEL VW
#endif
// Where the vector that contains the i-th of n elements begins: the last vector ends with the n-th.
#define VECTOR_AT(i, n) (FLAT > 1 ? MIN(i, (n) - VW) : (i))

#ifdef KERNEL_WIDTH
#define TAPS UNROLL
#else
#define TAPS
#define KERNEL_WIDTH g->kernel_width
#endif

// Makes the fours of `rows_left` kernel rows, at most ROWS, in the columns [from, until) of a line's. The first row is
// at y, and the line's columns begin at `left`.
INLINE void make_fours(__global int *restrict fours, __global const uchar *restrict image,
                       __global const uchar *restrict zeros, const Geometry *g, const int rows_left,
                       const int y, const int left, const int from, const int until) {
    __global const uchar *rows[ROWS];
    int steps[ROWS];
    UNROLL for (int k = 0; k < ROWS; ++k) {
        const int line = y + k * g->dilation_y, inside = k < rows_left && (uint)line < (uint)g->height;
        rows[k] = inside ? image + (line * g->width + left + from) * g->channels : zeros;
        steps[k] = !inside ? 0 : FLAT > 1 ? VW : g->channels;
    }
    const int n = (until - from) * PIXEL;
    for (int i = 0; i < n; i += VW) {
        const int back = i - VECTOR_AT(i, n);
        intv four = 0;
        UNROLL for (int k = 0; k < ROWS; ++k) {
            four |= LOAD_BYTES(rows[k] - (steps[k] ? back : 0)) << 8 * k;
            rows[k] += steps[k];
        }
        *(__global intv_u *)(fours + from * PIXEL + i - back) = four ^ FLIP_FOURS;
    }
}

// Computes `pixels` adjacent pixels of a line from their fours, for a block of channels.
INLINE void multiply_fours(__global const int *restrict fours, __global const char *restrict weights,
                           __global const int *restrict stage, __global T *restrict out,
                           __global const DepthwiseLines *restrict d, const int pixels) {
    __global const Geometry *restrict g = &d->window;
    const int n = pixels * PIXEL, tap = g->dilation_x * PIXEL, step = FLAT > 1 ? 1 : g->stride_x;
    const int out_step = FLAT > 1 ? VW : g->channels;
    const intv bias = LOADI(stage + STAGE_ROW_BIAS * VW);
    int i = 0;
    do {  // at least once, so that loads are moved out of the loops
        const int at = VECTOR_AT(i, n);
        intv sum = bias;
        __global const int *columns = fours + at * step;
        TAPS for (int p = 0; p < PARTS; ++p)
            TAPS for (int group = 0; group < GROUPS; ++group)
                TAPS for (int k = 0; k < KERNEL_WIDTH; ++k)
                    sum = DOT4(sum, LOADI(columns + group * d->group_ints + k * tap),
                               LOADI(weights + ((p * GROUPS + group) * KERNEL_WIDTH + k) * 4 * VW));
        const intv y = finish_sum(sum, stage, VW, d->bounds.zero, d->bounds.low, d->bounds.high);
        *(__global Outv_g *)(out - (i - at)) = CONVERT(y, T);
        i += VW, out += out_step;
    } while (i < n);
}

// Computes the pixels from `column` on, a segment at most, of the lines [line, last) for a block of channels.
OUT_OF_LINE WIDE void compute_segment(__global const uchar *restrict x, __global const char *restrict weights,
                                      __global const int *restrict stage, __global const uchar *restrict zeros,
                                      __global int *restrict fours, __global T *restrict out,
                                      __global const DepthwiseLines *restrict d, int line, const int last,
                                      const int column) {
    const Geometry own = d->window, *g = &own;  // a copy, which writes cannot change
    const int pixels = MIN(d->segment, g->out_width - column), left = column * g->stride_x - g->pad_x;
    const int columns = (pixels - 1) * g->stride_x + (g->kernel_width - 1) * g->dilation_x + 1;
    const int from = MIN(MAX(-left, 0), columns), until = MAX(MIN(columns, g->width - left), from);
    const intv outside = (LOAD_BYTES(zeros) * 0x01010101) ^ FLIP_FOURS;
    for (int group = 0; group < GROUPS; ++group) {
        __global int *to = fours + group * d->group_ints;
        for (int i = 0; i < from * PIXEL; i += VW) *(__global intv_u *)(to + i) = outside;
        for (int i = until * PIXEL; i < columns * PIXEL; i += VW) *(__global intv_u *)(to + i) = outside;
    }
    const int image_bytes = g->height * g->width * g->channels, image = line / g->out_height;
    int row = line - image * g->out_height;
    x += (size_t)image * image_bytes;
    out += ((size_t)line * g->out_width + column) * g->channels;
    do {
        for (int group = 0; group < GROUPS; ++group)
            make_fours(fours + group * d->group_ints, x, zeros, g, g->kernel_height - 4 * group,
                       row * g->stride_y - g->pad_y + 4 * group * g->dilation_y, left, from, until);
        multiply_fours(fours, weights, stage, out, d, pixels);
        out += g->out_width * g->channels;
        if (++row == g->out_height) row = 0, x += image_bytes;
    } while (++line < last);
}

KERNEL void quantized_depthwise_lines(ITEM __global const uchar *restrict x, __global const char *restrict weights,
                                      __global const int *restrict stage, __global const uchar *restrict zeros,
                                      __global int *restrict fours, __global T *restrict out,
                                      __global const DepthwiseLines *restrict d) {
    __global const Geometry *restrict g = &d->window;
    const int blocks = FLAT > 1 ? 1 : (g->channels + VW - 1) / VW;
    const int block_items = (blocks + d->item_blocks - 1) / d->item_blocks;
    const int first = ITEM_INDEX(1) * d->item_rows, last = MIN(first + d->item_rows, LINES_OF(g));
    const int b_first = ITEM_INDEX(0) * d->item_blocks, b_last = MIN(b_first + d->item_blocks, blocks);
    fours += (size_t)(ITEM_INDEX(1) * block_items + ITEM_INDEX(0)) * d->item_ints;
    for (int line = first; line < last; line += d->block_rows)
        for (int b = b_first; b < b_last; ++b) {
            const int c0 = FLAT > 1 ? 0 : MIN(b * VW, g->channels - VW);
            for (int column = 0; column < g->out_width; column += d->segment)
                compute_segment(x + c0, weights + b * PARTS * GROUPS * KERNEL_WIDTH * 4 * VW,
                                stage + b * STAGE_ROWS * VW, zeros, fours, out + c0, d, line,
                                MIN(line + d->block_rows, last), column);
        }
}
