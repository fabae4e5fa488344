// Measures fused multiply-adds: every accumulator is multiplied and added to `steps` times. A work-item writes one
// number, so that nothing is optimized away.
#include "common.h"
#include <perf.peak.Peak>

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

// Measures reads: every item adds up its own vectors, `steps` of them, `next` apart, `times` over.
KERNEL void read_all(ITEM __global const float *x, __global float *out, const int steps, const int own, const int next,
                     const int times) {
    const int first = ITEM_INDEX(0) * own;
    floatv sums[PEAK_STREAMS];
    UNROLL for (int i = 0; i < PEAK_STREAMS; ++i) sums[i] = (floatv)(0.0f);
    for (int t = 0; t < times; ++t)
        for (int k = 0; k + PEAK_STREAMS <= steps; k += PEAK_STREAMS)
            UNROLL for (int i = 0; i < PEAK_STREAMS; ++i) sums[i] += LOAD(x + (size_t)(first + (k + i) * next) * VW);
    floatv total = sums[0];
    UNROLL for (int i = 1; i < PEAK_STREAMS; ++i) total += sums[i];
    out[ITEM_INDEX(0)] = sum_lanes(total);
}
