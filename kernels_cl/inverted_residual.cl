// An inverted residual on a GPU: a 1x1 convolution to hidden channels, a depthwise convolution of these, and a 1x1
// convolution of its result, without intermediate results in global memory:
// out = activation(depthwise(x expand) project + bias + residual), with clamps after the first two.
//
// A group computes a tile of up to TILE output pixels from a part of the hidden channels, HIDDEN at a time: first the
// hidden channels of all image pixels under the tile, in local memory, PIXELS x 4 for each work-item; then the
// depthwise convolution; then their contribution to the sums of all columns, which are in registers, OWN pixels x
// COLUMNS fours for each work-item, ACROSS apart.
// With PARTS each group leaves its sums in parts[part][tile][OWN * COLUMNS][work-item] and counts itself in
// arrived[tile]; the last one to arrive adds them up in order, and resets the count to 0 for the next run.
//
// Weights are packed: expand [hidden / HIDDEN][depth, padded to STEP][HIDDEN], taps [window][hidden], project
// [hidden][columns], hidden channels padded to whole HIDDEN. All loads are aligned to 16 bytes. Macros: ITEMS, TILE,
// ACROSS, COLUMNS, PARTS, WINDOW_HEIGHT, WINDOW_WIDTH; EXPAND_HALVES, PROJECT_HALVES: these weights are halves;
// ACTIVATION (common.h), whose arguments are low and high.
#include "common.h"
#include "parts.h"
#include <delegate.gpu.ops.inverted_residual.InvertedResidual>

#define HIDDEN 32
#define STEP 32  // of the depth, whose weights are in local memory at once
#define PIXELS 4
#define FOURS (HIDDEN / 4)
#define LOADS (STEP * FOURS / ITEMS)
#define LINES (ITEMS / ACROSS)
#define OWN (TILE / LINES)
#define LOAD4(p) (*(__global const float4 *)(p))
#define LOCAL4(p) (*(__local float4 *)(p))

#ifdef EXPAND_HALVES
typedef half ExpandWeight;
#define LOAD_EXPAND(p) load_halves(p)
#else
typedef float ExpandWeight;
#define LOAD_EXPAND(p) LOAD4(p)
#endif
#ifdef PROJECT_HALVES
typedef half ProjectWeight;
#define LOAD_PROJECT(p) load_halves(p)
#else
typedef float ProjectWeight;
#define LOAD_PROJECT(p) LOAD4(p)
#endif

#define MULTIPLY_FOURS(sum, x, w0, w1, w2, w3)          \
    {                                             \
        sum = (x).s0 * w0 + sum;                  \
        sum = (x).s1 * w1 + sum;                  \
        sum = (x).s2 * w2 + sum;                  \
        sum = (x).s3 * w3 + sum;                  \
    }

// A work-item's part of the weights from k on, loaded a step ahead if there are registers for it.
#define LOAD_STEP(k) \
    UNROLL for (int i = 0; i < LOADS; ++i) next[i] = LOAD_EXPAND(weights + (k) * HIDDEN + (item + i * ITEMS) * 4);
#ifdef LITECL_FEW_REGISTERS
#define LOAD_NOW(k) LOAD_STEP(k)
#define LOAD_AHEAD(k) {}
#else
#define LOAD_NOW(k)
#define LOAD_AHEAD(k) LOAD_STEP(k)
#endif

// The image pixels under a tile: height x width from (y, x) on, of which the tile's span begins at (first_y, first_x).
typedef struct {
    int y, x, height, width, first_y, first_x;
} Seen;

inline Seen seen_from(const int top, const int left, __global const InvertedResidual *p) {
    const int y = MAX(top, 0), x = MAX(left, 0);
    return (Seen){y, x, MAX(MIN(top + p->span_height, p->window.height) - y, 0),
                  MAX(MIN(left + p->span_width, p->window.width) - x, 0), y - top, x - left};
}

