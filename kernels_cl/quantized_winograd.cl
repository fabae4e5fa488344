// 3x3 convolutions of stride 1 of quantized activations and weights by Winograd's F(4x4, 3x3), in integers:
// out = requantize(conv(x) + bias), bit for bit what a sum of all products gives.
//
// With the points 0, +-1, +-2 and infinity, B^T and A^T hold integers, and the rows of G fractions, which the weights
// leave out and `transform_sums` makes up for: it gives 24 times A^T x along each side, so 576 times a sum. Words hold
// the transformed bytes (up to 100 * 128) and weights (49 * 128). Sums may wrap around 2^32, as 576 = 9 * 64: the
// inverse of 9 modulo 2^32 leaves 64 times a sum, which fits.
//
// x is [images, height, width, channels], an even number of channels >= 2 VW; weights are the words of the 36 points,
// packed [columns / item_columns][36][item_columns / PANEL][channels / 2][PANEL][2]; stage as in quantized_conv_2d.cl.
// A work-item takes item_patches patches x item_columns columns, `block` patches at a time, as in winograd.cl; its
// memory holds a patch that reaches beyond the image, [36][block][channels] words, and [36][block][item_columns] sums.
// Macros: MR, NV, PANEL; T, FOLDED, RECTIFIED and SATURATED (quantized.h).
#define NARROWS_SUMS 1
#include "quantized.h"
#include <delegate.cpu.quantized_winograd.QuantizedWinograd>

#define TO_SIGNED (FLIP ^ 128)  // bits to flip
#define INVERSE_OF_9 954437177  // 9 * INVERSE_OF_9 = 2^33 + 1

typedef short wordsv __attribute__((vector_size(4 * VW)));
typedef wordsv wordsv_u __attribute__((aligned(2)));
typedef char Bytes __attribute__((vector_size(2 * VW)));
typedef Bytes Bytes_u __attribute__((aligned(1)));
#define BYTES 2 * VW

// B^T x.
INLINE void transform_bytes(const wordsv x[6], wordsv y[6]) {
    const wordsv even_a = x[4] - (x[2] << 2), odd_a = x[3] - (x[1] << 2);
    const wordsv even_b = x[4] - x[2], odd_b = (x[3] - x[1]) << 1;
    y[0] = even_a + (x[0] << 2) - x[2];
    y[1] = even_a + odd_a;
    y[2] = even_a - odd_a;
    y[3] = even_b + odd_b;
    y[4] = even_b - odd_b;
    y[5] = x[5] - x[3] - (odd_b << 1);
}

// 24 A^T x.
INLINE void transform_sums(const intv x[6], intv y[4]) {
    const intv even_a = (x[1] + x[2]) << 2, odd_a = (x[1] - x[2]) << 2;
    const intv even_b = x[3] + x[4], odd_b = (x[3] - x[4]) << 1;
    y[0] = (x[0] << 2) + (x[0] << 1) + even_b - even_a;
    y[1] = odd_b - odd_a;
    y[2] = (even_b << 2) - even_a;
    y[3] = (odd_b << 2) - odd_a + (x[5] << 4) + (x[5] << 3);
}

// The position of a patch: its image, and its top left pixel in the output.
INLINE int3 place(const int patch, __global const QuantizedWinograd *restrict w) {
    const int row = patch / w->tiles_x;
    return (int3)(row / w->tiles_y, row % w->tiles_y * 4, patch % w->tiles_x * 4);
}

// Copies the 6 x 6 pixels from (top, left) of an image, some of them outside, one after another.
OUT_OF_LINE void copy_border(__global uchar *restrict to, __global const uchar *restrict image, const int top,
                             const int left, __global const QuantizedWinograd *restrict w) {
    __global const Geometry *restrict g = &w->window;
    const int channels = g->channels;
    const Bytes zero = (Bytes){} + (char)(w->x_zero ^ TO_SIGNED);
    const int first = MIN(MAX(-left, 0), 6), last = MAX(MIN(6, g->width - left), first);
    for (int y = top; y < top + 6; ++y, to += 6 * channels) {
        const int inside = (uint)y < (uint)g->height;
        const int from = (inside ? first : 6) * channels, until = (inside ? last : 6) * channels;
        __global const uchar *line = image + (y * g->width + left) * channels;
        ROLL for (int i = 0; i < from; i += BYTES) *(__global Bytes_u *)(to + MIN(i, from - BYTES)) = zero;
        ROLL for (int i = from; i < until; i += BYTES) {
            const int at = MIN(i, until - BYTES);
            *(__global Bytes_u *)(to + at) = *(__global const Bytes_u *)(line + at);
        }
        ROLL for (int i = until; i < 6 * channels; i += BYTES)
            *(__global Bytes_u *)(to + MIN(i, 6 * channels - BYTES)) = zero;
    }
}

// Transforms one patch, whose lines are `line` bytes apart, into its slot of the block.
OUT_OF_LINE WIDE void read_patch(__global const uchar *restrict corner, __global short *restrict slot,
                                 const int channels, const int line, const int slot_step) {
    for (int c = 0; c < channels; c += BYTES) {
        const int c0 = MIN(c, channels - BYTES);
        wordsv half_done[6][6];
        UNROLL for (int j = 0; j < 6; ++j) {
            wordsv column[6], transformed[6];
            UNROLL for (int i = 0; i < 6; ++i) {
                const Bytes bytes = *(__global const Bytes_u *)(corner + i * line + j * channels + c0);
                column[i] = __builtin_convertvector(bytes ^ (char)TO_SIGNED, wordsv);
            }
            transform_bytes(column, transformed);
            UNROLL for (int i = 0; i < 6; ++i) half_done[i][j] = transformed[i];
        }
        UNROLL for (int i = 0; i < 6; ++i) {
            wordsv row[6];
            transform_bytes(half_done[i], row);
            UNROLL for (int j = 0; j < 6; ++j) *(__global wordsv_u *)(slot + (i * 6 + j) * slot_step + c0) = row[j];
        }
    }
}

