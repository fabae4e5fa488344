// 3x3 convolutions of stride 1 by Winograd's F(4x4, 3x3): 36 multiplications a channel instead of 144 for 4x4 output
// pixels from a 6x6 patch of the input, out = activation(A^T [sum over channels of (G w G^T) . (B^T patch B)] A + bias
// + residual), with the transforms of winograd.h.
// x is [images, height, width, channels], channels >= VW; weights are G w G^T packed in panels (tile.h), in the order in
// which work-items read them: [columns / item_columns][36][item_columns / PANEL][channels][PANEL]; bias is padded to
// whole panels; pixels of out (and of a residual) are out_step apart. An image has tiles_y x tiles_x patches.
// A work-item takes item_patches patches x item_columns columns, whole panels, `block` patches at a time (a multiple of
// MR), in scratch memory of its own: [36][block][channels], slot_step from point to point, then [36][block][item_columns],
// product_step from point to point.
// Macros: MR, NV, PANEL; ACTIVATION (common.h), whose arguments are low and high.
#include "tile.h"
#include "winograd.h"
#include <delegate.cpu.winograd.Winograd>

// The position of a patch: its image, and its top left pixel in the output.
INLINE int3 place(const int patch, __global const Winograd *restrict w) {
    const int row = patch / w->tiles_x;
    return (int3)(row / w->tiles_y, row % w->tiles_y * 4, patch % w->tiles_x * 4);
}

// Transforms one patch into its slot of the block.
OUT_OF_LINE WIDE void read_patch(__global const float *restrict x, __global float *restrict slot, const int patch,
                                 __global const Winograd *restrict w) {
    __global const Geometry *restrict g = &w->window;
    const int3 at = place(patch, w);
    const int top = at.y - g->pad_y, left = at.z - g->pad_x, channels = g->channels;
    const int inside = top >= 0 && left >= 0 && top + 6 <= g->height && left + 6 <= g->width;
    __global const float *corner = x + ((at.x * g->height + top) * g->width + left) * channels;
    for (int c = 0; c < channels; c += VW) {
        const int c0 = MIN(c, channels - VW);
        floatv half_done[6][6];
        UNROLL for (int j = 0; j < 6; ++j) {
            floatv column[6], transformed[6];
            UNROLL for (int i = 0; i < 6; ++i) {
                const int known = inside || ((uint)(top + i) < (uint)g->height && (uint)(left + j) < (uint)g->width);
                column[i] = known ? LOAD(corner + (i * g->width + j) * channels + c0) : (floatv)(0.0f);
            }
            transform_input(column, transformed);
            UNROLL for (int i = 0; i < 6; ++i) half_done[i][j] = transformed[i];
        }
        UNROLL for (int i = 0; i < 6; ++i) {
            floatv row[6];
            transform_input(half_done[i], row);
            UNROLL for (int j = 0; j < 6; ++j) STORE(slot + (i * 6 + j) * w->slot_step + c0, row[j]);
        }
    }
}

// Multiplies MR slots, of which `count` are filled, by one panel; number, halvings: see multiply_shared. Rows past the
// last slot repeat it, because memory there may contain subnormal numbers, which are slow.
OUT_OF_LINE WIDE void multiply_slots(__global const float *restrict slots, __global const float *restrict panel,
                                     __global float *restrict out, const int count, const int depth,
                                     const int columns, const int number, const int halvings) {
    floatv tile[MR][NV];
    __global const float *rows[MR];
    UNROLL for (int r = 0; r < MR; ++r) {
        rows[r] = slots + MIN(r, count - 1) * depth;
        UNROLL for (int j = 0; j < NV; ++j) tile[r][j] = (floatv)(0.0f);
    }
    multiply_shared(tile, rows, panel, depth, depth, number, halvings);
    UNROLL for (int r = 0; r < MR; ++r)
        UNROLL for (int j = 0; j < NV; ++j) STORE(out + r * columns + j * VW, tile[r][j]);
}

