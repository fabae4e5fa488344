// Matrix products and convolutions of GPUs: out[s] = activation(x[s] weights[s] + bias[s] + residual[s]), for slices s.
//
// A group computes a tile of BM x BN. Its work-items load BM x BK of x and BK x BN of the weights, 16 bytes at a time, one
// step ahead, hand them on through local memory, and add up TM x TN sums each. With PARTS the depth is shared out among
// groups too: each leaves its sums in parts[part][tile][TM * TN / 4][work-item] and counts itself in arrived[tile], and the
// last one to arrive adds them up in order, and leaves the count at 0 for the next run.
//
// x is [rows, depth], or with GATHER an image of which a row is the patch that an output pixel sees, or with WINDOW_HEIGHT
// and WINDOW_WIDTH an image whose depthwise convolution with taps, with taps_bias and a clamp, has the rows. Weights are
// packed, [columns / BN][depth, padded to BK][BN]; with RIGHT_ROWS they are a matrix [depth, columns], with RIGHT_COLUMNS
// [columns, depth]. All that is loaded is aligned to 16 bytes. The bias is padded to whole tiles.
// Macros: BM, BN, TM, TN, PARTS, GATHER, WINDOW_HEIGHT, WINDOW_WIDTH, RIGHT_ROWS, RIGHT_COLUMNS; HALF_WEIGHTS: packed
// weights are halves; ACTIVATION (common.h), whose arguments are low and high.
#include "common.h"
#include "parts.h"
#include <Slice>
#include <LocalProduct>

#define BK 16
#define ACROSS (BN / TN)
#define ITEMS (BM / TM * ACROSS)
#define LEFT_STEP (BM + 4)  // neighbours in the depth lie in other banks
#define RIGHT_STEP (BN + 4)
#define LEFT_LOADS (BM * BK / 4 / ITEMS)
#define RIGHT_LOADS (BN * BK / 4 / ITEMS)
#define LOAD4(p) (*(__global const float4 *)(p))

#ifdef HALF_WEIGHTS
typedef half Weight;
#define LOAD_WEIGHTS(p) load_halves(p)
#else
typedef float Weight;
#define LOAD_WEIGHTS(p) LOAD4(p)
#endif

// A row of x: where it begins, and of a patch the corner that it sees, which lies outside where there is no such row.
typedef struct {
    int at, top, left;
} Row;

inline Row row_of(const int m, __global const LocalProduct *p) {
#if defined(GATHER) || defined(WINDOW_WIDTH)
    __global const Geometry *g = &p->window;
    const int line = m / g->out_width, image = line / g->out_height;
    const int y = line - image * g->out_height, x = m - line * g->out_width;
    const int top = y * g->stride_y - g->pad_y, left = x * g->stride_x - g->pad_x;
    return (Row){image * g->height * g->width * g->channels, m < p->rows ? top : INT_MIN / 2, left};
#else
    return (Row){MIN(m, p->rows - 1) * p->depth, 0, 0};
#endif
}

#ifdef WINDOW_WIDTH
#if WINDOW_HEIGHT * WINDOW_WIDTH > 9  // the loads of all rows at once spill on AMD's GPUs
#define WINDOW_UNROLL _Pragma("unroll 1")
#else
#define WINDOW_UNROLL UNROLL
#endif

typedef struct {
    __global const float *weights, *bias;
    float low, high;
} Taps;

// Four elements of a row that the window makes of an image, from k on.
inline float4 load_left(__global const float *x, const Row row, const int k, const int end, __global const LocalProduct *p,
                        const Taps *taps) {
    __global const Geometry *g = &p->window;
    if (k >= end) return 0.0f;
    float4 sum = LOAD4(taps->bias + k);
    WINDOW_UNROLL for (int ky = 0; ky < WINDOW_HEIGHT; ++ky) {
        const int iy = row.top + ky * g->dilation_y;
        UNROLL for (int kx = 0; kx < WINDOW_WIDTH; ++kx) {
            const int ix = row.left + kx * g->dilation_x;
            const bool inside = (uint)iy < (uint)g->height && (uint)ix < (uint)g->width;
            const float4 pixel = inside ? LOAD4(x + row.at + (iy * g->width + ix) * g->channels + k) : (float4)(0.0f);
            sum = pixel * LOAD4(taps->weights + (ky * WINDOW_WIDTH + kx) * g->channels + k) + sum;
        }
    }
    return clamp_v(sum, taps->low, taps->high);
}
#define LOAD_LEFT(row, k) load_left(x, row, k, end, p, &window_taps)
#else
#define LOAD_LEFT(row, k) load_left(x, row, k, end, p)
// Four elements of a row from k on; zeros where there are none.
inline float4 load_left(__global const float *x, const Row row, const int k, const int end, __global const LocalProduct *p) {
#ifdef GATHER
    __global const Geometry *g = &p->window;
    const int tap = k / g->group_channels, channel = k - tap * g->group_channels;
    const int ky = tap / g->kernel_width, kx = tap - ky * g->kernel_width;
    const int iy = row.top + ky * g->dilation_y, ix = row.left + kx * g->dilation_x;
    if (k >= end || (uint)iy >= (uint)g->height || (uint)ix >= (uint)g->width) return 0.0f;
    return LOAD4(x + row.at + (iy * g->width + ix) * g->channels + channel);
#else
    return k < end ? LOAD4(x + row.at + k) : (float4)(0.0f);
#endif
}
#endif

