// Patches of an image as rows of bytes, and their products with weights, for all convolutions in bytes.
//
// x is [images, height, width, channels]; words are two channels each. A work-item gathers the patches of MR pixels, as
// unsigned bytes, into memory of its own, and multiplies them by all of its columns: padding, strides, dilation and odd
// numbers of channels are handled while gathering. There are two ways. If taps are adjacent, MR pixels of one line of
// the output share the lines of x that they read (`lines`): patches overlap there, row_step bytes apart, and consist of
// `runs` runs of run_bytes, one in each line, run_step bytes apart. Otherwise every patch is gathered by itself,
// [MR][row_bytes], as one run. Pixels are counted in lines of line_width, rounded up to line_pixels; they form a single
// line if patches are gathered one by one.
// plain: rows can be multiplied where they are in x, one after another. size: of x, in bytes. item_bytes: a work-item's
// memory. weights are [groups][columns / PANEL][row_bytes / 4][PANEL][4], or [2] words, zeros past the last column and
// the depth of a patch.
// Weights of WEIGHT_BITS, 4 or 2, are PACKED to a byte: each byte has the integers of its position in PACKED consecutive
// fours of the row, the first of them in its lowest bits, and every run is padded to whole fours of such bytes. They are
// multiplied in the upper bits of a byte, so that sums are 2^(8 - WEIGHT_BITS) times too large (`narrowed`).
// Macros: MR, NV, PANEL; WEIGHT_BITS; T and WORDS (quantized.h).
#include "quantized.h"
#include <Gather>
#include <GatherSize>

#ifndef WEIGHT_BITS
#define WEIGHT_BITS 8
#endif
#define PACKED (8 / WEIGHT_BITS)
#if WEIGHT_BITS == 8
#define UPPER(w, i) (w)
#define narrowed(sum) (sum)
#else
#define UPPER_MASK (WEIGHT_BITS == 4 ? (int)0xf0f0f0f0 : (int)0xc0c0c0c0)
#define UPPER(w, i) ((w) << (8 - WEIGHT_BITS * ((i) + 1)) & UPPER_MASK)
#define narrowed(sum) ((sum) >> (8 - WEIGHT_BITS))
#endif

#define BLOCK (GATHER_SIZE_BLOCK * VW)  // bytes copied at once
#define SLACK BLOCK  // bytes after the rows of a work-item, so that the end of a run is copied whole

// Copies count bytes, made unsigned. Up to SLACK bytes after them may be written too; room: bytes that may be read.
INLINE void gather_bytes(__global uchar *restrict to, __global const uchar *restrict from, const int count,
                         const int room) {
    int i = 0;
    if (count <= 16 && room >= 16) {  // the remainder is written twice
        *(__global uchar16_u *)to = *(__global const uchar16_u *)from ^ (uchar16)FLIP;
        return;
    }
    for (; i < count && i + BLOCK <= room; i += BLOCK)
        *(__global intv_b *)(to + i) = LOADB(from + i) ^ (int)(FLIP * 0x01010101u);
    ROLL for (; i < count; ++i) to[i] = from[i] ^ FLIP;
}

// Writes count bytes of one value, and up to SLACK more.
INLINE void fill_bytes(__global uchar *to, const uchar value, const int count) {
    for (int i = 0; i < count; i += BLOCK) *(__global intv_b *)(to + i) = (intv)(int)(value * 0x01010101u);
}

// The patch of one pixel, whose first tap is at (top, left) and may be outside the image. room: bytes from the image's
// first to the end of x.
INLINE void gather_patch(__global uchar *restrict row, __global const uchar *restrict image, const Geometry *g,
                         const int top, const int left, const int room, const uchar zero) {
    const int dense = g->dilation_x == 1 && g->group_channels == g->channels;
    const int step = g->dilation_y * g->width * g->channels;
    int at = (top * g->width + left) * g->channels;
    if (dense && left >= 0 && left + g->kernel_width <= g->width && top >= 0 &&
        top + (g->kernel_height - 1) * g->dilation_y < g->height) {
        const int run = g->kernel_width * g->channels;
        ROLL for (int ky = 0; ky < g->kernel_height; ++ky, at += step, row += run)
            gather_bytes(row, image + at, run, room - at);
        return;
    }
    const int run = g->group_channels;
    ROLL for (int ky = 0; ky < g->kernel_height; ++ky, at += step) {
        const int inside = (uint)(top + ky * g->dilation_y) < (uint)g->height;
        ROLL for (int kx = 0; kx < g->kernel_width; ++kx, row += run) {
            const int dx = kx * g->dilation_x, tap = at + dx * g->channels;
            if (inside && (uint)(left + dx) < (uint)g->width)
                gather_bytes(row, image + tap, run, room - tap);
            else
                fill_bytes(row, zero, run);
        }
    }
}

