// Matrix products and convolutions of bytes on GPUs: out[s] = requantize(x[s] weights[s] + bias[s]), for slices s.
//
// A group computes a tile (local_tile.h) of four bytes at a time: x and packed weights are ints, and depth, steps and
// channels count ints. Bytes are signed; unsigned ones become signed by flipping their highest bit, for which biases
// compensate. With ROW_SUMS the sum of a row, times what weights are too small by, is added to all its sums. stage is
// [slices][columns / 4][4][4], padded to whole tiles: bias, multiplier and shifts of every column (finish_sum in
// quantized.h). If groups share the depth (PARTS), see product_local.cl.
// Macros: those of local_tile.h; T, FOLDED, RECTIFIED, REAL_FACTORS (quantized.h); LITECL_DOTS (dots.h).
#include "quantized.h"
#include "dots.h"
#define PART int4
#include "parts.h"
#include <delegate.gpu.ops.integer_products.LocalBytes>

#define FLIPPED ((T)-1 < (T)0 ? 0 : (int)0x80808080)

typedef int Element;
typedef int4 Four;
typedef int Packed;
#define LOAD_PACKED(p) LOAD4(p)
#define MULTIPLY_ADD(sum, x, w) sum = add_dots(sum, x, w)
#define ADD_ROW(total, x) total = add_bytes(total, (x) ^ FLIPPED)
#define ONES 0x01010101

inline int4 add_dots(const int4 sum, const int x, const int4 w) {
    const int a = x ^ FLIPPED;
    return (int4)(add_dot(sum.s0, a, w.s0), add_dot(sum.s1, a, w.s1), add_dot(sum.s2, a, w.s2), add_dot(sum.s3, a, w.s3));
}

inline int add_bytes(const int sum, const int4 x) {
    return add_dot(add_dot(add_dot(add_dot(sum, x.s0, ONES), x.s1, ONES), x.s2, ONES), x.s3, ONES);
}
#include "local_tile.h"

inline void finish(const int4 sum, __global const int *stage, __global T *out, const Slice slice, const int m,
                   const int n, __global const LocalBytes *c) {
    __global const int *own = stage + (slice.bias + n) * STAGE_ROWS;
    const int4 y = finish_sum(sum + LOADI(own), own, VW, c->bounds.zero, c->bounds.low, c->bounds.high);
    const int columns = c->product.columns - n;
    __global T *to = out + slice.out + m * c->product.out_step + n;
    if (columns >= VW && c->product.aligned)
        *(__global Tv *)to = CONVERT(y, T);
    else
        store_lanes(to, CONVERT(y, T), columns);
}

KERNEL void quantized_local(ITEM __global const int *restrict x, __global const int *restrict weights,
                            __global const int *restrict stage, __global T *restrict out,
                            __global const Slice *restrict slices, __global const LocalBytes *restrict c,
                            __local int4 *restrict memory
#ifdef PARTS
                            , __global int *parts, __global volatile int *arrived
#endif
) {
    __global const LocalProduct *p = &c->product;
    const Tile tile = tile_of(p);
    const Slice slice = slices[tile.number];
#ifdef ROW_SUMS
    const Around around = {c->outside, c->factor};
#else
    const Around around = {c->outside};
#endif
    int4 sums[SUM_ROWS][SUM_FOURS];
    add_up(sums, x + slice.x, weights + slice.weights, tile, memory, p, &around);
    ADD_UP_TILE
    FOR_SUMS(finish(sums[i][j], stage, out, slice, m, n, c))
}