// Multiplies `count` slots, rounded up to whole tiles, by one panel. Slots past the last hold any numbers.
OUT_OF_LINE WIDE void multiply_slots(__global const short *restrict slots, __global const short *restrict panel,
                                     __global int *restrict out, const int count, const int depth, const int columns) {
    for (int i = 0; i < count; i += MR, slots += MR * depth, out += MR * columns) {
        intv tile[MR][NV];
        UNROLL for (int r = 0; r < MR; ++r)
            UNROLL for (int j = 0; j < NV; ++j) tile[r][j] = 0;
        for (int k = 0; k < depth; k += 2) {
            intv w[NV];
            UNROLL for (int j = 0; j < NV; ++j) w[j] = LOADI(panel + k * PANEL + j * 2 * VW);
            UNROLL for (int r = 0; r < MR; ++r) {
                const intv pair = (intv)*(__global const int_u *)(slots + r * depth + k);
                UNROLL for (int j = 0; j < NV; ++j) tile[r][j] = DOT2(tile[r][j], pair, w[j]);
            }
        }
        UNROLL for (int r = 0; r < MR; ++r)
            UNROLL for (int j = 0; j < NV; ++j) *(__global intv_u *)(out + r * columns + j * VW) = tile[r][j];
    }
}

// Transforms one slot of sums into its output pixels.
OUT_OF_LINE WIDE void write_patch(__global const int *restrict slot, __global const int *restrict stage,
                                  __global T *restrict out, const int patch, const int n_first, const int n_last,
                                  __global const QuantizedWinograd *restrict w) {
    __global const Geometry *restrict g = &w->window;
    const int3 at = place(patch, w);
    out += (size_t)((at.x * g->out_height + at.y) * g->out_width + at.z) * g->columns;
    const int tall = MIN(4, g->out_height - at.y), wide = MIN(4, g->out_width - at.z);
    for (int n = n_first; n < n_last; n += VW) {
        intv half_done[4][6];
        UNROLL for (int j = 0; j < 6; ++j) {
            intv column[6], transformed[4];
            UNROLL for (int i = 0; i < 6; ++i)
                column[i] = *(__global const intv_u *)(slot + (i * 6 + j) * w->product_step + n - n_first);
            transform_sums(column, transformed);
            UNROLL for (int i = 0; i < 4; ++i) half_done[i][j] = transformed[i];
        }
        __global const int *own = stage + n * STAGE_ROWS;
        const intv bias = LOADI(own);
        const int rest = g->columns - n;
        ROLL for (int i = 0; i < tall; ++i) {
            intv row[4];
            transform_sums(half_done[i], row);
            Outv results[4];
            UNROLL for (int j = 0; j < 4; ++j) {
                const intv sum = ((row[j] * INVERSE_OF_9) >> 6) + bias;
                results[j] = NARROWED_OUT(finish_sum(sum, own, VW, w->bounds.zero, w->bounds.low, w->bounds.high));
            }
            __global T *line = out + (size_t)i * g->out_width * g->columns + n;
            UNROLL for (int j = 0; j < 4; ++j)
                if (j < wide) store_lanes(line + j * g->columns, results[j], rest);
        }
    }
}

KERNEL void quantized_winograd(ITEM __global const uchar *restrict x, __global const short *restrict weights,
                               __global const int *restrict stage, __global T *restrict out,
                               __global uchar *restrict scratch, __global const QuantizedWinograd *restrict w) {
    __global const Geometry *restrict g = &w->window;
    const int columns = (g->columns + PANEL - 1) / PANEL * PANEL;
    const int patches = g->images * w->tiles_y * w->tiles_x;
    const int first = ITEM_INDEX(0) * w->item_patches, last = MIN(first + w->item_patches, patches);
    const int n_first = ITEM_INDEX(1) * w->item_columns, n_last = MIN(n_first + w->item_columns, columns);
    const int row_items = (patches + w->item_patches - 1) / w->item_patches;
    const size_t item = ITEM_INDEX(1) * row_items + ITEM_INDEX(0);
    __global uchar *border = scratch + item * w->item_bytes;
    __global short *slots = (__global short *)(border + w->border_bytes);
    __global int *sums = (__global int *)(slots + (size_t)36 * w->slot_step);
    weights += (size_t)36 * n_first * g->channels;
    for (int patch = first; patch < last; patch += w->block) {
        const int count = MIN(w->block, last - patch);
        for (int i = 0; i < count; ++i) {
            const int3 at = place(patch + i, w);
            const int top = at.y - g->pad_y, left = at.z - g->pad_x;
            const int inside = top >= 0 && left >= 0 && top + 6 <= g->height && left + 6 <= g->width;
            __global const uchar *image = x + (size_t)at.x * g->height * g->width * g->channels;
            __global const uchar *corner = image + (top * g->width + left) * g->channels;
            if (!inside) copy_border(border, image, top, left, w);
            read_patch(inside ? corner : border, slots + i * g->channels, g->channels,
                       (inside ? g->width : 6) * g->channels, w->slot_step);
        }
        for (int p = 0; p < 36; ++p)
            for (int n = n_first; n < n_last; n += PANEL)
                multiply_slots(slots + p * w->slot_step, weights + (p * w->item_columns + n - n_first) * g->channels,
                               sums + p * w->product_step + n - n_first, count, g->channels, w->item_columns);
        for (int i = 0; i < count; ++i)
            write_patch(sums + i * w->item_columns, stage, out, patch + i, n_first, MIN(n_last, g->columns), w);
    }
}