// Gathers the lines that `count` pixels read; the first pixel is at (line, column) of all output lines.
INLINE void gather_lines(__global uchar *restrict to, __global const uchar *restrict x, const Gather *p, const int count,
                         const int line, const int column, const int size, __global const int *restrict zeros,
                         const int zeros_step) {
    const Geometry *g = &p->window;
    const int image = line / g->out_height, first = (line - image * g->out_height) * g->stride_y - g->pad_y;
    const int left = column * g->stride_x - g->pad_x, width = (count - 1) * g->stride_x + g->kernel_width;
    const int start = MIN(MAX(-left, 0), width), end = MAX(MIN(width, g->width - left), start);
    const uchar zero = (uchar)zeros[image * zeros_step];
    ROLL for (int ky = 0; ky < g->kernel_height; ++ky, to += p->run_step) {
        const int y = first + ky * g->dilation_y;
        const int inside = (uint)y < (uint)g->height, from = inside ? start : width, until = inside ? end : width;
        const int at = ((image * g->height + y) * g->width + left + from) * g->channels;
        if (from > 0) fill_bytes(to, zero, from * g->channels);
        if (until > from) gather_bytes(to + from * g->channels, x + at, (until - from) * g->channels, size - at);
        if (width > until) fill_bytes(to + until * g->channels, zero, (width - until) * g->channels);
    }
}

// The patches of `count` pixels; pixels past the last repeat it. size: of x, from the group's first channel on. zeros[i *
// zeros_step] represents zero in image i.
#define gather_patches JOIN(JOIN(gather_patches_, T), JOIN(_, VW))
SHARED WIDE void gather_patches(__global uchar *restrict rows, __global const uchar *restrict x,
                                __global const Gather *restrict gather, const int count, const int m0, const int size,
                                __global const int *restrict zeros, const int zeros_step) {
    const Gather p = *gather;  // copies, which writes to rows cannot change
    const Geometry *g = &p.window;
    const int pixels = PLACES_OF(g);
    if (p.lines) {
        const int tiles = m0 / p.line_pixels;
        gather_lines(rows, x, &p, count, tiles, m0 - tiles * p.line_pixels, size, zeros, zeros_step);
        return;
    }
    const int line = m0 / g->out_width, image_bytes = g->height * g->width * g->channels;
    int image = line / g->out_height, y = line - image * g->out_height, column = m0 - line * g->out_width;
    ROLL for (int r = 0; r < count; ++r, rows += p.row_bytes) {
        const int at = image * image_bytes;
        const uchar zero = (uchar)zeros[image * zeros_step];
        gather_patch(rows, x + at, g, y * g->stride_y - g->pad_y, column * g->stride_x - g->pad_x, size - at, zero);
        if (m0 + r + 1 < pixels && ++column == g->out_width) {
            column = 0;
            if (++y == g->out_height) y = 0, ++image;
        }
    }
}

// The patches of MR pixels: in x itself, if they can be multiplied as they are, else gathered in rows.
INLINE __global const uchar *patches_of(__global uchar *restrict rows, __global const uchar *restrict x,
                                        __global const Gather *restrict p, const int m0, const int size,
                                        __global const int *restrict zeros, const int zeros_step) {
    __global const Geometry *restrict g = &p->window;
    if (p->plain && m0 + MR <= PLACES_OF(g)) {
        const int channels = g->channels;
        x += (size_t)m0 * channels;
        if (FLIP == 0) return x;
        gather_bytes(rows, x, MR * channels, size - m0 * channels);
        return rows;
    }
    gather_patches(rows, x, p, MR, m0, size, zeros, zeros_step);
    return rows;
}

// A work-item's share: pixels [m_first, m_last) x columns [n_first, n_last) of a group, whose columns are padded to
// group_panels. first_row: the offset of its own memory. size: of x, from the group's first channel on.
typedef struct {
    int m_first, m_last, n_first, n_last, group_panels, size;
    size_t first_row;
} Share;

