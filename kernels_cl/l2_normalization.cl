// Rows of length elements divided by their Euclidean norm, or by shortest where that is larger.
// A work-item takes per_item whole rows.
// Macro: ACTIVATION, with its arguments low and high.
#include "common.h"

__kernel void l2_normalization(__global const float *x, __global float *y, int n, int per_item, int length,
                               float shortest, float low, float high) {
    SHARE(n, per_item);
    for (int row = start; row < end; ++row) {
        __global const float *p = x + row * length;
        __global float *q = y + row * length;
        floatv squares = 0.0f;
        int i = 0;
        for (; i + VW <= length; i += VW) squares += LOAD(p + i) * LOAD(p + i);
        if (i < length) {
            const floatv v = load_part(p + i, length - i, 0.0f);
            squares += v * v;
        }
        const float norm = sqrt(sum_lanes(squares));
        const float divisor = MAX(norm, shortest);
        for (i = 0; i + VW <= length; i += VW) STORE(q + i, ACTIVATION(LOAD(p + i) / divisor, low, high));
        for (; i < length; ++i) q[i] = ACTIVATION_S(p[i] / divisor, low, high);
    }
}