// Computes HIDDEN channels of all pixels under a tile. stage: [STEP][HIDDEN] weights.
inline void expand(__local float *hidden, __local float *stage, __global const float *image,
                   __global const ExpandWeight *weights, __global const float *bias, const float low, const float high,
                   const Seen seen, __global const InvertedResidual *p) {
    const int item = get_local_id(0), own = item % FOURS * 4, count = seen.height * seen.width;
    const int shares = (count + PIXELS - 1) / PIXELS * FOURS;
    for (int share = item; share - item < shares; share += ITEMS) {
        const int pixel = share / FOURS * PIXELS;
        int from[PIXELS];
        float4 sums[PIXELS], next[LOADS];
        UNROLL for (int i = 0; i < PIXELS; ++i) {
            const int n = MIN(pixel + i, count - 1), y = n / seen.width, x = n - y * seen.width;
            from[i] = ((seen.y + y) * p->window.width + seen.x + x) * p->depth;
            sums[i] = LOAD4(bias + own);
        }
        LOAD_AHEAD(0)
        for (int k = 0; k < p->depth; k += STEP) {
            barrier(CLK_LOCAL_MEM_FENCE);  // all have read what is overwritten now
            LOAD_NOW(k)
            UNROLL for (int i = 0; i < LOADS; ++i) LOCAL4(stage + (item + i * ITEMS) * 4) = next[i];
            barrier(CLK_LOCAL_MEM_FENCE);
            if (k + STEP < p->depth) LOAD_AHEAD(k + STEP)
            const int steps = MIN(STEP, p->depth - k);
            for (int j = 0; j < steps; j += 4) {
                __local const float *w = stage + j * HIDDEN + own;
                const float4 w0 = LOCAL4(w), w1 = LOCAL4(w + HIDDEN);
                const float4 w2 = LOCAL4(w + 2 * HIDDEN), w3 = LOCAL4(w + 3 * HIDDEN);
                UNROLL for (int i = 0; i < PIXELS; ++i) {
                    const float4 v = LOAD4(image + from[i] + k + j);
                    MULTIPLY_FOURS(sums[i], v, w0, w1, w2, w3)
                }
            }
        }
        UNROLL for (int i = 0; i < PIXELS; ++i) {
            const int n = pixel + i, y = n / seen.width, x = n - y * seen.width;
            const int to = ((seen.first_y + y) * p->span_width + seen.first_x + x) * HIDDEN + own;
            if (n < count) LOCAL4(hidden + to) = clamp_v(sums[i], low, high);
        }
    }
}

// The depthwise convolution of HIDDEN channels: middle [TILE][HIDDEN].
inline void convolve(__local float *middle, __local const float *hidden, __global const float *taps,
                     __global const float *bias, const float low, const float high,
                     __global const InvertedResidual *p) {
    const int there = p->tile_height * p->tile_width;
    for (int i = get_local_id(0); i < TILE * FOURS; i += ITEMS) {
        const int pixel = i / FOURS, own = i % FOURS * 4;
        const int y = pixel / p->tile_width, x = pixel - y * p->tile_width;
        __local const float *corner =
            hidden + (y * p->window.stride_y * p->span_width + x * p->window.stride_x) * HIDDEN + own;
        float4 sum = LOAD4(bias + own);
        if (pixel < there)
            for (int ky = 0; ky < WINDOW_HEIGHT; ++ky)
                UNROLL for (int kx = 0; kx < WINDOW_WIDTH; ++kx) {
                    const int at = ky * p->window.dilation_y * p->span_width + kx * p->window.dilation_x;
                    sum = LOCAL4(corner + at * HIDDEN) * LOAD4(taps + (ky * WINDOW_WIDTH + kx) * p->hidden + own) + sum;
                }
        LOCAL4(middle + pixel * HIDDEN + own) = clamp_v(sum, low, high);
    }
}

