// Depthwise 2-D convolutions of quantized activations and weights: out = requantize(conv(x) + bias).
//
// x is [images, height, width, channels]. Four bytes are multiplied at a time: up to four rows of the kernel, ROWS, at
// one of its columns. Four vectors hold 4 VW adjacent channels: channel 4 j + q is in lane j of vector q or, with
// BLOCKED, channel 16 i + 4 q + j in lane 4 i + j, which takes fewer instructions (byte_blocks.h).
// weights are [parts][row groups][kernel_width][4 q][lanes][4 rows], zeros past the last channel and row; weights with
// a zero point of their own (uint8) have up to three parts, to be added.
// stage is [4][4 q][lanes]: bias, multiplier and shifts (finish_sum in quantized.h). zeros holds 4 VW zero points of x.
// A work-item takes item_rows rows of the output x item_channels channels, in pieces of PIXELS x 4 VW; the last
// columns, and the last channels if they fill a vector, overlap earlier ones. On a GPU it takes PIXELS of one row.
// FLAT: the number of adjacent pixels in one vector, if channels are few and the stride is 1; PIXELS counts such
// groups, and weights and stage are repeated as often.
// Macros: PIXELS; ROWS; FLAT; T, FOLDED and RECTIFIED (quantized.h); KERNEL_WIDTH and STRIDE_X, if they are known and
// taps are dense; WIDTH, the vector width, if there are fewer channels than 4 VW, or on a GPU if they are not a
// multiple; BLOCKED; PARTIAL, if channels are not a multiple of 4 or fewer than 4 WIDTH; INSIDE, if no piece reaches
// beyond the image's sides, and NEAR, if none reaches farther beyond them than half a window: columns are not checked
// that lie inside.
#ifdef WIDTH
#undef VW
#define VW WIDTH
#endif
#define NARROWS_SUMS 1
#include "quantized.h"
#include <delegate.ops.quantized.depthwise_conv_2d.QuantizedDepthwise>

#define CHANNELS (4 * VW)
#ifndef FLAT
#define FLAT 1
#endif
// On a GPU pixels that are whole vectors are aligned, and its compiler loads them at once instead of byte by byte.
#if defined(LITECL_GPU) && !defined(PARTIAL)
typedef intv Bytes;
#else
typedef intv_b Bytes;
#endif
#define SELECT(mask, a, b) (((a) & (int)(mask)) | ((b) & ~(int)(mask)))

// Transposes the bytes of rows, and narrows sums that are ordered like that.
#if defined(BLOCKED) || defined(WASM_LANES)
#include "byte_blocks.h"
#endif
#ifdef BLOCKED
#define transpose_rows transpose_blocks
#define narrowed_sums narrowed_blocks
#elif defined(WASM_LANES)
INLINE void transpose_rows(intv to[4], const intv from[4]) {
    intv x[4];
    UNROLL for (int k = 0; k < 4; ++k) x[k] = __builtin_astype(transposed(__builtin_astype(from[k], bytes16)), intv);
    transpose_blocks(to, x);
}

INLINE intv narrowed_sums(const intv y[4]) {
    return __builtin_astype(transposed(__builtin_astype(narrowed_blocks(y), bytes16)), intv);
}
#else
INLINE void transpose_rows(intv to[4], const intv r[4]) {
    const intv a = SELECT(0x00ff00ff, r[0], r[1] << 8), b = SELECT(0x00ff00ff, AS_INTV(AS_UINTV(r[0]) >> 8), r[1]);
    const intv c = SELECT(0x00ff00ff, r[2], r[3] << 8), d = SELECT(0x00ff00ff, AS_INTV(AS_UINTV(r[2]) >> 8), r[3]);
    to[0] = SELECT(0x0000ffff, a, c << 16);
    to[1] = SELECT(0x0000ffff, b, d << 16);
    to[2] = SELECT(0x0000ffff, AS_INTV(AS_UINTV(a) >> 16), c);
    to[3] = SELECT(0x0000ffff, AS_INTV(AS_UINTV(b) >> 16), d);
}

INLINE intv narrowed_sums(const intv y[4]) {
    const intv even = SELECT(0x000000ff, y[0], y[2] << 16), odd = SELECT(0x000000ff, y[1], y[3] << 16);
    return SELECT(0x00ff00ff, even, odd << 8);
}
#endif

// The rows of a kernel column: their addresses, the step from one image column to the next (0 for a row outside the
// image, which is read from zeros), and the first and last address from which a whole vector may be read; on a GPU the
// number of channels.
typedef struct {
    __global const uchar *from[ROWS], *begin[ROWS], *last[ROWS];
    int step[ROWS], count;
} Rows;