#ifdef RIGHT_COLUMNS
#define RIGHT_LINE(i) ((item >> 2) + (i) * (ITEMS / 4))
#else
#define RIGHT_LINE(i) ((item + (i) * ITEMS) / (BN / 4))
#define RIGHT_COLUMN(i) ((item + (i) * ITEMS) % (BN / 4) * 4)
#endif

// The i-th of a work-item's loads of weights, for the step of the depth at k.
inline float4 load_right(__global const Weight *weights, const int item, const int i, const int k, const int end,
                         const int n0, __global const LocalProduct *p) {
#if defined(RIGHT_COLUMNS)
    const int n = n0 + RIGHT_LINE(i), at = k + (item & 3) * 4;
    return n < p->columns && at < end ? LOAD_WEIGHTS(weights + (size_t)n * p->depth + at) : (float4)(0.0f);
#elif defined(RIGHT_ROWS)
    const int n = n0 + RIGHT_COLUMN(i), at = k + RIGHT_LINE(i);
    return n < p->columns && at < end ? LOAD_WEIGHTS(weights + (size_t)at * p->columns + n) : (float4)(0.0f);
#else
    return LOAD_WEIGHTS(weights + (size_t)(k + RIGHT_LINE(i)) * BN + RIGHT_COLUMN(i));
#endif
}

// Sums i of a work-item are those of tile's row (or column) of `own` fours, `others` work-items' fours apart.
#define PLACE(own, others, i) ((own) * 4 + (i) / 4 * (others) * 4 + (i) % 4)

inline void store_columns(__global float *out, const float4 y, const int columns, const int aligned) {
    if (columns >= 4 && aligned) {
        *(__global float4 *)out = y;
        return;
    }
    if (columns > 0) out[0] = y.s0;
    if (columns > 1) out[1] = y.s1;
    if (columns > 2) out[2] = y.s2;
    if (columns > 3) out[3] = y.s3;
}

inline float4 load_columns(__global const float *from, const int columns, const int aligned) {
    if (columns >= 4 && aligned) return LOAD4(from);
    return (float4)(columns > 0 ? from[0] : 0.0f, columns > 1 ? from[1] : 0.0f, columns > 2 ? from[2] : 0.0f,
                    columns > 3 ? from[3] : 0.0f);
}

inline void finish(float4 y, __global const float *bias, __global const float *residual, __global float *out,
                   const Slice slice, const int m, const int n, __global const LocalProduct *p, const float low,
                   const float high) {
    const int at = slice.out + m * p->out_step + n, columns = p->columns - n;
    y += LOAD4(bias + slice.bias + n);
    if (p->has_residual) y += load_columns(residual + at, columns, p->aligned);
    store_columns(out + at, ACTIVATION(y, low, high), columns, p->aligned);
}

