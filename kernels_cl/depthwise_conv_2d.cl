// Depthwise 2-D convolutions: out[.., c * multiplier + j] = activation(conv(x[.., c], weights[j][.., c]) + bias[j][c])
// x is [images, height, width, channels]; multiplier is the window's group_columns; weights are
// [multiplier][kernel_height][kernel_width][channels], bias is [multiplier][channels], zeros without one. A work-item
// takes item_rows rows x item_pixels columns of the output x item_channels channels of the input, in tiles of ROWS x
// PIXELS x VW. A tile reads each row of the input once for all of its rows. The last columns and channels overlap
// earlier ones, so that all tiles are whole.
// Macros: PIXELS; ROWS, 1, or 2 if rows of taps are adjacent and windows leave no row out; KERNEL_WIDTH and STRIDE_X,
// if they are known and columns of taps are adjacent: every pixel is then loaded once for all taps that read it; APART,
// if group_columns is not 1; WIDTH (tile.h), if there are fewer channels than VW; ALIGNED (common.h), if channels are
// whole vectors; GUARDED, if all tiles reach beyond the image's sides (1) or none does (0), and NEAR, if none reaches
// farther than half a window beyond them: code for other tiles is left out; ACTIVATION (common.h), whose arguments are
// low and high.
#include "tile.h"
#include <delegate.ops.depthwise_conv_2d.Depthwise>

#ifndef ROWS
#define ROWS 1
#endif

// Which columns of a tile may lie outside the image: none; at either end as many as half a window; any. On a CPU the
// last case is rare, and gets a short loop.
#define NONE 0
#define EDGES 1
#define ANY 2
#ifndef KERNEL_WIDTH
#define LOOPED 1
#define KERNEL_WIDTH 1
#define STRIDE_X 1
#undef NEAR
#elif defined(LITECL_CPU)
#define LOOPED (outside == ANY)
#else
#define LOOPED 0
#endif
#define SPAN ((PIXELS - 1) * STRIDE_X + KERNEL_WIDTH)
#ifdef LITECL_CPU
#define EDGE (KERNEL_WIDTH / 2)
#else
#define EDGE 0
#endif
#define MAY_BE_OUTSIDE(i) (outside == ANY || outside == EDGES && ((i) < EDGE || (i) >= SPAN - EDGE))

// The pixel i columns right of x, which is at column `left`; 0 outside the image.
#define PIXEL(i) \
    (MAY_BE_OUTSIDE(i) && (uint)(left + (i)) >= (uint)g->width ? (floatv)(0.0f) : LOAD(x + (i) * g->channels))

// sums[r][t] += the taps of the row x of the input, for the tile's rows r from first to last - 1. weights are those of
// row 0; row r has the taps r * stride_y rows before.
INLINE void add_row(floatv sums[ROWS][PIXELS], __global const float *restrict x, __global const float *restrict weights,
                    __global const Geometry *restrict g, const int left, const int outside, const int first,
                    const int last) {
    const int back = g->stride_y * g->kernel_width * g->channels;
    if (LOOPED) {
        ROLL for (int k = 0; k < g->kernel_width; ++k)
            UNROLL for (int r = first; r < last; ++r) {
                const floatv tap = LOAD(weights - r * back + k * g->channels);
                UNROLL for (int t = 0; t < PIXELS; ++t)
                    sums[r][t] = PIXEL(t * g->stride_x + k * g->dilation_x) * tap + sums[r][t];
            }
        return;
    }
    floatv taps[ROWS][KERNEL_WIDTH];
    UNROLL for (int r = first; r < last; ++r)
        UNROLL for (int k = 0; k < KERNEL_WIDTH; ++k) taps[r][k] = LOAD(weights - r * back + k * g->channels);
    UNROLL for (int i = 0; i < SPAN; ++i) {
        const floatv pixel = PIXEL(i);
        UNROLL for (int r = first; r < last; ++r)
            UNROLL for (int t = 0; t < PIXELS; ++t)
                if (i >= t * STRIDE_X && i < t * STRIDE_X + KERNEL_WIDTH)
                    sums[r][t] = pixel * taps[r][i - t * STRIDE_X] + sums[r][t];
    }
}