INLINE intv load_bytes(__global const uchar *p, __global const uchar *begin, __global const uchar *last, const int count) {
#if defined(PARTIAL) && defined(LITECL_GPU)
    uchar lanes[CHANNELS];
    UNROLL for (int i = 0; i < CHANNELS; ++i) lanes[i] = p[MIN(i, count - 1)];
    return *(__private const intv_b *)lanes ^ (int)(FLIP * 0x01010101u);
#elif defined(PARTIAL) || FLAT > 1
    if (p < begin || p > last) {
        uchar lanes[CHANNELS];
        for (int i = 0; i < CHANNELS; ++i) lanes[i] = p + i >= begin && p + i < last + CHANNELS ? p[i] : (uchar)0;
        return *(__private const intv_b *)lanes ^ (int)(FLIP * 0x01010101u);
    }
#endif
    return *(__global const Bytes *)p ^ (int)(FLIP * 0x01010101u);
}

// Whether column i of a piece may lie outside the image.
#if defined(INSIDE)
#define MAY_BE_OUTSIDE(i) 0
#elif defined(NEAR)
#define MAY_BE_OUTSIDE(i) ((i) < KERNEL_WIDTH / 2 || (i) >= (PIXELS - 1) * STRIDE_X + KERNEL_WIDTH - KERNEL_WIDTH / 2)
#else
#define MAY_BE_OUTSIDE(i) 1
#endif

// Column i of the kernel's rows, four bytes to an int, as vectors by channel.
INLINE void load_column(intv v[4], const Rows *rows, const int i, __global const uchar *zeros, const int left,
                        const int width) {
    intv r[4];
#if FLAT > 1
    const intv column = left + i + LANES / (VW / FLAT);
    const intv inside = column >= 0 && column < width;
#else
    const int inside = !MAY_BE_OUTSIDE(i) || (uint)(left + i) < (uint)width;
#endif
    UNROLL for (int k = 0; k < 4; ++k) {
        r[k] = 0;
        if (k >= ROWS) continue;
#if FLAT > 1
        r[k] = load_bytes(rows->from[k] + i * rows->step[k], rows->begin[k], rows->last[k], rows->count);
        if (MAY_BE_OUTSIDE(i)) r[k] = inside ? r[k] : load_bytes(zeros, zeros, zeros, rows->count);
#else
        __global const uchar *from = inside ? rows->from[k] + i * rows->step[k] : zeros;
        r[k] = load_bytes(from, inside ? rows->begin[k] : zeros, inside ? rows->last[k] : zeros, rows->count);
#endif
    }
    transpose_rows(v, r);
}

// sums[t] += the taps of one group of kernel rows for PIXELS adjacent pixels.
INLINE void add_rows(intv sums[PIXELS][4], const Rows *rows, __global const char *restrict weights,
                     __global const uchar *zeros, __global const QuantizedDepthwise *restrict d, const int left) {
    __global const Geometry *restrict g = &d->window;
    const int tap = d->lanes * 16;
#ifdef KERNEL_WIDTH
    UNROLL for (int i = 0; i < (PIXELS - 1) * STRIDE_X + KERNEL_WIDTH; ++i) {
        intv v[4];
        IN_ORDER;
        load_column(v, rows, i, zeros, left, g->width);
        UNROLL for (int t = 0; t < PIXELS; ++t)
            if (i >= t * STRIDE_X && i < t * STRIDE_X + KERNEL_WIDTH)
                UNROLL for (int q = 0; q < 4; ++q)
                    sums[t][q] = DOT4(sums[t][q], v[q],
                                      LOADI(weights + (i - t * STRIDE_X) * tap + q * d->lanes * 4));
    }
#else
    for (int k = 0; k < g->kernel_width; ++k, weights += tap)
        UNROLL for (int t = 0; t < PIXELS; ++t) {
            const int i = t * g->stride_x + k * g->dilation_x;
            intv v[4];
            load_column(v, rows, i, zeros, left, g->width);
            UNROLL for (int q = 0; q < 4; ++q) sums[t][q] = DOT4(sums[t][q], v[q], LOADI(weights + q * d->lanes * 4));
        }
#endif
}

// Requantizes the q-th sums of a pixel.
INLINE intv finish_quarter(const intv sums, __global const int *restrict stage,
                           __global const QuantizedDepthwise *restrict d, const int q) {
    return finish_sum(sums, stage + q * d->lanes, 4 * d->lanes, d->bounds.zero, d->bounds.low, d->bounds.high);
}

// Writes the results of one pixel, back in the order of channels.
INLINE void store_pixel(__global T *out, const intv y[4], const int count) {
    const intv bytes = narrowed_sums(y);
#ifdef PARTIAL
    if (count < CHANNELS) {
        T lanes[CHANNELS];
        *(__private intv_b *)lanes = bytes;
        FIRST(i, count, CHANNELS) out[i] = lanes[i];
        return;
    }
#endif
    *(__global Bytes *)out = bytes;
}

