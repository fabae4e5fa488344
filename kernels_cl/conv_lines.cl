// 2-D convolutions whose taps in a row are adjacent, line by line of the output: out = activation(conv(x) + bias +
// residual). Arguments are those of conv_2d.cl, for a single group of channels.
// A work-item takes item_spans spans, each `span` pixels of one output line, x item_columns columns. Pixels of a line
// are a constant step apart, so that a tile needs one address, and the taps of a row are one long tap. Lines that a
// tile at an edge reads are copied with padding into the work-item's own memory, line_floats apart; those of small
// images all, and once for block_lines whole lines of the output. Vectors of a pixel's columns are vector_step apart in
// out and residual: VW, or more, if each is an image of its own.
// With SECOND the convolution of a second image is added, whose lines and weights follow the first's.
// Macros: MR, NV, PANEL, HALF_WEIGHTS, SECOND; ACTIVATION (common.h), whose arguments are low and high.
#include "tile.h"
#include <delegate.cpu.lines.LineConvolution>

// Copies count floats, and reads nothing past them.
INLINE void copy_floats(__global float *restrict to, __global const float *restrict from, const int count) {
    if (count < VW) {
        ROLL for (int i = 0; i < count; ++i) to[i] = from[i];
        return;
    }
    for (int i = 0; i + VW < count; i += VW) STORE(to + i, LOAD(from + i));
    STORE(to + count - VW, LOAD(from + count - VW));
}

// Writes count zeros and nothing past them, where other tiles' pixels and lines may be.
INLINE void fill_zeros(__global float *to, const int count) {
    int i = 0;
    ROLL for (; i + VW <= count; i += VW) STORE(to + i, (floatv)(0.0f));
    ROLL for (; i < count; ++i) to[i] = 0.0f;
}

// The input lines that `block` output lines read; they are adjacent unless that is one.
INLINE int lines_read(__global const Geometry *g, const int block) {
    return (block - 1) * g->stride_y + g->kernel_height;
}

// Copies the lines that `count` pixels of `block` lines read, from pixel `column` of output line `line` on.
OUT_OF_LINE WIDE void copy_lines(__global float *restrict to, __global const float *restrict x,
                                 __global const Geometry *restrict window, const int line_floats, const int line,
                                 const int block, const int column, const int count) {
    const Geometry g = *window;  // a copy, which writes cannot change
    const int image = line / g.out_height;
    const int top = (line - image * g.out_height) * g.stride_y - g.pad_y, left = column * g.stride_x - g.pad_x;
    const int width = (count - 1) * g.stride_x + g.kernel_width;
    const int start = MIN(MAX(-left, 0), width), end = MAX(MIN(width, g.width - left), start);
    const int lines = lines_read(window, block);
    ROLL for (int i = 0; i < lines; ++i, to += line_floats) {
        const int y = top + i * g.dilation_y, inside = (uint)y < (uint)g.height;
        const int from = inside ? start : width, until = inside ? end : width;
        fill_zeros(to, from * g.channels);
        copy_floats(to + from * g.channels, x + ((image * g.height + y) * g.width + left + from) * g.channels,
                    (until - from) * g.channels);
        fill_zeros(to + until * g.channels, (width - until) * g.channels);
    }
}

// Pixels [first, last) of a line, or of a span.
typedef struct {
    int first, last;
} Pixels;

// The pixels at which a tile may begin without reading past the image's sides.
INLINE Pixels inside_of(__global const Geometry *restrict g) {
    const int room = g->width + g->pad_x - (MR - 1) * g->stride_x - g->kernel_width;
    return (Pixels){(g->pad_x + g->stride_x - 1) / g->stride_x, room < 0 ? 0 : room / g->stride_x + 1};
}

// The pixels of a span whose tiles can read the image itself, because nothing that they read is outside it; none if
// these are less than half. top: the span's first line in the image. column: its first pixel.
INLINE Pixels whole_tiles(const Pixels inside, __global const Geometry *restrict g, const int top, const int column,
                          const int count) {
    const bool lines = top >= 0 && top + (g->kernel_height - 1) * g->dilation_y < g->height;
    const int first = (MAX(inside.first - column, 0) + MR - 1) / MR * MR;
    const int last = MIN((MAX(inside.last - column, 0) + MR - 1) / MR * MR, count);
    return lines && 2 * (last - first) >= count ? (Pixels){first, last} : (Pixels){count, count};
}

// The number of pixels that share an address: x86-64 adds a register times 4 or 8 to it. A compiler that sees through
// the address would keep one for each pixel, more than there are registers.
#define SHARED_ADDRESS 3
#if defined(LITECL_NATIVE) && defined(__x86_64__)
#define OPAQUE(address) __asm__("" : "+r"(address))
#else
#define OPAQUE(address)
#endif

