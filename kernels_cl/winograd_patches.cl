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
    const int height = g->height, width = g->width, channels = g->channels;
    const int top = at.y - g->pad_y, left = at.z - g->pad_x;
    float4 half_done[2][6];
    UNROLL for (int j = 0; j < 6; ++j) {
        float4 column[6], transformed[6];
        UNROLL for (int i = 0; i < 6; ++i) {
            const int y = top + i, x_ = left + j;
            const bool known = (uint)y < (uint)height && (uint)x_ < (uint)width;
            const int from = ((at.x * height + y) * width + x_) * channels + c;
            column[i] = known ? LOAD4(x + from) : (float4)(0.0f);
        }
        transform_input(column, transformed);
        half_done[0][j] = transformed[a];
        half_done[1][j] = transformed[b];
    }
    const int step = w->patches * channels;
    out += patch * channels + c;
    UNROLL for (int i = 0; i < 2; ++i) {
        float4 row[6];
        transform_input(half_done[i], row);
        UNROLL for (int j = 0; j < 6; ++j) STORE4(out + ((i ? b : a) * 6 + j) * step, row[j]);
    }
}

// A^T[a][i]: the a-th power of the i-th point, of infinity the coefficient of the third.
inline float power(const int a, const int i) {
    if (i == 0 || i == 5) return a == (i == 0 ? 0 : 3) ? 1.0f : 0.0f;
    const float point = i < 3 ? ROOT_OF_HALF : ROOT_OF_TWO, square = i < 3 ? 0.5f : 2.0f;
    const float size = (a < 2 ? 1.0f : square) * (a % 2 == 0 ? 1.0f : point);
    return a % 2 == 1 && i % 2 == 0 ? -size : size;
}

// Rows a and a + 2 of a patch's output pixels: A^T by rows, which are added up as they come. That takes fewer registers
// than to transform whole columns first.
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
            if (power(a, i) != 0.0f) sums[0][j] += power(a, i) * transformed[j];
            if (power(a + 2, i) != 0.0f) sums[1][j] += power(a + 2, i) * transformed[j];
        }
    }
    const int3 at = place(patch, w);
    const int height = g->out_height, width = g->out_width, out_step = w->out_step, columns = g->columns - n;
    const int has_residual = w->has_residual, aligned = w->aligned;
    const float4 added = LOAD4(bias + n);
    UNROLL for (int i = 0; i < 2; ++i) {
        const int y = at.y + a + 2 * i;
        if (y >= height) continue;
        UNROLL for (int j = 0; j < 4; ++j) {
            if (at.z + j >= width) continue;
            const int to = ((at.x * height + y) * width + at.z + j) * out_step + n;
            float4 result = sums[i][j] + added;
            if (has_residual) result += load_columns(residual + to, columns, aligned);
            store_columns(out + to, ACTIVATION(result, low, high), columns, aligned);
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