// Computes PIXELS pixels of one output row for channels [c_first, c_last). x and out point at the first pixel.
INLINE void compute_pixels(__global const uchar *restrict x, __global const char *restrict weights,
                           __global const int *restrict stage, __global const uchar *restrict zeros,
                           __global T *restrict out, __global const uchar *begin, __global const QuantizedDepthwise *restrict d,
                           const int top, const int c_first, const int c_last, const int left) {
    __global const Geometry *restrict g = &d->window;
    for (int c = c_first; c < c_last; c += CHANNELS) {
#if defined(PARTIAL) || FLAT > 1
        const int c0 = c;
#else
        const int c0 = MIN(c, g->channels - CHANNELS);
#endif
        intv sums[PIXELS][4];
        UNROLL for (int q = 0; q < 4; ++q) {
            const intv bias = LOADI(stage + q * d->lanes + c0 / 4);
            UNROLL for (int t = 0; t < PIXELS; ++t) sums[t][q] = bias;
        }
        __global const char *w = weights + c0;
        const int padded_height = (g->kernel_height + 3) / 4 * 4;
        for (int i = 0; i < d->parts * padded_height; i += 4, w += g->kernel_width * d->lanes * 16) {
            const int ky = i % padded_height;
            Rows rows;
            rows.count = g->channels - c0;
            UNROLL for (int k = 0; k < ROWS; ++k) {
                const int dy = (ky + k) * g->dilation_y;
                const int inside = ky + k < g->kernel_height && (uint)(top + dy) < (uint)g->height;
                rows.from[k] = inside ? x + dy * g->width * g->channels + c0 : zeros;
                rows.begin[k] = inside ? begin : zeros;
                rows.last[k] = inside ? begin + d->size - CHANNELS : zeros;
                rows.step[k] = inside ? g->channels : 0;
            }
            add_rows(sums, &rows, w, zeros, d, left);
        }
        intv held[PIXELS][4];  // which, unlike sums, may be indexed
#ifdef WASM_LANES
        // pixels share what is derived from the stage
        UNROLL for (int q = 0; q < 4; ++q)
            UNROLL for (int t = 0; t < PIXELS; ++t) held[t][q] = finish_quarter(sums[t][q], stage + c0 / 4, d, q);
        ROLL_FIRST(t, MIN(PIXELS, g->out_width), PIXELS)
            store_pixel(out + t * g->channels + c0, held[t], g->channels - c0);
#else
        UNROLL for (int t = 0; t < PIXELS; ++t) UNROLL for (int q = 0; q < 4; ++q) held[t][q] = sums[t][q];
        ROLL_FIRST(t, MIN(PIXELS, g->out_width), PIXELS) {
            intv y[4];
            UNROLL for (int q = 0; q < 4; ++q) y[q] = finish_quarter(held[t][q], stage + c0 / 4, d, q);
            store_pixel(out + t * g->channels + c0, y, g->channels - c0);
        }
#endif
    }
}

OUT_OF_LINE WIDE void compute_row(__global const uchar *restrict x, __global const char *restrict weights,
                                  __global const int *restrict stage, __global const uchar *restrict zeros,
                                  __global T *restrict out, __global const QuantizedDepthwise *restrict d, const int row,
                                  const int c_first, const int c_last, const int start, const int end) {
    __global const Geometry *restrict g = &d->window;
    const int image = row / g->out_height, top = row % g->out_height * g->stride_y - g->pad_y;
    __global const uchar *begin = x;
    x += (image * g->height + top) * g->width * g->channels;
    out += row * g->out_width * g->channels;
    for (int ox = start; ox < end; ox += PIXELS * FLAT) {
        const int first = MAX(0, MIN(ox, g->out_width - PIXELS * FLAT));
        const int left = first * g->stride_x - g->pad_x;
        __global const uchar *from = x + left * g->channels;
        __global T *to = out + first * g->channels;
        compute_pixels(from, weights, stage, zeros, to, begin, d, top, c_first, c_last, left);
    }
}

KERNEL void quantized_depthwise_conv_2d(ITEM __global const uchar *restrict x, __global const char *restrict weights,
                                        __global const int *restrict stage, __global const uchar *restrict zeros,
                                        __global T *restrict out, __global const QuantizedDepthwise *restrict d) {
    __global const Geometry *restrict g = &d->window;
    const int first = ITEM_INDEX(1) * d->item_rows, last = MIN(first + d->item_rows, LINES_OF(g));
    const int c_first = ITEM_INDEX(0) * d->item_channels, c_last = MIN(c_first + d->item_channels, g->channels);
#ifdef LITECL_GPU
    const int start = ITEM_INDEX(2) * PIXELS, end = MIN(start + PIXELS, g->out_width);
#else
    const int start = 0, end = g->out_width;
#endif
    for (int row = first; row < last; ++row) compute_row(x, weights, stage, zeros, out, d, row, c_first, c_last, start, end);
}
