// Gathering the patches of an image as rows of bytes, for convolutions in bytes.
//
// x is [images, height, width, channels]; words are two channels each. A work-item gathers the patches of MR pixels, as
// bytes, into its own memory; gathering handles padding, strides, dilation and odd numbers of channels. There are two
// ways. If taps are adjacent, pixels of the output share the lines of x that they read (`lines`): patches overlap
// there, row_step bytes apart, and consist of `runs` runs of run_bytes, one in each line, run_step bytes apart. The
// lines are those of a block, which is block_lines whole lines of the output, line_step bytes apart, or the MR pixels
// of a tile if that is 0. Otherwise every patch is gathered by itself, [MR][row_bytes], as one run. Pixels are counted
// in lines of line_width, rounded up to line_pixels; they are a single line if patches are gathered one by one.
// plain: rows can be multiplied where they are in x, one after another. size: of x, in bytes. item_bytes: a work-item's
// memory. With PLAIN nothing is gathered.
// The processor's own back end compiles the function gather_patches once for each type, in gather_patches.cl.
// Macros: those of patches.h; GATHERS, in the file that defines that function.
#include "patches.h"
#include <delegate.matmul.patches.GatherSize>

#define BLOCK (GATHER_SIZE_BLOCK * VW)  // bytes copied at once
#define SLACK BLOCK  // bytes after the rows of a work-item, so that the end of a run is copied whole

// Copies count bytes as rows hold them. May write up to SLACK bytes more. room: bytes that may be read.
INLINE void gather_bytes(__global uchar *restrict to, __global const uchar *restrict from, const int count,
                         const int room) {
    int i = 0;
    if (count <= 16 && room >= 16) {  // the remainder is written twice
        *(__global uchar16_u *)to = *(__global const uchar16_u *)from ^ (uchar16)GATHER_FLIP;
        return;
    }
    for (; i < count && i + BLOCK <= room; i += BLOCK)
        *(__global intv_b *)(to + i) = LOADB(from + i) ^ (int)(GATHER_FLIP * 0x01010101u);
    ROLL for (; i < count; ++i) to[i] = from[i] ^ GATHER_FLIP;
}

// Writes count bytes of one value, and up to SLACK more.
INLINE void fill_bytes(__global uchar *to, const uchar value, const int count) {
    for (int i = 0; i < count; i += BLOCK) *(__global intv_b *)(to + i) = (intv)(int)(value * 0x01010101u);
}

// Gathers the patch of one pixel, whose first tap is at (top, left) and may be outside the image. room: bytes from the
// image's first to the end of x.
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

// A block: the pixels from `column` on in the lines [line, line + lines) of the output, counted over all images.
typedef struct {
    int line, column, lines;
} Block;

INLINE Block block_at(__global const Gather *p, const int m0) {
    const int line = m0 / p->line_pixels, column = m0 - line * p->line_pixels, height = p->window.out_height;
    if (p->block_lines == 0) return (Block){line, column, 1};
    return (Block){line, 0, MIN(p->block_lines, height - line % height)};
}

// Gathers the lines that a block reads.
INLINE void gather_lines(__global uchar *restrict to, __global const uchar *restrict x, const Gather *p,
                         const Block block, const int pixels, const int size, __global const int *restrict zeros,
                         const int zeros_step) {
    const Geometry *g = &p->window;
    const int image = block.line / g->out_height;
    const int left = block.column * g->stride_x - g->pad_x, width = (pixels - 1) * g->stride_x + g->kernel_width;
    const int start = MIN(MAX(-left, 0), width), end = MAX(MIN(width, g->width - left), start);
    const uchar zero = (uchar)(zeros[image * zeros_step] ^ FLIP ^ GATHER_FLIP);
    // Lines between windows are left out; those that several windows read are there once.
    const int shared = MIN(g->stride_y, g->kernel_height), lines = (block.lines - 1) * shared + g->kernel_height;
    int y = (block.line - image * g->out_height) * g->stride_y - g->pad_y;
    ROLL for (int line = 0, tap = 0; line < lines; ++line, to += p->run_step) {
        const int inside = (uint)y < (uint)g->height, from = inside ? start : width, until = inside ? end : width;
        const int at = ((image * g->height + y) * g->width + left + from) * g->channels;
        if (from > 0) fill_bytes(to, zero, from * g->channels);
        if (until > from) gather_bytes(to + from * g->channels, x + at, (until - from) * g->channels, size - at);
        if (width > until) fill_bytes(to + until * g->channels, zero, (width - until) * g->channels);
        y += g->dilation_y;
        if (++tap == g->kernel_height) tap = 0, y += g->stride_y - shared;
    }
}

// Gathers the lines of the block at m0, or the patches of `count` pixels; pixels past the last repeat it. size: of x,
// from the group's first channel on. zeros[i * zeros_step] represents zero in image i, in unsigned bytes.
#define gather_patches JOIN(JOIN(gather_patches_, T), JOIN(_, VW))
#if defined(LITECL_NATIVE) && !defined(GATHERS)
WIDE HIDDEN void gather_patches(__global uchar *restrict rows, __global const uchar *restrict x,
                                __global const Gather *restrict gather, const int count, const int m0, const int size,
                                __global const int *restrict zeros, const int zeros_step);