// Whether pixel t of a tile exists: some don't in a line shorter than a tile.
#ifdef NEAR
#define IN_LINE(t) 1
#else
#define IN_LINE(t) ((t) < g->out_width)
#endif

#ifdef APART
#define COLUMNS_OF(g) (g)->group_columns
#else
#define COLUMNS_OF(g) 1
#endif

// Writes the channels of one pixel, group_columns apart.
INLINE void store_channels(__global float *out, const floatv y, const int group_columns) {
#ifdef APART
    float lanes[VW];
    *(__private floatv_u *)lanes = y;
    for (int i = 0; i < VW; ++i) out[i * group_columns] = lanes[i];
#else
    STORE(out, y);
#endif
}

// The number of rows of a tile, and the rows of the input that it reads, counted in dilations: [first, last). Those
// before `both` are for row 0 only, those from `second` on for row 1 only. The tiles below read `ahead` more, from row
// `next` on, not counted in dilations.
typedef struct {
    int count, first, both, second, last, next, ahead;
} Rows;

// Vectors of a cache line. If it has several, a tile takes longer to compute than to fetch, and prefetches what is below
// it vector by vector, so that it computes meanwhile; else all at once.
#define LINE_VECTORS (LINE_FLOATS / VW)

// Prefetches a part of what tiles below those of channels [c_first, c_last) will read, vector by vector. x is at their
// first pixel, c the vector's first channel. Lines are fetched in the order of their addresses, which the processor
// then continues, if the tiles have all channels; else the vectors of a line share its pixels.
INLINE void prefetch_below(__global const float *x, __global const Geometry *restrict g, const Rows *rows,
                           const int c_first, const int c_last, const int c) {
    const int line = g->width * g->channels, lines = (PIXELS * STRIDE_X + LINE_VECTORS - 1) / LINE_VECTORS;
    const int whole = c_last - c_first == g->channels, vector = c / VW;
    const int step = whole ? LINE_FLOATS : LINE_VECTORS * g->channels;
    x += rows->next * line + (whole ? vector * lines * LINE_FLOATS : c + vector % LINE_VECTORS * g->channels);
    ROLL for (int y = 0; y < rows->ahead; ++y, x += line)
        UNROLL for (int i = 0; i < lines; ++i) PREFETCH_FAR(x + i * step);
}

// Computes the tiles of channels [c_first, c_last). x and out point at their first pixel.
INLINE void compute_pixels(__global const float *restrict x, __global const float *restrict weights,
                           __global const float *restrict bias, __global float *restrict out,
                           __global const Geometry *restrict g, const Rows *rows, const int c_first, const int c_last,
                           const int left, const int outside, const float low, const float high) {
    const int line = g->dilation_y * g->width * g->channels, taps = g->kernel_width * g->channels;
    for (int c = c_first; c < c_last; c += VW) {
        const int c0 = MIN(c, g->channels - VW);
        if (LINE_VECTORS > 1) prefetch_below(x, g, rows, c_first, c_last, c0);
        const floatv start = LOAD(bias + c0);
        floatv sums[ROWS][PIXELS];
        UNROLL for (int r = 0; r < ROWS; ++r)
            UNROLL for (int t = 0; t < PIXELS; ++t) sums[r][t] = start;
        int y = rows->first;
        __global const float *row = x + y * line + c0, *w = weights + y * taps + c0;
        for (; y < rows->both; ++y, row += line, w += taps) add_row(sums, row, w, g, left, outside, 0, 1);
#if ROWS > 1
        for (; y < rows->second; ++y, row += line, w += taps) add_row(sums, row, w, g, left, outside, 0, 2);
        for (; y < rows->last; ++y, row += line, w += taps) add_row(sums, row, w, g, left, outside, 1, 2);
#endif
        UNROLL for (int r = 0; r < ROWS; ++r)
            if (r < rows->count)
                UNROLL for (int t = 0; t < PIXELS; ++t)
                    if (IN_LINE(t))
                        store_channels(out + ((r * g->out_width + t) * g->channels + c0) * COLUMNS_OF(g),
                                       ACTIVATION(sums[r][t], low, high), COLUMNS_OF(g));
    }
}

