// Sums of products in halves, to find out whether a device computes them as half_unit.h says: sums[i] of four is
// left[i][0] right[i][0] + left[i][1] right[i][1] + ..., of STEPS, and infinite[i] whether one of the four is.
// Macro: STEPS; that of half_unit.h.
#include "common.h"
#include "half_unit.h"

KERNEL void half_unit(ITEM __global const float4 *left, __global const float4 *right, __global float4 *sums,
                      __global int *infinite) {
    const int item = ITEM_INDEX(0);
    Halves sum = ROUNDED(as_halves(halves_of(left[item * STEPS])) * as_halves(halves_of(right[item * STEPS])));
    for (int i = 1; i < STEPS; ++i) {
        const int at = item * STEPS + i;
        sum = ROUNDED(as_halves(halves_of(left[at])) * as_halves(halves_of(right[at])) + sum);
    }
    const float4 y = FLOATS_OF(sum);
    sums[item] = y;
    infinite[item] = any_infinite(y);
}