KERNEL void product_local(ITEM __global const float *restrict x, __global const Weight *restrict weights,
                          __global const float *restrict bias, __global const float *restrict residual,
                          __global float *restrict out, __global const Slice *restrict slices,
                          __global const LocalProduct *restrict p, __local float4 *restrict memory, const float low,
                          const float high
#ifdef PARTS
                          , __global float *parts, __global volatile int *arrived
#endif
#ifdef WINDOW_WIDTH
                          , __global const float *restrict taps, __global const float *restrict taps_bias,
                          const float taps_low, const float taps_high
#endif
) {
    __local float *left = (__local float *)memory, *right = left + BK * LEFT_STEP;
    const int item = get_local_id(0), n0 = get_group_id(0) * BN, m0 = get_group_id(1) * BM;
#ifdef PARTS
    const int part = get_group_id(2) % p->parts, number = get_group_id(2) / p->parts;
    const int start = part * p->part_depth, end = MIN(start + p->part_depth, p->depth);
#else
    const int number = get_group_id(2), start = 0, end = p->depth;
#endif
    const Slice slice = slices[number];
    x += slice.x;
    weights += slice.weights;
#if !defined(RIGHT_ROWS) && !defined(RIGHT_COLUMNS)
    weights += (size_t)get_group_id(0) * p->panel_depth * BN;
#endif
#ifdef WINDOW_WIDTH
    const Taps window_taps = {taps, taps_bias, taps_low, taps_high};
#endif
    Row rows[LEFT_LOADS];
    float4 next_left[LEFT_LOADS], next_right[RIGHT_LOADS], sums[TM][TN / 4];
    UNROLL for (int i = 0; i < LEFT_LOADS; ++i) {
        rows[i] = row_of(m0 + (item >> 2) + i * (ITEMS / 4), p);
        next_left[i] = LOAD_LEFT(rows[i], start + (item & 3) * 4);
    }
    UNROLL for (int i = 0; i < RIGHT_LOADS; ++i) next_right[i] = load_right(weights, item, i, start, end, n0, p);
    UNROLL for (int i = 0; i < TM; ++i)
        UNROLL for (int j = 0; j < TN / 4; ++j) sums[i][j] = 0.0f;
    const int own_row = item / ACROSS, own_column = item % ACROSS;
    for (int k = start; k < end; k += BK) {
        barrier(CLK_LOCAL_MEM_FENCE);  // all have read what is overwritten now
        UNROLL for (int i = 0; i < LEFT_LOADS; ++i) {
            __local float *to = left + (item & 3) * 4 * LEFT_STEP + (item >> 2) + i * (ITEMS / 4);
            to[0] = next_left[i].s0;
            to[LEFT_STEP] = next_left[i].s1;
            to[2 * LEFT_STEP] = next_left[i].s2;
            to[3 * LEFT_STEP] = next_left[i].s3;
        }
        UNROLL for (int i = 0; i < RIGHT_LOADS; ++i) {
#ifdef RIGHT_COLUMNS
            __local float *to = right + (item & 3) * 4 * RIGHT_STEP + RIGHT_LINE(i);
            to[0] = next_right[i].s0;
            to[RIGHT_STEP] = next_right[i].s1;
            to[2 * RIGHT_STEP] = next_right[i].s2;
            to[3 * RIGHT_STEP] = next_right[i].s3;
#else
            *(__local float4 *)(right + RIGHT_LINE(i) * RIGHT_STEP + RIGHT_COLUMN(i)) = next_right[i];
#endif
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (k + BK < end) {
            UNROLL for (int i = 0; i < LEFT_LOADS; ++i)
                next_left[i] = LOAD_LEFT(rows[i], k + BK + (item & 3) * 4);
            UNROLL for (int i = 0; i < RIGHT_LOADS; ++i)
                next_right[i] = load_right(weights, item, i, k + BK, end, n0, p);
        }
        _Pragma("unroll 4")  // more of them spill on AMD's GPUs
        for (int step = 0; step < BK; ++step) {
            float4 a[TM / 4], b[TN / 4];
            UNROLL for (int i = 0; i < TM / 4; ++i)
                a[i] = *(__local const float4 *)(left + step * LEFT_STEP + PLACE(own_row, BM / TM, 4 * i));
            UNROLL for (int j = 0; j < TN / 4; ++j)
                b[j] = *(__local const float4 *)(right + step * RIGHT_STEP + PLACE(own_column, ACROSS, 4 * j));
            UNROLL for (int i = 0; i < TM / 4; ++i)
                UNROLL for (int j = 0; j < TN / 4; ++j) {
                    sums[4 * i][j] = a[i].s0 * b[j] + sums[4 * i][j];
                    sums[4 * i + 1][j] = a[i].s1 * b[j] + sums[4 * i + 1][j];
                    sums[4 * i + 2][j] = a[i].s2 * b[j] + sums[4 * i + 2][j];
                    sums[4 * i + 3][j] = a[i].s3 * b[j] + sums[4 * i + 3][j];
                }
        }
    }
#ifdef PARTS
    const int tile = (number * get_num_groups(1) + get_group_id(1)) * get_num_groups(0) + get_group_id(0);
    const int tiles = get_num_groups(0) * get_num_groups(1) * (get_num_groups(2) / p->parts);
    ADD_UP_PARTS(TM, TN / 4, tile, tiles, part, p->parts)
#endif
    UNROLL for (int i = 0; i < TM; ++i) {
        const int m = m0 + PLACE(own_row, BM / TM, i);
        if (m >= p->rows) continue;
        UNROLL for (int j = 0; j < TN / 4; ++j)
            finish(sums[i][j], bias, residual, out, slice, m, n0 + PLACE(own_column, ACROSS, 4 * j), p, low, high);
    }
}