// Separate functions: a single one would spill the addresses of each case.
#define COMPUTE_PIXELS(name, outside)                                                                     \
    OUT_OF_LINE WIDE void name(                                                                           \
        __global const float *restrict x, __global const float *restrict weights,                         \
        __global const float *restrict bias, __global float *restrict out,                                \
        __global const Geometry *restrict g, const Rows *rows, const int c_first, const int c_last,       \
        const int left, const float low, const float high) {                                              \
        compute_pixels(x, weights, bias, out, g, rows, c_first, c_last, left, outside, low, high);        \
    }
COMPUTE_PIXELS(compute_inside, NONE)
#if EDGE
COMPUTE_PIXELS(compute_edges, EDGES)
#endif
#ifndef NEAR
COMPUTE_PIXELS(compute_any, ANY)
#endif

// Prefetches all that tiles below those of channels [c_first, c_last) will read. x is at their first pixel.
INLINE void prefetch_rows(__global const float *x, __global const Geometry *restrict g, const Rows *rows,
                          const int c_first, const int c_last) {
    const int whole = c_last - c_first == g->channels;
    const int columns = PIXELS * g->stride_x, runs = whole ? 1 : columns;
    const int length = whole ? columns * g->channels : c_last - c_first;
    ROLL for (int y = rows->next; y < rows->next + rows->ahead; ++y)
        ROLL for (int t = 0; t < runs; ++t)
            ROLL for (int c = 0; c < length; c += LINE_FLOATS)
                PREFETCH_FAR(x + (y * g->width + t) * g->channels + c_first + c);
}

#ifdef GUARDED
#define INSIDE (!GUARDED)
#else
#define INSIDE (left >= 0 && right < g->width)
#endif
#ifdef NEAR
#define IS_NEAR 1
#else
#define IS_NEAR (left >= -EDGE && right < g->width + EDGE)
#endif

INLINE void compute_rows(__global const float *restrict x, __global const float *restrict weights,
                         __global const float *restrict bias, __global float *restrict out,
                         __global const Depthwise *restrict d, const int row, const int count, const int x_first,
                         const int x_last, const int c_first, const int c_last, const float low, const float high) {
    __global const Geometry *restrict g = &d->window;
    const int image = row / g->out_height, top = row % g->out_height * g->stride_y - g->pad_y;
    const int below = MAX(0, g->height - top), later = (count - 1) * g->stride_y, step = g->dilation_y;
    const int last = MIN((below + step - 1) / step, g->kernel_height + later);
    const int next = (g->kernel_height - 1) * step + 1 + later;
    const Rows rows = {count, (MAX(0, -top) + step - 1) / step, count > 1 ? MIN(last, later) : last,
                       count > 1 ? MIN(last, g->kernel_height) : last, last, next, MIN(d->ahead, below - next)};
    x += (image * g->height + top) * g->width * g->channels;
    out += row * g->out_width * g->channels * g->group_columns;
    for (int ox = x_first; ox < x_last; ox += PIXELS) {
        const int first = MAX(0, MIN(ox, g->out_width - PIXELS));
        const int left = first * g->stride_x - g->pad_x;
        const int right = left + (PIXELS - 1) * g->stride_x + (g->kernel_width - 1) * g->dilation_x;
        __global const float *from = x + left * g->channels;
        __global float *to = out + first * g->channels * g->group_columns;
        if (LINE_VECTORS == 1) prefetch_rows(from, g, &rows, c_first, c_last);
        if (INSIDE)
            compute_inside(from, weights, bias, to, g, &rows, c_first, c_last, left, low, high);
#if EDGE
        else if (IS_NEAR)
            compute_edges(from, weights, bias, to, g, &rows, c_first, c_last, left, low, high);
#endif
#ifndef NEAR
        else
            compute_any(from, weights, bias, to, g, &rows, c_first, c_last, left, low, high);
#endif
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
    int count = 0;
    for (int row = first; row < last; row += count) {
        count = MIN(MIN(ROWS, last - row), g->out_height - row % g->out_height);
        for (int j = 0; j < g->group_columns; ++j)
            compute_rows(x, weights + j * filter, bias + j * g->channels, out + j, d, row, count, x_first, x_last,
                         c_first, c_last, low, high);
    }
}
