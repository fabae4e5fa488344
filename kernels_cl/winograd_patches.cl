// The ends of 3x3 convolutions of stride 1 by Winograd's F(4x4, 3x3) on GPUs (winograd.h): read_patches computes B^T patch
// B, write_patches activation(A^T m A + bias + residual), and products of a GPU (product_local.cl) what is between them.
// x is [images, height, width, channels], the transformed patches are [36][patches][channels], their products m [36]
// [patches][padded_columns]; channels and padded_columns are multiples of 4, bias is padded to as many. A patch is one of
// tiles_y x tiles_x of an image. Pixels of out (and of a residual) lie out_step apart, aligned if they begin at vectors.
// A work-item takes four channels of a patch, and two of its six rows (0 and 5, 1 and 2, 3 and 4) or of the four of its
// result (0 and 2, 1 and 3): these have terms in common, and fit into registers.
// Macros: ACTIVATION (common.h), whose arguments are low and high.
#include "common.h"
#include "columns.h"
#include "winograd.h"
#include <WinogradPatches>

#define LOAD4(p) (*(__global const float4 *)(p))
#define STORE4(p, x) (*(__global float4 *)(p) = (x))

// The position of a patch: its image, and its top left pixel in the output.
inline int3 place(const int patch, __global const WinogradPatches *w) {
    const int row = patch / w->tiles_x;
    return (int3)(row / w->tiles_y, row % w->tiles_y * 4, patch % w->tiles_x * 4);
}

// Rows a and b of a transformed patch.
inline void read_rows(__global const float *x, __global float *out, const int patch, const int c, const int a, const int b,
                      __global const WinogradPatches *w) {
    __global const Geometry *g = &w->window;
    const int3 at = place(patch, w);
    const int top = at.y - g->pad_y, left = at.z - g->pad_x;
    float4 half_done[2][6];
    UNROLL for (int j = 0; j < 6; ++j) {
        float4 column[6], transformed[6];
        UNROLL for (int i = 0; i < 6; ++i) {
            const int y = top + i, x_ = left + j;
            const bool known = (uint)y < (uint)g->height && (uint)x_ < (uint)g->width;
            const int from = ((at.x * g->height + y) * g->width + x_) * g->channels + c;
            column[i] = known ? LOAD4(x + from) : (float4)(0.0f);
        }
        transform_input(column, transformed);
        half_done[0][j] = transformed[a];
        half_done[1][j] = transformed[b];
    }
    const int step = w->patches * g->channels;
    out += patch * g->channels + c;
    UNROLL for (int i = 0; i < 2; ++i) {
        float4 row[6];
        transform_input(half_done[i], row);
        UNROLL for (int j = 0; j < 6; ++j) STORE4(out + ((i ? b : a) * 6 + j) * step, row[j]);
    }
}

// A^T, by rows: those of a work-item are added up, which takes fewer registers than to transform whole columns first.
__constant float POWERS[4][6] = {{1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 0.0f},
                                 {0.0f, ROOT_OF_HALF, -ROOT_OF_HALF, ROOT_OF_TWO, -ROOT_OF_TWO, 0.0f},
                                 {0.0f, 0.5f, 0.5f, 2.0f, 2.0f, 0.0f},
                                 {0.0f, 0.5f * ROOT_OF_HALF, -0.5f * ROOT_OF_HALF, 2.0f * ROOT_OF_TWO,
                                  -2.0f * ROOT_OF_TWO, 1.0f}};

// Rows a and a + 2 of a patch's output pixels.
inline void write_rows(__global const float *m, __global const float *bias, __global const float *residual,
                       __global float *out, const int patch, const int n, const int a,
                       __global const WinogradPatches *w, const float low, const float high) {
    __global const Geometry *g = &w->window;
    const int step = w->patches * w->padded_columns;
    m += patch * w->padded_columns + n;
    float4 sums[2][4];
    UNROLL for (int j = 0; j < 4; ++j) sums[0][j] = sums[1][j] = 0.0f;
    UNROLL for (int i = a; i < a + 5; ++i) {
        float4 row[6], transformed[4];
        UNROLL for (int j = 0; j < 6; ++j) row[j] = LOAD4(m + (i * 6 + j) * step);
        transform_output(row, transformed);
        UNROLL for (int j = 0; j < 4; ++j) {
            if (POWERS[a][i] != 0.0f) sums[0][j] += POWERS[a][i] * transformed[j];
            if (POWERS[a + 2][i] != 0.0f) sums[1][j] += POWERS[a + 2][i] * transformed[j];
        }
    }
    const int3 at = place(patch, w);
    const float4 added = LOAD4(bias + n);
    UNROLL for (int i = 0; i < 2; ++i) {
        const int y = at.y + a + 2 * i;
        if (y >= g->out_height) continue;
        UNROLL for (int j = 0; j < 4; ++j) {
            if (at.z + j >= g->out_width) continue;
            const int to = ((at.x * g->out_height + y) * g->out_width + at.z + j) * w->out_step + n;
            float4 result = sums[i][j] + added;
            if (w->has_residual) result += load_columns(residual + to, g->columns - n, w->aligned);
            store_columns(out + to, ACTIVATION(result, low, high), g->columns - n, w->aligned);
        }
    }
}

KERNEL void read_patches(ITEM __global const float *restrict x, __global float *restrict out,
                         __global const WinogradPatches *restrict w) {
    const int c = ITEM_INDEX(0) * 4, patch = ITEM_INDEX(1), rows = ITEM_INDEX(2);
    if (c >= w->window.channels || patch >= w->patches) return;
    if (rows == 0) read_rows(x, out, patch, c, 0, 5, w);
    if (rows == 1) read_rows(x, out, patch, c, 1, 2, w);
    if (rows == 2) read_rows(x, out, patch, c, 3, 4, w);
}

KERNEL void write_patches(ITEM __global const float *restrict m, __global const float *restrict bias,
                          __global const float *restrict residual, __global float *restrict out,
                          __global const WinogradPatches *restrict w, const float low, const float high) {
    const int n = ITEM_INDEX(0) * 4, patch = ITEM_INDEX(1), rows = ITEM_INDEX(2);
    if (n >= w->padded_columns || patch >= w->patches) return;
    if (rows == 0) write_rows(m, bias, residual, out, patch, n, 0, w, low, high);
    if (rows == 1) write_rows(m, bias, residual, out, patch, n, 1, w, low, high);
}