// Transforms one slot of products into its output pixels.
OUT_OF_LINE WIDE void write_patch(__global const float *restrict slot, __global const float *restrict bias,
                                  __global const float *restrict residual, __global float *restrict out,
                                  const int patch, const int n_first, const int n_last,
                                  __global const Winograd *restrict w, const int has_residual, const float low,
                                  const float high) {
    __global const Geometry *restrict g = &w->window;
    const int3 at = place(patch, w);
    const size_t corner = (size_t)((at.x * g->out_height + at.y) * g->out_width + at.z) * w->out_step;
    const int tall = MIN(4, g->out_height - at.y), wide = MIN(4, g->out_width - at.z);
    for (int n = n_first; n < n_last; n += VW) {
        floatv half_done[4][6];
        UNROLL for (int j = 0; j < 6; ++j) {
            floatv column[6], transformed[4];
            UNROLL for (int i = 0; i < 6; ++i) column[i] = LOAD(slot + (i * 6 + j) * w->product_step + n - n_first);
            transform_output(column, transformed);
            UNROLL for (int i = 0; i < 4; ++i) half_done[i][j] = transformed[i];
        }
        const floatv added = LOAD(bias + n);
        floatv tile[4][4];
        UNROLL for (int i = 0; i < 4; ++i) {
            transform_output(half_done[i], tile[i]);
            UNROLL for (int j = 0; j < 4; ++j) tile[i][j] += added;
        }
        const int rest = g->columns - n;
        if (tall == 4 && wide == 4 && rest >= VW) {
            UNROLL for (int i = 0; i < 4; ++i)
                UNROLL for (int j = 0; j < 4; ++j) {
                    const size_t to = corner + (i * g->out_width + j) * w->out_step + n;
                    if (has_residual) tile[i][j] += LOAD(residual + to);
                    STORE(out + to, ACTIVATION(tile[i][j], low, high));
                }
            continue;
        }
        floatv held[4][4];  // which, unlike the tile, may be indexed
        UNROLL for (int i = 0; i < 4; ++i) UNROLL for (int j = 0; j < 4; ++j) held[i][j] = tile[i][j];
        ROLL_FIRST(i, tall, 4)
            ROLL_FIRST(j, wide, 4) {
                const size_t to = corner + (i * g->out_width + j) * w->out_step + n;
                floatv y = held[i][j];
                if (has_residual) y += load_vector(residual + to, rest);
                store_vector(out + to, ACTIVATION(y, low, high), rest);
            }
    }
}

KERNEL void winograd(ITEM __global const float *restrict x, __global const float *restrict weights,
                     __global const float *restrict bias, __global const float *restrict residual,
                     __global float *restrict out, __global float *restrict scratch,
                     __global const Winograd *restrict w, const int has_residual, const float low, const float high) {
    __global const Geometry *restrict g = &w->window;
    const int columns = (g->columns + PANEL - 1) / PANEL * PANEL;
    const int patches = g->images * w->tiles_y * w->tiles_x;
    const int first = ITEM_INDEX(0) * w->item_patches, last = MIN(first + w->item_patches, patches);
    const int n_first = ITEM_INDEX(1) * w->item_columns, n_last = MIN(n_first + w->item_columns, columns);
    const int row_items = (patches + w->item_patches - 1) / w->item_patches;
    const size_t item = ITEM_INDEX(1) * row_items + ITEM_INDEX(0);
    __global float *slots = scratch + item * 36 * (w->slot_step + w->product_step);
    __global const float *own_weights = weights + (size_t)36 * n_first * g->channels;
    __global float *products = slots + (size_t)36 * w->slot_step;
    for (int patch = first; patch < last; patch += w->block) {
        const int count = MIN(w->block, last - patch);
        for (int i = 0; i < count; ++i) read_patch(x, slots + i * g->channels, patch + i, w);
        for (int p = 0; p < 36; ++p)
            for (int n = n_first; n < n_last; n += PANEL)
                for (int i = 0; i < count; i += MR)
                    multiply_slots(slots + p * w->slot_step + i * g->channels,
                                   own_weights + (p * w->item_columns + n - n_first) * g->channels,
                                   products + p * w->product_step + i * w->item_columns + n - n_first, count - i,
                                   g->channels, w->item_columns, i / MR, halvings_of(count));
        for (int i = 0; i < count; ++i)
            write_patch(products + i * w->item_columns, bias, residual, out, patch + i, n_first,
                        MIN(n_last, g->columns), w, has_residual, low, high);
    }
}