INLINE Share share_of(__global const Gather *p, const int row_item, const int column_item, const int group) {
    __global const Geometry *g = &p->window;
    const int pixels = PLACES_OF(g) / p->line_width * p->line_pixels;
    const int row_items = (pixels + p->item_rows - 1) / p->item_rows;
    const int column_items = (g->group_columns + p->item_columns - 1) / p->item_columns;
    Share s;
    s.m_first = row_item * p->item_rows, s.m_last = MIN(s.m_first + p->item_rows, pixels);
    s.n_first = column_item * p->item_columns, s.n_last = MIN(s.n_first + p->item_columns, g->group_columns);
    if (s.n_first >= s.n_last) s.m_last = 0;  // a work-item that only fills up a group has no memory for rows
    s.group_panels = (g->group_columns + PANEL - 1) / PANEL * PANEL;
    s.size = p->size - group * p->group_x;
    s.first_row = (size_t)((group * column_items + column_item) * row_items + row_item) * p->item_bytes;
    return s;
}

// MR pixels from m0 on, counted like line_pixels: the first of them in the output, and their number.
typedef struct {
    int first, count;
} Pixels;

INLINE Pixels pixels_at(__global const Gather *p, const int m0) {
    const int line = m0 / p->line_pixels, column = m0 - line * p->line_pixels;
    return (Pixels){line * p->line_width + column, MIN(MR, p->line_width - column)};
}

#ifdef WORDS
#define DOT DOT2
#else
#define DOT DOT4
#endif

// Bytes of a column's weights, for rows of `runs` runs of run_bytes.
INLINE int column_bytes(const int runs, const int run_bytes) {
    return runs * ((run_bytes + 4 * PACKED - 1) / (4 * PACKED)) * 4;
}

// The weights of the columns from n0 on.
INLINE __global const char *weights_at(__global const char *weights, const int bytes, const int n0) {
    return weights + (size_t)(n0 / PANEL) * PANEL * bytes + n0 % PANEL * 4;
}

#if defined(PART4) && !defined(WORDS)
#define PART PART4
#define REST REST4
#else
#define PART DOT
#define REST(rest, w) (rest)
#endif

// tile[r][j] += four elements of row r times the i-th of the packed weights w, less what rest[j] gets, the same for all
// rows.
INLINE void multiply_fours(intv tile[MR][NV], intv rest[NV], __global const uchar *restrict rows, const intv w[NV],
                           const int row_step, const int i) {
    UNROLL for (int j = 0; j < NV; ++j) rest[j] = REST(rest[j], UPPER(w[j], i));
    UNROLL for (int r = 0; r < MR; ++r) {
        const intv x = *(__global const int_u *)(rows + r * row_step + 4 * i);
        UNROLL for (int j = 0; j < NV; ++j) tile[r][j] = PART(tile[r][j], x, UPPER(w[j], i));
    }
}

// tile[r][j] += `runs` runs of run_bytes of row r times weights.
INLINE void multiply_patches(intv tile[MR][NV], __global const uchar *restrict rows,
                             __global const char *restrict weights, const int row_step, const int runs,
                             const int run_bytes, const int run_step) {
    intv rest[NV];
    UNROLL for (int j = 0; j < NV; ++j) rest[j] = 0;
    for (int run = 0; run < runs; ++run, rows += run_step) {
        int k = 0;
        intv w[NV];
        for (; k + 4 * PACKED <= run_bytes; k += 4 * PACKED, weights += PANEL * 4) {
            UNROLL for (int j = 0; j < NV; ++j) w[j] = LOADI(weights + j * VW * 4);
            UNROLL for (int i = 0; i < PACKED; ++i) multiply_fours(tile, rest, rows + k, w, row_step, i);
        }
#if PACKED > 1
        if (k < run_bytes) {  // nothing is read past the run
            UNROLL for (int j = 0; j < NV; ++j) w[j] = LOADI(weights + j * VW * 4);
            UNROLL for (int i = 0; i < PACKED - 1; ++i)
                if (k + 4 * i < run_bytes) multiply_fours(tile, rest, rows + k, w, row_step, i);
            weights += PANEL * 4;
        }
#endif
    }
    UNROLL for (int r = 0; r < MR; ++r) UNROLL for (int j = 0; j < NV; ++j) tile[r][j] -= rest[j];
}