// tile[r][j] += the taps of pixel r times weights; lines point at the first pixel. Returns the end of the weights.
INLINE __global const Weight *multiply_lines(floatv tile[MR][NV], __global const float *restrict lines,
                                             __global const Weight *restrict weights,
                                             __global const Geometry *restrict g, const size_t line_floats) {
    const int depth = g->kernel_width * g->channels;
    const size_t step = g->stride_x * g->channels;
    for (int ky = 0; ky < g->kernel_height; ++ky, lines += line_floats) {
        __global const float *at[(MR + SHARED_ADDRESS - 1) / SHARED_ADDRESS];
        UNROLL for (int r = 0; r < MR; r += SHARED_ADDRESS) at[r / SHARED_ADDRESS] = lines + r * step;
        for (int k = 0; k < depth; ++k, weights += PANEL) {
            floatv w[NV];
            UNROLL for (int j = 0; j < NV; ++j) w[j] = LOAD_WEIGHTS(weights + j * VW);
            UNROLL for (int r = 0; r < MR; ++r) {
                const float x = at[r / SHARED_ADDRESS][r % SHARED_ADDRESS * step];
                UNROLL for (int j = 0; j < NV; ++j) tile[r][j] = x * w[j] + tile[r][j];
            }
            UNROLL for (int r = 0; r < MR; r += SHARED_ADDRESS) {
                ++at[r / SHARED_ADDRESS];
                OPAQUE(at[r / SHARED_ADDRESS]);
            }
        }
    }
    return weights;
}

// Computes up to MR pixels x NV vectors of columns from n0 on; lines, residual and out point at the first of them.
// second: the copied lines of the second image.
OUT_OF_LINE WIDE void line_tile(__global const float *restrict lines, const size_t line_floats,
                                __global const float *restrict second, __global const Weight *restrict weights,
                                __global const float *restrict bias, __global const float *restrict residual,
                                __global float *restrict out, __global const LineConvolution *restrict c, const int n0,
                                const int count, const int has_residual, const float low, const float high) {
    __global const Geometry *restrict g = &c->window;
    floatv tile[MR][NV];
    UNROLL for (int r = 0; r < MR; ++r)
        UNROLL for (int j = 0; j < NV; ++j) tile[r][j] = LOAD(bias + n0 + j * VW);
    weights = panel_at(weights, n0, c->depth);
    weights = multiply_lines(tile, lines, weights, g, line_floats);
#ifdef SECOND
    multiply_lines(tile, second, weights, &c->second, c->second_floats);
#endif
    const int out_step = c->out.step_x * c->out.pixel_step;
    int to[MR];
    UNROLL for (int r = 0; r < MR; ++r) to[r] = r * out_step + n0 / VW * c->vector_step;
    finish_tile(tile, residual, out, to, c->vector_step, count, g->group_columns - n0, has_residual, low, high);
}

KERNEL void conv_lines(ITEM __global const float *restrict x, __global const float *restrict x_second,
                       __global const Weight *restrict weights, __global const float *restrict bias,
                       __global const float *restrict residual, __global float *restrict lines,
                       __global float *restrict out, __global const LineConvolution *restrict c,
                       const int has_residual, const float low, const float high) {
    __global const Geometry *restrict g = &c->window;
    const int span = c->span, in_line = (g->out_width + span - 1) / span, spans = LINES_OF(g) * in_line;
    const int row_items = (spans + c->item_spans - 1) / c->item_spans;
    const int first = ROW_ITEM * c->item_spans, last = MIN(first + c->item_spans, spans);
    const int n_first = COLUMN_ITEM * c->item_columns, n_last = MIN(n_first + c->item_columns, g->group_columns);
    const Pixels inside = inside_of(g);
    const size_t line_step = (size_t)g->width * g->channels;
    const int step = g->stride_x * g->channels;
    lines += (size_t)(COLUMN_ITEM * row_items + ROW_ITEM) * c->item_floats;
    int line = first / in_line, column = (first - line * in_line) * span;
    for (int i = first, block; i < last; i += block) {
        const int count = MIN(span, g->out_width - column), image = line / g->out_height;
        const int row = line - image * g->out_height, top = row * g->stride_y - g->pad_y;
        __global const float *from = x + (image * g->height + top) * line_step - g->pad_x * g->channels;
        const Pixels whole = c->block_lines > 1 ? (Pixels){count, count} : whole_tiles(inside, g, top, column, count);
        block = MIN(MIN(c->block_lines, last - i), g->out_height - row);
        if (whole.first > 0) copy_lines(lines, x, g, c->line_floats, line, block, column, whole.first);
        if (whole.last < count)
            copy_lines(lines + whole.last * step, x, g, c->line_floats, line, block, column + whole.last,
                       count - whole.last);
#ifdef SECOND
        const int second_step = c->second.stride_x * c->second.channels;
        const int second_down = c->second.stride_y * c->second_floats;
        __global float *second = lines + lines_read(g, c->block_lines) * c->line_floats;
        copy_lines(second, x_second, &c->second, c->second_floats, line, block, column, count);
#else
        const int second_step = 0, second_down = 0;
        __global const float *second = lines;
#endif
        for (int n0 = n_first; n0 < n_last; n0 += TILE_COLUMNS)
            for (int b = 0; b < block; ++b) {
                const int y = (row + b) * c->out.step_y + c->out.first_y;
                __global const float *copied = lines + b * g->stride_y * c->line_floats;
                for (int p = 0; p < count; p += MR) {
                    const int at = ((image * c->out.height + y) * c->out.width + (column + p) * c->out.step_x +
                                    c->out.first_x) * c->out.pixel_step;
                    const bool direct = p >= whole.first && p < whole.last;
                    line_tile(direct ? from + (column + p) * step : copied + p * step,
                              direct ? g->dilation_y * line_step : (size_t)c->line_floats,
                              second + b * second_down + p * second_step, weights, bias, residual + at, out + at, c,
                              n0, count - p, has_residual, low, high);
                }
            }
        column += span;
        if (column >= g->out_width) column = 0, line += block;
    }
}
