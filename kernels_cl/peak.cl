// As many fused multiply-adds as the device can do: every accumulator is multiplied and added to `steps` times.
// A work-item writes one number, so that nothing is optimized away.
#include "common.h"
#include <Peak>

#define CHAINS PEAK_CHAINS

KERNEL void peak(ITEM __global float *out, const int steps, const float factor, const float addend) {
    floatv sums[CHAINS];
    UNROLL for (int i = 0; i < CHAINS; ++i) sums[i] = (floatv)(addend * i);
    for (int k = 0; k < steps; ++k)
        UNROLL for (int i = 0; i < CHAINS; ++i) sums[i] = sums[i] * factor + addend;
    floatv total = sums[0];
    UNROLL for (int i = 1; i < CHAINS; ++i) total += sums[i];
    out[ITEM_INDEX(0)] = sum_lanes(total);
}
