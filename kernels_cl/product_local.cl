// Matrix products and convolutions on GPUs: out[s] = activation(x[s] weights[s] + bias[s] + residual[s]), for slices s.
//
// A group computes a tile (local_tile.h). With PARTS groups share the depth too: each leaves its sums in
// parts[part][tile][TM * TN / 4][work-item] and counts itself in arrived[tile]; the last one to arrive adds them up in
// order, and resets the count to 0 for the next run. The bias is padded to whole tiles.
// Macros: those of local_tile.h; HALF_WEIGHTS: packed weights are halves; ACTIVATION (common.h), whose arguments are
// low and high.
#include "common.h"
#include "columns.h"
#include "parts.h"

typedef float Element;
typedef float4 Four;
#ifdef HALF_WEIGHTS
typedef half Packed;
#define LOAD_PACKED(p) load_halves(p)
#else
typedef float Packed;
#define LOAD_PACKED(p) LOAD4(p)
#endif
#define MULTIPLY_ADD(sum, x, w) sum = (x) * (w) + sum
#include "local_tile.h"

inline void finish(float4 y, __global const float *bias, __global const float *residual, __global float *out,
                   const Slice slice, const int m, const int n, __global const LocalProduct *p, const float low,
                   const float high) {
    const int at = slice.out + m * p->out_step + n, columns = p->columns - n;
    y += LOAD4(bias + slice.bias + n);
    if (p->has_residual) y += load_columns(residual + at, columns, p->aligned);
    store_columns(out + at, ACTIVATION(y, low, high), columns, p->aligned);
}

KERNEL void product_local(
    ITEM __global const float *restrict x, __global const Packed *restrict weights, __global const float *restrict bias,
    __global const float *restrict residual, __global float *restrict out, __global const Slice *restrict slices,
    __global const LocalProduct *restrict p, __local float4 *restrict memory, const float low, const float high
#ifdef PARTS
    , __global float *parts, __global volatile int *arrived
#endif
#ifdef WINDOW_WIDTH
    , __global const float *restrict taps, __global const float *restrict taps_bias, const float taps_low,
    const float taps_high
#endif
) {
    const Tile tile = tile_of(p);
    const Slice slice = slices[tile.number];
#ifdef WINDOW_WIDTH
    const Around around = {0.0f, taps, taps_bias, taps_low, taps_high};
#else
    const Around around = {0.0f};
#endif
    float4 sums[SUM_ROWS][SUM_FOURS];
    add_up(sums, x + slice.x, weights + slice.weights, tile, memory, p, &around);
    ADD_UP_TILE
    FOR_SUMS(finish(sums[i][j], bias, residual, out, slice, m, n, p, low, high))
}