KERNEL void inverted_residual(ITEM __global const float *restrict x, __global const ExpandWeight *restrict expanding,
                              __global const float *restrict expand_bias, __global const float *restrict taps,
                              __global const float *restrict taps_bias, __global const ProjectWeight *restrict projecting,
                              __global const float *restrict bias, __global const float *restrict residual,
                              __global float *restrict out, __global const InvertedResidual *restrict p,
                              __local float4 *restrict memory, const float expand_low, const float expand_high,
                              const float taps_low, const float taps_high, const float low, const float high
#ifdef PARTS
                              , __global float *parts, __global volatile int *arrived
#endif
) {
    const int item = get_local_id(0), lane = item % ACROSS, line = item / ACROSS;
    const int part = get_group_id(0) % p->parts, tile = get_group_id(0) / p->parts;
    const int band = tile / p->tiles_across, image = band / p->tiles_down;
    const int out_y = (band - image * p->tiles_down) * p->tile_height;
    const int out_x = (tile - band * p->tiles_across) * p->tile_width;
    const Seen seen = seen_from(out_y * p->window.stride_y - p->window.pad_y,
                                out_x * p->window.stride_x - p->window.pad_x, p);
    // Weights of the first product and the result of the second take turns in this memory.
    __local float *stage = (__local float *)memory, *hidden = stage + MAX(TILE, STEP) * HIDDEN;
    for (int i = item; i < p->span_height * p->span_width * FOURS; i += ITEMS) LOCAL4(hidden + 4 * i) = 0.0f;
    x += image * p->window.height * p->window.width * p->depth;
    float4 sums[OWN][COLUMNS];
    UNROLL for (int i = 0; i < OWN; ++i)
        UNROLL for (int j = 0; j < COLUMNS; ++j) sums[i][j] = 0.0f;
    const int end = MIN((part + 1) * p->part_hidden, p->hidden);
    for (int c = part * p->part_hidden; c < end; c += HIDDEN) {
        expand(hidden, stage, x, expanding + (size_t)c * p->padded_depth, expand_bias + c, expand_low, expand_high, seen,
               p);
        barrier(CLK_LOCAL_MEM_FENCE);
        convolve(stage, hidden, taps + c, taps_bias + c, taps_low, taps_high, p);
        barrier(CLK_LOCAL_MEM_FENCE);
        _Pragma("unroll 1")  // more of them spill on Intel's GPUs
        for (int k = 0; k < HIDDEN; k += 4) {
            float4 w[4][COLUMNS];
            UNROLL for (int j = 0; j < COLUMNS; ++j) {
                const int n = (lane + j * ACROSS) * 4;
                UNROLL for (int i = 0; i < 4; ++i)
                    w[i][j] = n < p->columns ? LOAD_PROJECT(projecting + (size_t)(c + k + i) * p->columns + n) : 0.0f;
            }
            UNROLL for (int i = 0; i < OWN; ++i) {
                const float4 v = LOCAL4(stage + (line + i * LINES) * HIDDEN + k);
                UNROLL for (int j = 0; j < COLUMNS; ++j) MULTIPLY_FOURS(sums[i][j], v, w[0][j], w[1][j], w[2][j], w[3][j])
            }
        }
    }
#ifdef PARTS
    ADD_UP_PARTS(OWN, COLUMNS, tile, (int)get_num_groups(0) / p->parts, part, p->parts)
#endif
    UNROLL for (int i = 0; i < OWN; ++i) {
        const int pixel = line + i * LINES, y = pixel / p->tile_width, to_x = out_x + pixel - y * p->tile_width;
        const int to_y = out_y + y;
        if (y >= p->tile_height || to_y >= p->window.out_height || to_x >= p->window.out_width) continue;
        const size_t to = (size_t)((image * p->window.out_height + to_y) * p->window.out_width + to_x) * p->columns;
        UNROLL for (int j = 0; j < COLUMNS; ++j) {
            const int n = (lane + j * ACROSS) * 4;
            if (n >= p->columns) continue;
            float4 sum = sums[i][j] + LOAD4(bias + n);
            if (p->has_residual) sum += LOAD4(residual + to + n);
            *(__global float4 *)(out + to + n) = ACTIVATION(sum, low, high);
        }
    }
}