#else
SHARED WIDE void gather_patches(__global uchar *restrict rows, __global const uchar *restrict x,
                                __global const Gather *restrict gather, const int count, const int m0, const int size,
                                __global const int *restrict zeros, const int zeros_step) {
    const Gather p = *gather;  // copies, which writes to rows cannot change
    const Geometry *g = &p.window;
    const int pixels = PLACES_OF(g);
    if (p.lines) {
        const int width = p.block_lines == 0 ? count : p.line_pixels;
        gather_lines(rows, x, &p, block_at(gather, m0), width, size, zeros, zeros_step);
        return;
    }
    const int line = m0 / g->out_width, image_bytes = g->height * g->width * g->channels;
    int image = line / g->out_height, y = line - image * g->out_height, column = m0 - line * g->out_width;
    ROLL for (int r = 0; r < count; ++r, rows += p.row_bytes) {
        const int at = image * image_bytes;
        const uchar zero = (uchar)(zeros[image * zeros_step] ^ FLIP ^ GATHER_FLIP);
        gather_patch(rows, x + at, g, y * g->stride_y - g->pad_y, column * g->stride_x - g->pad_x, size - at, zero);
        if (m0 + r + 1 < pixels && ++column == g->out_width) {
            column = 0;
            if (++y == g->out_height) y = 0, ++image;
        }
    }
}
#endif

#if defined(ACROSS) && MR > 1
#define PLAIN_STEP (4 * VW)  // bytes that are read at once, all of which must be the row's if it isn't gathered
#else
#define PLAIN_STEP 1
#endif

// The patches of MR pixels: in x itself, if they can be multiplied as they are, else gathered in rows.
INLINE __global const uchar *patches_of(__global uchar *restrict rows, __global const uchar *restrict x,
                                        __global const Gather *restrict p, const int m0, const int size,
                                        __global const int *restrict zeros, const int zeros_step) {
#ifdef PLAIN
    return x;
#else
    __global const Geometry *restrict g = &p->window;
    const int channels = g->channels, is_plain = p->plain && (PLAIN_STEP == 1 || channels % PLAIN_STEP == 0);
    if (is_plain && m0 + MR <= PLACES_OF(g)) {
        x += (size_t)m0 * channels;
        if (GATHER_FLIP == 0) return x;
        gather_bytes(rows, x, MR * channels, size - m0 * channels);
        return rows;
    }
    gather_patches(rows, x, p, MR, m0, size, zeros, zeros_step);
    return rows;
#endif
}

#ifdef WIDENED
#define GATHERED_ROWS(rows, p) ((__global Gathered *)((rows) + (p)->widened))
#else
#define GATHERED_ROWS(rows, p) (rows)
#endif

// The patches as they are multiplied. p->widened: the offset of a work-item's widened patches, if they are widened.
INLINE __global const Gathered *gathered(__global uchar *restrict rows, __global const uchar *restrict patches,
                                         __global const Gather *restrict p) {
#ifdef WIDENED_BY_FOURS
    __global int *words = (__global int *)GATHERED_ROWS(rows, p);
    for (int i = 0; i < p->widened - SLACK; i += 4) {
        const int four = *(__global const int_u *)(patches + i);
        *words++ = even_bytes(four);
        *words++ = odd_bytes(four);
    }
    return GATHERED_ROWS(rows, p);
#elif defined(WIDENED)
    typedef uchar Bytes __attribute__((vector_size(2 * VW), aligned(1)));
    typedef ushort Words __attribute__((vector_size(4 * VW), aligned(1)));
    __global Gathered *words = GATHERED_ROWS(rows, p);
    const int count = p->widened - SLACK;
    int i = 0;
    for (; i + 2 * VW <= count; i += 2 * VW)
        *(__global Words *)(words + i) = __builtin_convertvector(*(__global const Bytes *)(patches + i), Words);
    ROLL for (; i < count; ++i) words[i] = patches[i];
    return words;
#else
    return patches;
#endif
}

// The patches of a tile, as bytes and as they are multiplied. block: whose lines are gathered, to the pixel `until`.
typedef struct {
    __global const uchar *patches;
    __global const Gathered *operands;
    Block block;
    int until;
} TilePatches;

// Moves to the tile at m0; t->until is 0 before the first.
INLINE void move_to_tile(TilePatches *t, __global uchar *restrict rows, __global const uchar *restrict x,
                         __global const Gather *restrict p, const int m0, const int size,
                         __global const int *restrict zeros, const int zeros_step) {
#ifndef PLAIN
    if (p->block_lines > 0) {
        if (m0 >= t->until) {
            t->block = block_at(p, m0);
            t->until = (t->block.line + t->block.lines) * p->line_pixels;
            gather_patches(rows, x, p, MR, m0, size, zeros, zeros_step);
            gathered(rows, rows, p);
        }
        const int line = m0 / p->line_pixels;
        const int from = (line - t->block.line) * p->line_step + (m0 - line * p->line_pixels) * p->row_step;
        t->patches = rows + from;
        t->operands = GATHERED_ROWS(rows, p) + from;
        return;
    }
#endif
    t->patches = patches_of(rows, x, p, m0, size, zeros, zeros_step);
    t->operands = gathered(rows, t->patches, p);
}
