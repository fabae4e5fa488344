// Measures products of integers as quantized.h computes them: of bytes, or with WORDS of words. Every accumulator is
// its own factor, so that no product is shared.
#include <perf.peak.Peak>
#ifdef WORDS
#define T short
#define MULTIPLY_ADD(sum, x, w) DOT2(sum, x, w)
#else
#define T uchar
#define MULTIPLY_ADD(sum, x, w) DOT4(sum, x, w)
#endif
#include "quantized.h"

KERNEL void peak_integers(ITEM __global int *out, const int steps, const int factor) {
    const intv w = (intv)(factor);
    intv sums[PEAK_CHAINS];
    UNROLL for (int i = 0; i < PEAK_CHAINS; ++i) sums[i] = (intv)(i);
    for (int k = 0; k < steps; ++k)
        UNROLL for (int i = 0; i < PEAK_CHAINS; ++i) sums[i] = MULTIPLY_ADD(sums[i], sums[i], w);
    intv total = sums[0];
    UNROLL for (int i = 1; i < PEAK_CHAINS; ++i) total ^= sums[i];
    int lanes[VW];
    *(intv_u *)lanes = total;
    int folded = lanes[0];
    for (int i = 1; i < VW; ++i) folded ^= lanes[i];
    out[ITEM_INDEX(0)] = folded;
}
